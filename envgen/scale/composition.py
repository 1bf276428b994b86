"""Compose services of tools from several servers: around each kind of record those that belong to it."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.known_records import load_lexicon
from trajsmith.envgen.generate.listed_tools import JOIN, list_words, name_service
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import ToolMeaning, find_shared_words, interpret_service_tool
from trajsmith.envgen.scale.services import Feature, Service, read_service
from trajsmith.phrasing import pluralize
from trajsmith.records import InputError, JsonObject, derive_seed

MOST_KINDS = 6
"""Kinds of records of a composed service at most."""
MOST_TOOLS = 6
"""Tools of one kind of record at most."""
NEAR = 3
"""Places in the order of what a kind of record belongs to, up to which it is a part of a composed service."""
LARGEST_SHARE = 0.75
"""Share of the tools that one server may give: more would be a part of it once more."""
LEAST_TOOLS = 7
"""Tools of a composed service at least."""
MOST_SHARED = 0.5
"""Overlap of records and actions up to which a service of kinds that stand elsewhere, too, is another one."""
JOINED_KINDS = 3, 5
"""Kinds of records of such a service."""
ROUNDS = 200
"""Sets of kinds that are tried around each kind."""


@dataclass(frozen=True)
class _SourceTool:
    server: ToolList
    raw: JsonObject
    means: ToolMeaning


def compose_services(lists: Iterable[ToolList]) -> list[Service]:
    """Return one service around each kind of record.

    Its tools are those of all servers for the kind, the kinds that it belongs to and those that belong to it, one
    for each action. So the tools of servers that are too small to stand alone are not lost.
    """
    tools = _index_tools(lists)
    lexicon, services = load_lexicon(), list[Service]()
    for kind in sorted(tools):
        if not _is_usable(tools[kind]):
            continue
        owners = [one for one in lexicon.records[kind].parents if one in tools]
        parts = [one for one in sorted(tools) if kind in lexicon.records[one].parents[:NEAR]]
        around = list(dict.fromkeys([kind, *owners[:3], *parts]))[:MOST_KINDS]
        service = _merge(around, tools, f"{_find_noun(tools[kind])}_desk")
        if service is not None:
            services.append(service)
    return services


def recombine_services(lists: Iterable[ToolList], present: Sequence[Service], wanted: int) -> list[Service]:
    """Return further services of linked kinds of records, in other company than in those that there are.

    No two of them, and none of them and one of those that there are, have more than `MOST_SHARED` of their records
    and actions in common, so that few lists of tools give many services, and fewer the more they are alike.

    Args:
        lists: Tools of one server each.
        present: The services that there are.
        wanted: Services at most.
    """
    tools, services = _index_tools(lists), list[Service]()
    covered = [one.features for one in present]
    for kinds in _join_kinds(tools):
        if len(services) >= wanted:
            break
        expected = frozenset((kind, one.means.action) for kind in kinds for one in _choose_tools(tools[kind]))
        if any(measure_overlap(expected, one) > MOST_SHARED for one in covered):
            continue
        nouns = [_find_noun(tools[kind]) for kind in kinds if _is_usable(tools[kind])]
        service = _merge(kinds, tools, "_".join([*nouns[:2], "desk"]))
        if service is None or any(measure_overlap(service.features, one) > MOST_SHARED for one in covered):
            continue
        services.append(service)
        covered.append(service.features)
    return services


def measure_overlap(one: frozenset[Feature], other: frozenset[Feature]) -> float:
    """Return the share of records with actions that two services have in common (intersection over union)."""
    return len(one & other) / len(one | other)


def _join_kinds(tools: dict[str, list[_SourceTool]]) -> Iterator[tuple[str, ...]]:
    """Yield sets of linked kinds of records around each kind in turn, the first one of each set."""
    lexicon, near = load_lexicon(), defaultdict[str, set[str]](set)
    for kind in tools:
        for owner in lexicon.records[kind].parents[:NEAR]:
            if owner in tools:
                near[kind].add(owner)
                near[owner].add(kind)
    centres = [kind for kind in sorted(tools) if _is_usable(tools[kind])]
    rng = random.Random(derive_seed(0, "joined kinds", *sorted(tools)))
    seen = set[frozenset[str]]()
    for _ in range(ROUNDS):
        for centre in centres:
            kinds, size = [centre], rng.randint(*JOINED_KINDS)
            while len(kinds) < size and (around := sorted({one for kind in kinds for one in near[kind]} - {*kinds})):
                kinds.append(rng.choice(around))
            if len(kinds) > 1 and frozenset(kinds) not in seen:
                seen.add(frozenset(kinds))
                yield tuple(kinds)


def _merge(kinds: Sequence[str], tools: dict[str, list[_SourceTool]], name: str) -> Service | None:
    """Return the service of some kinds of records, or None if one server gives nearly all of it, or it is too small."""
    chosen = [tool for kind in kinds for tool in _choose_tools(tools[kind])]
    shares = Counter(tool.server.server for tool in chosen)
    if len(chosen) < LEAST_TOOLS or max(shares.values()) > LARGEST_SHARE * len(chosen):
        return None
    servers = dict.fromkeys(tool.server.server for tool in chosen)
    licences = dict.fromkeys(tool.server.licence for tool in chosen if tool.server.licence)
    named = {_name_tool(tool): tool for tool in reversed(chosen)}
    raw = [{**tool.raw, "name": name} for name, tool in reversed(named.items())]
    merged = ToolList(JOIN.join(servers), raw, "; ".join(licences))
    try:
        service = read_service(merged, name)
        joined = find_joined_tools(service.blueprint)
        if joined < {one.name for one in service.blueprint.operations}:
            merged = ToolList(merged.server, [one for one in raw if one["name"] in joined], merged.licence)
            service = read_service(merged, name)
    except InputError:
        return None  # its tools show no record, or write none
    return _note_names(service, named) if len(merged.tools) >= LEAST_TOOLS else None


def find_joined_tools(blueprint: Blueprint) -> set[str]:
    """Return the names of the tools for the largest number of tables of which each is linked to another of them."""
    near = {entity.table: {entity.table} for entity in blueprint.entities}
    for entity in blueprint.entities:
        for column in entity.columns:
            if column.references:
                joined = near[entity.table] | near[column.references]
                near.update(dict.fromkeys(joined, joined))
    tables = max(near.values(), key=lambda one: (len(one), sorted(one)))
    return {one.name for one in blueprint.operations if one.table in tables}


def _name_tool(tool: _SourceTool) -> str:
    """Return a name without the ways of its server, so that all tools of a composed service are named alike."""
    means = tool.means
    if means.action == "list":
        return f"list_{pluralize(means.noun)}"
    if means.action == "summarize":
        return f"get_{means.noun}_stats"
    return f"{means.outcome[0] if means.outcome else means.action}_{means.noun}"


def _note_names(service: Service, named: dict[str, _SourceTool]) -> Service:
    """Return the service with a note for each tool that has another name at its server."""
    operations = {one.name for one in service.blueprint.operations}
    notes = [
        f"{name} is {tool.raw['name']} of {tool.server.server}"
        for name, tool in named.items()
        if name in operations and name != tool.raw["name"]
    ]
    blueprint = service.blueprint.model_copy(update={"notes": (*service.blueprint.notes, *notes)})
    return Service(blueprint, service.features, service.family)


def _index_tools(lists: Iterable[ToolList]) -> dict[str, list[_SourceTool]]:
    """Return the tools of all servers by the kind of record that they are about."""
    lexicon, tools = load_lexicon(), defaultdict[str, list[_SourceTool]](list)
    for tool_list in lists:
        shared = find_shared_words([str(raw["name"]) for raw in tool_list.tools])
        own = set(name_service(tool_list.server).split("_"))
        for raw in tool_list.tools:
            means = interpret_service_tool(str(raw["name"]), shared)
            known = lexicon.find(means.noun, list_words(tool_list)) if isinstance(means, ToolMeaning) else None
            if isinstance(means, ToolMeaning) and known is not None and not own & set(means.noun.split("_")):
                tools[known.name].append(_SourceTool(tool_list, raw, means))
    return dict(tools)


def _find_noun(tools: Sequence[_SourceTool]) -> str:
    """Return the noun that most servers use."""
    servers = {(tool.server.server, tool.means.noun) for tool in tools}
    counts = Counter(noun for _, noun in servers)
    return max(counts, key=lambda noun: (counts[noun], -len(noun), noun))


def _is_usable(tools: Sequence[_SourceTool]) -> bool:
    actions = {tool.means.action for tool in tools if tool.means.noun == _find_noun(tools)}
    return bool(actions & {"create", "update", "move", "delete"})


def _choose_tools(tools: Sequence[_SourceTool]) -> list[_SourceTool]:
    """Return one tool for each thing that is done to records under the commonest noun, those with most parameters."""
    noun, chosen = _find_noun(tools), dict[tuple[str, tuple[str, ...]], _SourceTool]()
    names = set[str]()
    for tool in sorted(tools, key=lambda one: (-_count_parameters(one.raw), one.server.server, str(one.raw["name"]))):
        does = (tool.means.action, tool.means.outcome[:1])
        if tool.means.noun == noun and does not in chosen and tool.raw["name"] not in names:
            chosen[does] = tool
            names.add(str(tool.raw["name"]))
    return list(chosen.values())[:MOST_TOOLS]


def _count_parameters(raw: JsonObject) -> int:
    schema = raw.get("input_schema") or raw.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return len(properties) if isinstance(properties, dict) else 0
