"""Tool lists as blueprints of services whose records are known: names say what is there, the lexicon what it holds."""

import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    ColumnKind,
    Entity,
    KeyStyle,
    SkippedItem,
    TableColumn,
    ToolAction,
    ToolBlueprint,
)
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_words
from trajsmith.envgen.generate.known_records import PEOPLE, KnownColumn, KnownRecord, RecordLexicon, load_lexicon
from trajsmith.envgen.generate.known_rules import add_rules
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import ToolMeaning, find_shared_words, interpret_service_tool
from trajsmith.environments import find_tool_actor
from trajsmith.phrasing import normalize_name, pluralize, to_snake_case, with_article
from trajsmith.records import Actor, InputError, JsonObject, derive_seed

MOST_ENTITIES = 7
"""Tables of a service at most: the kinds of records with most tools."""
BEYOND = f"beyond the {MOST_ENTITIES} kinds of records with most tools, two of which are alike at most"
_LABELS = frozenset({
    "name", "title", "subject", "summary", "text", "content", "message", "body", "headline", "label", "description",
})  # fmt: skip
_ALIASES = {
    "due_date": "duedate due dueon dueat deadline duestring targetdate expirydate dateend",
    "description": "description desc body notes note content details text summary",
    "assignee": "assignee assigneeid assignedto assignees responsible assignedtoid ownerid",
    "start_date": "startdate start begindate startat startson startedat fromdate",
    "end_date": "enddate end finishdate endat endson todate",
    "starts_at": "startsat start starttime startdatetime startdate begin datetime",
    "ends_at": "endsat end endtime enddatetime enddate",
    "tags": "tags labels labelids tag keywords",
    "amount": "amount price total value sum cost",
    "price": "price amount unitprice cost",
    "priority": "priority prioritylevel importance",
    "content": "content body text markdown note",
    "body": "body content text html markdown",
    "note": "note notes description comment memo",
    "notes": "notes note description comment",
    "url": "url link href targeturl webhookurl uri",
    "owner": "owner ownerid lead leadid assignee manager",
    "email": "email emailaddress mail",
    "phone": "phone phonenumber mobile",
    "visibility": "visibility privacy access",
    "color": "color colour",
    "city": "city location town",
    "value": "value content data",
    "budget": "budget dailybudget lifetimebudget amount",
    "region": "region regionid location datacenter",
    "parent_id": "parentid parent",
}
_ALIAS_SETS = {name: frozenset(words.split()) for name, words in _ALIASES.items()}
_PAGES = frozenset({"page", "offset", "cursor", "pagetoken", "pagenumber", "startcursor", "startat", "skip"})
_RENAMED = {"record": "entry_record", "class": "course", "state": "region", "object": "data_object", "data": "dataset"}
"""Nouns that are no names in the code, or no words that people use."""
_STYLES: tuple[KeyStyle, ...] = ("digits", "hex", "letters", "digits")
_EMPTY_WORDS = frozenset(
    {"", "mcp", "server", "servers", "api", "ts", "py", "js", "python", "typescript", "v1", "v2", "ext"}
)
_JUNK = re.compile(r"not available|playground|deploy server|claim server|[<>{}`|\\]|https?:|@|ignore|instruction", re.I)


@dataclass
class _Tool:
    name: str
    means: ToolMeaning
    description: str
    parameters: dict[str, JsonObject]
    actor: Actor


def read_known_records(tool_list: ToolList, name: str = "") -> Blueprint:
    """Read a tool list as a service of known records.

    Raises:
        InputError: Its tools name no record that is known, or none that can be changed.
    """
    return _ServiceReader(tool_list, name or name_service(tool_list.server)).read()


def name_service(server: str) -> str:
    """Return the name of an environment for a server: of its own name, else of its publisher's."""
    owner, _, own = server.rpartition("/")
    for text in (own, owner):
        words = [word for word in re.split(r"[^a-z0-9]+", to_snake_case(text)) if word not in _EMPTY_WORDS]
        if words and len("_".join(words)) > 2:
            return to_identifier("_".join(words), "service")
    return to_identifier(server, "service")


class _ServiceReader:
    def __init__(self, tool_list: ToolList, name: str) -> None:
        self._list = tool_list
        self.name = name
        self.lexicon: RecordLexicon = load_lexicon()
        self.left_out: list[SkippedItem] = []
        self.notes: list[str] = []
        self._kinds: dict[str, KnownRecord] = {}
        self.shared = find_shared_words([str(raw["name"]) for raw in tool_list.tools])

    def rng(self, *place: str) -> random.Random:
        return random.Random(derive_seed(0, "service", self._list.server, *place))

    def read(self) -> Blueprint:
        groups = self._group_tools()
        known = {noun: self._kinds[noun] for noun in groups}
        entities, operations = list[Entity](), list[ToolBlueprint]()
        for number, (noun, kind) in enumerate(known.items()):
            entity, own = _RecordReader(self, noun, kind, groups[noun], known, 137 * (1 + number)).read()
            entities.append(entity)
            operations += own
        if not any(one.action in ("create", "update", "move", "delete") for one in operations):
            reasons = "; ".join(f"{one.what}: {one.reason}" for one in self.left_out[:3])
            raise InputError(f"{self._list.server}: nothing usable: no known record can be changed ({reasons})")
        return Blueprint(
            name=self.name, cls=to_class_name(self.name), title=to_words(self.name).capitalize(),
            domain=f"mcp/{self.name}",
            source=BlueprintSource(
                kind="mcp", name=self._list.server, digest=self._list.digest, title=self._list.server,
                licence=self._list.licence,
            ),
            entities=tuple(entities), operations=tuple(operations), left_out=tuple(self.left_out),
            notes=tuple(self.notes),
        )  # fmt: skip

    def _group_tools(self) -> dict[str, list[_Tool]]:
        """Return the tools by noun: those with most tools."""
        tools = list[_Tool]()
        for raw in self._list.tools:
            means = interpret_service_tool(str(raw["name"]), self.shared)
            if isinstance(means, str):
                self.left_out.append(SkippedItem(what=str(raw["name"]), reason=means))
            elif (kind := self.lexicon.find(self._plain_noun(means.noun))) is None:
                self.left_out.append(
                    SkippedItem(what=str(raw["name"]), reason=f"nothing is known of what {means.noun!r} records hold")
                )
            else:
                means = replace(means, noun=to_identifier(self._plain_noun(means.noun), "item"))
                self._kinds[means.noun] = kind
                tools.append(
                    _Tool(str(raw["name"]), means, _clean_description(raw), _read_parameters(raw), _find_actor(raw))
                )
        sizes = Counter(tool.means.noun for tool in tools)
        groups, of_kind = dict[str, list[_Tool]](), Counter[str]()
        for noun, size in sorted(sizes.items(), key=lambda one: (-one[1], len(one[0]), one[0])):
            name = self._kinds[noun].name
            if len(groups) < MOST_ENTITIES and of_kind[name] < (2 if size > 2 else 1):
                groups[noun] = []
                of_kind[name] += 1
        for tool in tools:
            if tool.means.noun in groups:
                groups[tool.means.noun].append(tool)
            else:
                self.left_out.append(SkippedItem(what=tool.name, reason=BEYOND))
        return groups

    def _plain_noun(self, noun: str) -> str:
        """Return a noun without the service's own name, in words that can be names in the code."""
        own = set(self.name.split("_"))
        words = noun.split("_")
        while len(words) > 1 and words[0] in own:
            words = words[1:]
        plain = "_".join(words)
        return _RENAMED.get(plain, plain)


class _RecordReader:
    """Builder of one table and its tools."""

    def __init__(
        self, service: _ServiceReader, noun: str, kind: KnownRecord, tools: list[_Tool], known: dict[str, KnownRecord],
        start: int,
    ) -> None:  # fmt: skip
        self._service, self._kind, self._tools, self._known, self._start = service, kind, tools, known, start
        self._noun = to_identifier(noun, "item")
        self._place = (service.name, self._noun)
        self._rng = service.rng(noun)
        self._parameters: dict[str, str] = {}
        for tool in tools:
            for label in tool.parameters:
                self._parameters.setdefault(normalize_name(label), to_identifier(label))

    def read(self) -> tuple[Entity, list[ToolBlueprint]]:
        parents = self._parent_columns()
        label = self._label_column(parents)
        columns = [label, *parents, *self._data_columns(label)]
        if self._kind.status:
            columns.append(TableColumn(name="status", kind="choice", label="status", choices=self._kind.status))
        key = _name_key(self._noun)
        style, whole = _choose_key_style(self._service.name), _has_whole_keys(self._service.name)
        short = _shorten_noun(self._noun)
        prefixes = {"digits": f"{short}-", "hex": f"{short.lower()}-", "letters": ""}
        entity = Entity(
            table=_name_table(self._noun), noun=self._noun, label=label.name, cls=to_class_name(self._noun), key=key,
            start=self._start,
            columns=(TableColumn(name=key, kind="whole" if whole else "text", label=key), *columns),
            prefix="" if whole else prefixes[style], key_style=style,
        )  # fmt: skip
        paged = frozenset(
            to_identifier(tool.name, "tool")
            for tool in self._tools
            if _PAGES & set(map(normalize_name, tool.parameters))
        )
        return add_rules(entity, self._operations(entity), self._service.rng(self._noun, "rules"), paged)

    def _label_column(self, parents: list[TableColumn]) -> TableColumn:
        """Return the column by which people call a record: "task_name" where what it belongs to may have a name."""
        known, name = self._kind.label, self._kind.label.name
        taken = {column.name for column in self._kind.columns}
        offered = [word for word in ("title", "name", "subject", "summary", "headline", "text", "content", "message")
                   if word in self._parameters and word not in taken]  # fmt: skip
        if name in _LABELS and normalize_name(name) not in self._parameters and offered:
            name = to_identifier(offered[0])
        if parents and name in ("name", "title"):
            name = "full_name" if known.pool == "person" else f"{self._noun.rpartition('_')[2]}_{name}"
        size = PEOPLE if known.pool == "person" else 20
        column = self._service.lexicon.build(known, name, *self._place, size=size)
        return column.model_copy(update={"unique": self._kind.unique, "required": True})

    def _parent_columns(self) -> list[TableColumn]:
        parents = list[str]()
        for parent in self._kind.parents:
            parents += [noun for noun in self._known if noun == parent or noun.endswith(f"_{parent}")]
        for parent in self._kind.parents[:2]:
            parents += [noun for noun, kind in self._known.items() if kind.name == parent]
        named = [noun for noun in self._known if normalize_name(f"{noun}_id") in self._parameters]
        nouns = [noun for noun in dict.fromkeys([*named, *parents]) if noun != self._noun][:2]
        kind: ColumnKind = "whole" if _has_whole_keys(self._service.name) else "text"
        return [
            TableColumn(
                name=_name_key(noun), kind=kind, label=_name_key(noun), references=_name_table(noun), required=not place
            )
            for place, noun in enumerate(nouns)
        ]

    def _data_columns(self, label: TableColumn) -> list[TableColumn]:
        """Return the columns that the tools name and some more that such records have."""
        named, others = list[tuple[KnownColumn, str]](), list[tuple[KnownColumn, str]]()
        for known in self._kind.columns:
            aliases = _ALIAS_SETS.get(known.name, frozenset()) | {normalize_name(known.name)}
            source = next((self._parameters[alias] for alias in sorted(aliases) if alias in self._parameters), "")
            if source and source != label.name and not source.endswith(("_id", "_ids")):
                named.append((known, source))
            else:
                others.append((known, known.name))
        needed = [one for one in others if one[0].required]
        optional = [one for one in others if not one[0].required]
        self._rng.shuffle(optional)
        wished = max(0, self._rng.randint(2, 4) - len(named) - len(needed))
        chosen = {known.name: to_identifier(name) for known, name in [*named, *needed, *optional[:wished]]}
        columns, used = list[TableColumn](), {label.name}
        for known in self._kind.columns:
            name = chosen.get(known.name, "")
            if not name or name in used or name == "status":
                continue
            used.add(name)
            column = self._service.lexicon.build(known, name, *self._place)
            if known.pool == "email" and self._kind.label.pool == "person":
                column = column.model_copy(update={"follows": label.name, "pool": (), "unique": True})
            columns.append(column)
        return columns

    def _operations(self, entity: Entity) -> list[ToolBlueprint]:
        operations = list[ToolBlueprint]()
        for tool in self._tools:
            one = self._operation(tool.means.action, to_identifier(tool.name, "tool"), entity, tool.means.outcome, tool)
            if isinstance(one, str):
                self._service.left_out.append(SkippedItem(what=tool.name, reason=one))
            elif one.name not in {other.name for other in operations}:
                operations.append(one)
        actions = {one.action for one in operations}
        prefix = "_".join(self._service.shared)
        added = ["list"] if "list" not in actions else []
        if "create" not in actions and not actions & {"update", "move", "delete"} and len(self._tools) == 1:
            added = added if "get" in actions else []
        for action in added:
            many = entity.table
            name = to_identifier("_".join(part for part in (prefix, action, many) if part))
            one = self._operation("list", name, entity, (), None)
            if isinstance(one, ToolBlueprint) and name not in {other.name for other in operations}:
                operations.append(one)
                self._service.notes.append(f"{name} is added: without it nobody finds {to_words(entity.table)}")
        operations += self._added_moves(entity, operations)
        return operations

    def _added_moves(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return tools for the transitions that such records have, if the list has few tools."""
        if len(self._tools) > 5 or not {one.action for one in operations} & {"create", "update"}:
            return []
        reached = {one.sets for one in operations if one.action == "move"}
        verbs = [verb for verb, state in self._kind.moves.items() if state not in reached]
        moves = list[ToolBlueprint]()
        for verb in self._rng.sample(verbs, min(len(verbs), 1 + self._rng.randint(0, 1))):
            parts = (*self._service.shared, verb, self._noun)
            name = to_identifier("_".join(parts))
            if name not in {other.name for other in (*operations, *moves)}:
                moves.append(ToolBlueprint(
                    name=name, action="move", table=entity.table, description="", column="status",
                    sets=self._kind.moves[verb],
                ))  # fmt: skip
                self._service.notes.append(f"{name} is added: {with_article(self._noun)} is known to change so")
        return moves

    def _operation(
        self, action: ToolAction, name: str, entity: Entity, outcome: tuple[str, ...], tool: _Tool | None
    ) -> ToolBlueprint | str:
        base: dict[str, Any] = {"name": name, "table": entity.table, "description": tool.description if tool else ""}
        base["actor"] = tool.actor if tool else "assistant"
        data = [column for column in entity.columns if column.name not in (entity.key, "status")]
        data = [column for column in data if not column.automatic]
        if action == "list":
            filters = [c for c in entity.columns if c.references or c.kind == "choice"]
            chosen = [c for c in filters if c.references or c.name == "status" or self._rng.random() < 0.5]
            text = any(c.kind == "text" and not c.references for c in entity.columns)
            search = "query" if text and (tool is None or "search" in name or "find" in name) else ""
            sought = bool(search) and tool is not None
            return ToolBlueprint(
                action="list", search_needed=sought, fields=tuple(c.name for c in chosen), search=search, **base
            )
        if action == "create":
            needed = tuple(c.name for c in data if c.required)
            return ToolBlueprint(action="create", fields=tuple(c.name for c in data), needed=needed, **base)
        if action == "update":
            fields = [c.name for c in data if not c.references and not c.follows]
            return ToolBlueprint(action="update", fields=tuple(fields), **base)
        if action == "move":
            known = [self._kind.moves.get(verb) for verb in outcome]
            sets = next((state for state in (*known, *outcome) if state in self._kind.status), None)
            if sets is None:
                return f"{outcome[0] if outcome else 'that'} is no state of {with_article(self._noun)}"
            return ToolBlueprint(action="move", column="status", sets=sets, **base)
        return ToolBlueprint(action=action, **base)


def _name_key(noun: str) -> str:
    """Return the column that identifies a record; of a long noun only the last word."""
    plain = noun.rpartition("_")[2] if len(noun) > 18 else noun
    return f"{to_identifier(plain, 'item')}_id"


def _shorten_noun(noun: str) -> str:
    """Return three letters that keys of a record begin with: "project" gives PRJ."""
    letters = noun.replace("_", "").upper()
    consonants = [letter for letter in letters[1:] if letter not in "AEIOU"]
    return (letters[:1] + "".join(dict.fromkeys(consonants)) + "XX")[:3]


def _name_table(noun: str) -> str:
    name = to_identifier(noun, "item")
    return to_identifier(f"{name}_list" if name.endswith("s") else pluralize(name), "items")


def _choose_key_style(service: str) -> KeyStyle:
    return _STYLES[derive_seed(0, "keys", service) % len(_STYLES)]


def _has_whole_keys(service: str) -> bool:
    return _choose_key_style(service) == "digits" and derive_seed(0, "whole", service) % 3 == 0


def _find_actor(raw: JsonObject) -> Actor:
    return find_tool_actor(str(raw["name"]), str(raw.get("description") or ""), raw)


def _clean_description(raw: JsonObject) -> str:
    """Return the first sentence of a tool's description if it can stand in a docstring; nothing else is taken over."""
    text = " ".join(str(raw.get("description") or "").split())
    first = re.split(r"(?<=[.!?])\s", text)[0]
    plain = first.isascii() and first[:1].isupper() and 12 <= len(first) <= 140
    return first if plain and not _JUNK.search(first) else ""


def _read_parameters(raw: JsonObject) -> dict[str, JsonObject]:
    schema = raw.get("input_schema") or raw.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    name = normalize_name(str(raw.get("name")))
    return {
        str(label): child if isinstance(child, dict) else {}
        for label, child in (properties.items() if isinstance(properties, dict) else ())
        if normalize_name(str(label)) != name and not str(label)[:1].isupper() and len(str(label)) > 1
    }
