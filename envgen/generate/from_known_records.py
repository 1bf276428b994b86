"""Tool lists as blueprints of services whose records are known: names say what is there, the lexicon what it holds."""

from collections import Counter
from dataclasses import replace

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    Entity,
    SignedIn,
    SkippedItem,
    ToolBlueprint,
)
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_words
from trajsmith.envgen.generate.known_agreements import drop_circles, fit_names
from trajsmith.envgen.generate.known_behaviours import add_permissions
from trajsmith.envgen.generate.known_services import ServiceContext, find_name_key
from trajsmith.envgen.generate.known_tables import RecordReader
from trajsmith.envgen.generate.listed_tools import (
    JOIN,
    ListedTool,
    clean_description,
    find_actor,
    name_service,
    read_parameters,
)
from trajsmith.envgen.generate.refinement import MAX_OPERATIONS
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import interpret_service_tool
from trajsmith.records import InputError

MOST_ENTITIES = 7
"""Tables of a service at most: the kinds of records with most tools."""
BEYOND = f"beyond the {MOST_ENTITIES} kinds of records with most tools, two of which are alike at most"
_RENAMED = {"record": "data_record", "class": "course", "state": "region", "object": "data_object", "data": "dataset"}
"""Nouns that are no names in the code, or no words that people use."""
_LISTS = {
    "mailing_list": frozenset({"contact", "subscriber", "campaign", "newsletter", "email", "segment"}),
    "task_list": frozenset({"task", "todo", "reminder"}), "card_list": frozenset({"card", "board"}),
    "watch_list": frozenset({"movie", "show", "film"}),
}  # fmt: skip
"""What a list is called beside some words, as "list" is no name in the code."""
_HELD = {"record": frozenset({"table", "database", "dataset"})}
"""Kinds whose records mean something only beside others of these kinds."""
_WHOSE = frozenset({"user", "my", "org", "enterprise", "organization"})
"""Words before a noun that say whose records are meant, and nothing about what they are."""


def read_known_records(tool_list: ToolList, name: str = "") -> Blueprint:
    """Read a tool list as a service of known records.

    Raises:
        InputError: Its tools name no record that is known, or none that can be changed.
    """
    return _ServiceReader(tool_list, name or name_service(tool_list.server)).read()


class _ServiceReader(ServiceContext):
    def read(self) -> Blueprint:
        groups = self._group_tools()
        known = {noun: self.kinds[noun] for noun in groups}
        entities, operations = list[Entity](), list[ToolBlueprint]()
        self._find_name_keys(groups)
        readers = {noun: RecordReader(self, noun, kind, groups[noun], known) for noun, kind in known.items()}
        owners = drop_circles({noun: reader.find_owners() for noun, reader in readers.items()})
        for number, (noun, reader) in enumerate(readers.items()):
            entity, own = reader.read(owners[noun], 137 * (1 + number))
            entities.append(entity)
            operations += own
        kinds = {entity.table: kind for entity, kind in zip(entities, known.values(), strict=True)}
        entities = fit_names(entities, kinds, self.lexicon)
        operations, signed_in = self._add_permissions(entities, operations)
        if not any(one.action in ("create", "update", "move", "delete") for one in operations):
            reasons = "; ".join(f"{one.what}: {one.reason}" for one in self.left_out[:3])
            raise InputError(f"{self.tool_list.server}: nothing usable: no known record can be changed ({reasons})")
        return Blueprint(
            name=self.name, cls=to_class_name(self.name), title=to_words(self.name).capitalize(),
            domain=f"mcp/{self.name}",
            source=BlueprintSource(
                kind="mcp", name=self.tool_list.server, digest=self.tool_list.digest, title=self.tool_list.server,
                licence=self.tool_list.licence,
            ),
            entities=tuple(entities), operations=tuple(operations), signed_in=signed_in, left_out=tuple(self.left_out),
            notes=tuple(self.notes),
        )  # fmt: skip

    def _find_name_keys(self, groups: dict[str, list[ListedTool]]) -> None:
        """Note the records that are identified by a name or a path, which no other record of the service has."""
        for noun, tools in groups.items():
            kind, others = self.kinds[noun], [self.kinds[other] for other in groups if other != noun]
            taken = {column.name for one in (kind, *others) for column in one.columns}
            lasts = {other.rpartition("_")[2] for other in groups if other != noun}
            taken |= {f"{last}_{name}" for last in lasts for name in ("name", "title")}
            names = tuple(map(str, self.lexicon.pools.get(kind.label.pool, ())))
            key = find_name_key(noun, kind, tools, names, self.rng(noun, "key"))
            if key in taken:
                key = f"{noun}_name"
            if key and key not in {*taken, *self.name_keys.values()}:
                self.name_keys[noun] = key

    def _add_permissions(
        self, entities: list[Entity], operations: list[ToolBlueprint]
    ) -> tuple[list[ToolBlueprint], SignedIn | None]:
        """Return the tools with who may call them; as they are where one more tool would be beyond the limit."""
        if len(operations) >= MAX_OPERATIONS:
            return operations, None
        name = to_identifier("_".join((*self.shared, "get_current_user")))
        if name in {one.name for one in operations}:
            return operations, None
        limited, signed_in = add_permissions(entities, operations, name, self.rng("permissions"))
        if signed_in is not None:
            self.notes.append(f"{name} is added: rules ask who is signed in")
        return limited, signed_in

    def _group_tools(self) -> dict[str, list[ListedTool]]:
        """Return the tools by noun: those with most tools."""
        tools = list[ListedTool]()
        for raw in self.tool_list.tools:
            means = interpret_service_tool(str(raw["name"]), self.shared)
            if isinstance(means, str):
                self.left_out.append(SkippedItem(what=str(raw["name"]), reason=means))
            elif (kind := self.lexicon.find(self._plain_noun(means.noun), self.words)) is None:
                self.left_out.append(
                    SkippedItem(what=str(raw["name"]), reason=f"nothing is known of what {means.noun!r} records hold")
                )
            else:
                means = replace(means, noun=to_identifier(self._plain_noun(means.noun), "item"))
                self.kinds[means.noun] = kind
                tools.append(
                    ListedTool(str(raw["name"]), means, clean_description(raw), read_parameters(raw), find_actor(raw))
                )
        tools = self._merge_people(self._leave_out_bare(tools))
        sizes = Counter(tool.means.noun for tool in tools)
        groups, of_kind = dict[str, list[ListedTool]](), Counter[str]()
        for noun, size in sorted(sizes.items(), key=lambda one: (-one[1], len(one[0]), one[0])):
            name = self.kinds[noun].name
            if len(groups) < MOST_ENTITIES and of_kind[name] < (2 if size > 2 else 1):
                groups[noun] = []
                of_kind[name] += 1
        for tool in tools:
            if tool.means.noun in groups:
                groups[tool.means.noun].append(tool)
            else:
                self.left_out.append(SkippedItem(what=tool.name, reason=BEYOND))
        return groups

    def _merge_people(self, tools: list[ListedTool]) -> list[ListedTool]:
        """Return the tools with one noun for the people of the service: users and team members are the same."""
        sizes = Counter(tool.means.noun for tool in tools if self.kinds[tool.means.noun].name == "user")
        if len(sizes) < 2:
            return tools
        people = max(sizes, key=lambda noun: (sizes[noun], -len(noun), noun))
        return [
            replace(tool, means=replace(tool.means, noun=people)) if tool.means.noun in sizes else tool
            for tool in tools
        ]

    def _leave_out_bare(self, tools: list[ListedTool]) -> list[ListedTool]:
        """Return the tools without those about records of a table where the service has no tables."""
        kinds = list({self.kinds[tool.means.noun].name: self.kinds[tool.means.noun] for tool in tools}.values())
        bare = {one.name for one in kinds if one.name in _HELD and not {two.name for two in kinds} & _HELD[one.name]}
        for tool in tools:
            if self.kinds[tool.means.noun].name in bare:
                self.left_out.append(SkippedItem(what=tool.name, reason="nothing says what such a record holds"))
        return [tool for tool in tools if self.kinds[tool.means.noun].name not in bare]

    def _plain_noun(self, noun: str) -> str:
        """Return a noun without the service's own name, in words that can be names in the code."""
        own = set() if JOIN in self.tool_list.server else set(self.name.split("_"))
        words = noun.split("_")
        while len(words) > 1 and words[0] in own:
            words = words[1:]
        rest, kind = "_".join(words[1:]), self.lexicon.find("_".join(words), self.words)
        if words[0] in _WHOSE and kind is not None and self.lexicon.find(rest, self.words) == kind:
            words = words[1:]
        plain = "_".join(words)
        if plain == "list":
            return next((name for name, beside in _LISTS.items() if self.words & beside), "item_list")
        return _RENAMED.get(plain, plain)
