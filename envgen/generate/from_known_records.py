"""Tool lists as blueprints of services whose records are known: names say what is there, the lexicon what it holds."""

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trajsmith.envgen.generate.blueprint import (
    FINAL_STATUSES,
    Blueprint,
    BlueprintSource,
    ColumnKind,
    Entity,
    KeyStyle,
    SignedIn,
    SkippedItem,
    TableColumn,
    ToolAction,
    ToolBlueprint,
)
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_words
from trajsmith.envgen.generate.known_agreements import (
    agree_with_name,
    drop_circles,
    find_owners,
    fit_names,
    is_told_by_owner,
)
from trajsmith.envgen.generate.known_behaviours import (
    NUMBERS_SHARE,
    RESTORING,
    add_permissions,
    build_bin_column,
    find_bin,
    find_bin_action,
    find_excluded,
    find_measure,
)
from trajsmith.envgen.generate.known_records import PEOPLE, KnownColumn, KnownRecord, RecordLexicon, load_lexicon
from trajsmith.envgen.generate.known_rules import add_rules
from trajsmith.envgen.generate.listed_tools import (
    JOIN,
    ListedTool,
    clean_description,
    find_actor,
    list_words,
    name_service,
    read_parameters,
)
from trajsmith.envgen.generate.phrase_slots import is_free_text
from trajsmith.envgen.generate.refinement import MAX_OPERATIONS
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.generate.tool_names import find_shared_words, interpret_service_tool
from trajsmith.phrasing import normalize_name, pluralize, singularize, with_article, word_set
from trajsmith.records import InputError, derive_seed

MOST_NAMES = 30
"""Names of records that an environment has at most, before they are combined."""
NEW_NAMES = 3
"""Names that no seed state has: those of records that users want to be made."""
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
_RENAMED = {"record": "data_record", "class": "course", "state": "region", "object": "data_object", "data": "dataset"}
"""Nouns that are no names in the code, or no words that people use."""
_WHOSE = frozenset({"user", "my", "org", "enterprise", "organization"})
"""Words before a noun that say whose records are meant, and nothing about what they are."""
_KEY_WORDS = {"page": "document", "field": "attribute", "format": "layout", "count": "tally", "filter": "view"}
"""Words of nouns that in a parameter speak of the answer, and what keys have in their place."""
_UNDONE = {
    "reopen": ("close", "complete", "resolve", "solve", "finish"), "unarchive": ("archive",), "restore": ("archive",),
    "unblock": ("block",), "unfreeze": ("freeze",), "unlock": ("lock",), "resume": ("pause",), "enable": ("disable",),
    "unmute": ("mute",), "resubscribe": ("unsubscribe",), "uncheck": ("check", "complete"), "detach": ("attach",),
    "reactivate": ("suspend", "deactivate", "disable"), "unpublish": ("publish",), "release": ("reserve",),
}  # fmt: skip
"""Verbs to those that they undo, the usual one first."""
_ORDINARY = word_set(
    "list page content item record test show watch check move run action mode share vote text new get all id ids url "
    "api json by name value key title status user i a state set"
)
"""Words of descriptions that speak of no other kind of record."""
_STYLES: tuple[KeyStyle, ...] = ("digits", "hex", "letters", "digits")


def read_known_records(tool_list: ToolList, name: str = "") -> Blueprint:
    """Read a tool list as a service of known records.

    Raises:
        InputError: Its tools name no record that is known, or none that can be changed.
    """
    return _ServiceReader(tool_list, name or name_service(tool_list.server)).read()


class _ServiceReader:
    def __init__(self, tool_list: ToolList, name: str) -> None:
        self._list = tool_list
        self.name = name
        self.lexicon: RecordLexicon = load_lexicon()
        self.left_out: list[SkippedItem] = []
        self.notes: list[str] = []
        self._kinds: dict[str, KnownRecord] = {}
        self._prefixes: set[str] = set()
        self._words = list_words(tool_list)
        self.source = tool_list.server
        self.shared = find_shared_words([str(raw["name"]) for raw in tool_list.tools])

    def take_prefix(self, noun: str) -> str:
        """Return three letters for the keys of a record that no other record of the service has."""
        words = [noun.rpartition("_")[2], noun, noun[::-1]]
        wished = dict.fromkeys(_shorten_noun(word) for word in words)
        letters = (f"{_shorten_noun(noun)[:2]}{letter}" for letter in "ABCDEFGHJKLMNPQRSTUVWXYZ")
        prefix = next(one for one in (*wished, *letters) if one not in self._prefixes)
        self._prefixes.add(prefix)
        return prefix

    def rng(self, *place: str) -> random.Random:
        return random.Random(derive_seed(0, "service", self._list.server, *place))

    def read(self) -> Blueprint:
        groups = self._group_tools()
        known = {noun: self._kinds[noun] for noun in groups}
        entities, operations = list[Entity](), list[ToolBlueprint]()
        readers = {noun: _RecordReader(self, noun, kind, groups[noun], known) for noun, kind in known.items()}
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
            raise InputError(f"{self._list.server}: nothing usable: no known record can be changed ({reasons})")
        return Blueprint(
            name=self.name, cls=to_class_name(self.name), title=to_words(self.name).capitalize(),
            domain=f"mcp/{self.name}",
            source=BlueprintSource(
                kind="mcp", name=self._list.server, digest=self._list.digest, title=self._list.server,
                licence=self._list.licence,
            ),
            entities=tuple(entities), operations=tuple(operations), signed_in=signed_in, left_out=tuple(self.left_out),
            notes=tuple(self.notes),
        )  # fmt: skip

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
        for raw in self._list.tools:
            means = interpret_service_tool(str(raw["name"]), self.shared)
            if isinstance(means, str):
                self.left_out.append(SkippedItem(what=str(raw["name"]), reason=means))
            elif (kind := self.lexicon.find(self._plain_noun(means.noun), self._words)) is None:
                self.left_out.append(
                    SkippedItem(what=str(raw["name"]), reason=f"nothing is known of what {means.noun!r} records hold")
                )
            else:
                means = replace(means, noun=to_identifier(self._plain_noun(means.noun), "item"))
                self._kinds[means.noun] = kind
                tools.append(
                    ListedTool(str(raw["name"]), means, clean_description(raw), read_parameters(raw), find_actor(raw))
                )
        sizes = Counter(tool.means.noun for tool in tools)
        groups, of_kind = dict[str, list[ListedTool]](), Counter[str]()
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
        rest, kind = "_".join(words[1:]), self.lexicon.find("_".join(words), self._words)
        if words[0] in _WHOSE and kind is not None and self.lexicon.find(rest, self._words) == kind:
            words = words[1:]
        plain = "_".join(words)
        return _RENAMED.get(plain, plain)


class _RecordReader:
    """Builder of one table and its tools."""

    def __init__(
        self,
        service: _ServiceReader,
        noun: str,
        kind: KnownRecord,
        tools: list[ListedTool],
        known: dict[str, KnownRecord],
    ) -> None:
        self._service, self._kind, self._tools, self._known = service, kind, tools, known
        self._noun = to_identifier(noun, "item")
        self._place = (service.name, self._noun)
        self._rng = service.rng(noun)
        self._parameters: dict[str, str] = {}
        for tool in tools:
            for label in tool.parameters:
                self._parameters.setdefault(normalize_name(label), to_identifier(label))

    def find_owners(self) -> list[tuple[str, bool]]:
        """Return the nouns of what the records belong to, and whether each of them does."""
        named = [noun for noun in self._known if normalize_name(f"{noun}_id") in self._parameters]
        return find_owners(self._noun, self._kind, self._known, named)

    def read(self, owners: list[tuple[str, bool]], start: int) -> tuple[Entity, list[ToolBlueprint]]:
        """Return the table and its tools.

        Args:
            owners: Nouns of what the records belong to, and whether each of them does.
            start: Number that the keys begin after.
        """
        kinds = [self._known[noun] for noun, _ in owners]
        told = [one for one in self._kind.columns if one.required and is_told_by_owner(one, kinds)]
        needed = {one.label.pool for one in kinds} & {one.pool for one in told}
        owners = [(noun, must or self._known[noun].label.pool in needed) for noun, must in owners]
        parents = self._parent_columns(owners)
        label = self._label_column(parents)
        columns = [label, *parents, *self._data_columns(label, kinds)]
        if self._kind.status:
            columns.append(TableColumn(name="status", kind="choice", label="status", choices=self._kind.status))
        verbs = {tool.means.outcome[0] for tool in self._tools if tool.means.outcome}
        actions = {tool.means.action for tool in self._tools}
        binned = find_bin(verbs, actions, self._kind.moves, self._kind.status, self._service.rng(self._noun, "bin"))
        if binned:
            columns.append(build_bin_column(binned))
        key = _name_key(self._noun)
        style, whole = _choose_key_style(self._service.name), _has_whole_keys(self._service.name)
        short = self._service.take_prefix(self._noun)
        prefixes = {"digits": f"{short}-", "hex": f"{short.lower()}-", "letters": ""}
        entity = Entity(
            table=_name_table(self._noun), noun=self._noun, label=label.name, cls=to_class_name(self._noun), key=key,
            start=start,
            columns=(TableColumn(name=key, kind="whole" if whole else "text", label=key), *columns),
            prefix="" if whole else prefixes[style], key_style=style, bin=binned,
        )  # fmt: skip
        paged = frozenset(
            to_identifier(tool.name, "tool")
            for tool in self._tools
            if _PAGES & set(map(normalize_name, tool.parameters))
        )
        return add_rules(entity, self._operations(entity), self._service.rng(self._noun, "rules"), paged, self._kind.name)

    def _label_column(self, parents: list[TableColumn]) -> TableColumn:
        """Return the column by which people call a record: "task_name" where what it belongs to may have a name."""
        known, name = self._kind.label, self._kind.label.name
        taken = {column.name for column in self._kind.columns}
        spoken = any(value.endswith((".", "?", "!")) for value in self._service.lexicon.pools.get(known.pool, ()))
        words = ("text", "content", "message", "body") if spoken else ("title", "name", "subject", "headline")
        offered = [word for word in words if word in self._parameters and word not in taken]
        if name in _LABELS and normalize_name(name) not in self._parameters and offered:
            name = to_identifier(offered[0])
        others = [kind.label.name for noun, kind in self._known.items() if noun != self._noun]
        if name in ("name", "title") and (parents or name in others):
            name = "full_name" if known.pool == "person" else f"{self._noun.rpartition('_')[2]}_{name}"
        size = PEOPLE if known.pool == "person" else MOST_NAMES
        column = self._service.lexicon.build(known, name, *self._place, size=size)
        new = 6 if known.pool == "person" else NEW_NAMES if len(column.pool) >= 8 else 0
        pool, new_names = column.pool[: len(column.pool) - new], column.pool[len(column.pool) - new :]
        return column.model_copy(
            update={"unique": bool(self._kind.unique), "required": True, "pool": pool, "examples": new_names}
        )

    def _parent_columns(self, owners: list[tuple[str, bool]]) -> list[TableColumn]:
        kind: ColumnKind = "whole" if _has_whole_keys(self._service.name) else "text"
        return [
            TableColumn(
                name=_name_key(noun), kind=kind, label=_name_key(noun), references=_name_table(noun), required=needed
            )
            for noun, needed in owners
        ]

    def _data_columns(self, label: TableColumn, owners: list[KnownRecord]) -> list[TableColumn]:
        """Return the columns that the tools name and some more that such records have."""
        named, others = list[tuple[KnownColumn, str]](), list[tuple[KnownColumn, str]]()
        for known in self._kind.columns:
            if is_told_by_owner(known, owners):
                continue
            aliases = _ALIAS_SETS.get(known.name, frozenset()) | {normalize_name(known.name)}
            source = next((self._parameters[alias] for alias in sorted(aliases) if alias in self._parameters), "")
            if source and source != label.name and not source.endswith(("_id", "_ids")):
                named.append((known, source))
            else:
                others.append((known, known.name))
        needed = [one for one in others if one[0].required or (one[0].name == "role" and label.pool)]
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
            column = agree_with_name(self._service.lexicon, self._kind, label, known, column)
            if known.pool == "email" and self._kind.label.pool == "person":
                new = self._service.lexicon.draw("email", *self._place, size=20)[12:18]
                column = column.model_copy(update={"follows": label.name, "pool": (), "unique": True, "examples": new})
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
        if len(self._tools) == 1 and not actions & {"create", "get", "update", "move", "delete"}:
            added = []
        for action in added:
            name = to_identifier("_".join(part for part in (prefix, action, entity.table) if part))
            one = self._operation("list", name, entity, (), None)
            if isinstance(one, ToolBlueprint) and name not in {other.name for other in operations}:
                operations.append(one)
                self._service.notes.append(f"{name} is added: without it nobody finds {to_words(entity.table)}")
        operations += self._added_behaviours(entity, operations)
        operations += self._added_moves(entity, operations)
        operations += self._added_ways_back(entity, operations)
        return operations

    def _is_told(self, tool: ListedTool, entity: Entity) -> bool:
        """Return True if a tool's description speaks of the record, of what it holds and of what it belongs to only."""
        own = {word for text in (*entity.names, entity.noun, entity.table, tool.name) for word in to_words(text).split()}
        own |= set(self._service.name.split("_")) | _ORDINARY
        own |= {singularize(word) for word in own}
        words = re.findall(r"[A-Za-z]+", tool.description)
        products = [word for word in words[1:] if word[0].isupper() and word.lower() not in own]
        others = {singularize(word.lower()) for word in words} & self._service.lexicon.nouns.keys() - own
        gone = entity.bin and "permanent" in tool.description.lower()
        return not (products or others or gone)

    def _can_lead_to(self, state: str, verbs: Iterable[str]) -> bool:
        """Return True if a record can be in another state that is not its last, or the verb brings it back."""
        return bool({*self._kind.status} - {state} - FINAL_STATUSES or (RESTORING | {"reopen"}) & {*verbs})

    def _added_behaviours(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return tools that no source has: one that brings back what is in the trash, and statistics of some tables."""
        prefix, names, added = self._service.shared, {one.name for one in operations}, list[ToolBlueprint]()
        actions = {one.action for one in operations}
        wanted = [("restore", (*prefix, "restore", self._noun), "restore")] if entity.bin else []
        numbers = find_measure(entity) or entity.status is not None
        if numbers and self._service.rng(self._noun, "numbers").random() < NUMBERS_SHARE:
            wanted.append(("summarize", (*prefix, "get", self._noun, "stats"), "summarize"))
        for action, parts, needed in wanted:
            name = to_identifier("_".join(parts))
            one = self._operation(needed, name, entity, (), None)  # type: ignore[arg-type]
            if action in actions or name in names or isinstance(one, str):
                continue
            added.append(one)
            self._service.notes.append(f"{name} is added: {with_article(self._noun)} is known to have it")
        return added

    def _added_moves(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return tools for the transitions that such records have, if the list has few tools."""
        if len(self._tools) > 5 or not {one.action for one in operations} & {"create", "update"}:
            return []
        reached = {one.sets for one in operations if one.action == "move"}
        moves_known = self._kind.moves.items()
        verbs = [verb for verb, state in moves_known if state not in reached and self._can_lead_to(state, [verb])]
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

    def _added_ways_back(self, entity: Entity, operations: list[ToolBlueprint]) -> list[ToolBlueprint]:
        """Return a tool for what others undo: nothing is reopened that cannot be closed."""
        moves = [one for one in operations if one.action == "move"]
        reached, added = {one.sets for one in moves}, list[ToolBlueprint]()
        verbs = {word for one in moves for word in one.name.split("_")}
        for verb in sorted(verbs & _UNDONE.keys()):
            ways = [one for one in _UNDONE[verb] if one in self._kind.moves]
            if not ways or reached & {self._kind.moves[way] for way in ways}:
                continue
            name = to_identifier("_".join((*self._service.shared, ways[0], self._noun)))
            one = self._operation("move", name, entity, (ways[0],), None)
            if isinstance(one, ToolBlueprint) and name not in {other.name for other in (*operations, *added)}:
                added.append(one)
                reached.add(one.sets)
                self._service.notes.append(f"{name} is added: {verb} undoes it")
        return added

    def _operation(
        self, action: ToolAction, name: str, entity: Entity, outcome: tuple[str, ...], tool: ListedTool | None
    ) -> ToolBlueprint | str:
        base: dict[str, Any] = {"name": name, "table": entity.table, "description": ""}
        if tool and JOIN not in self._service.source and self._is_told(tool, entity):
            base["description"] = tool.description
        base["actor"] = tool.actor if tool else "assistant"
        data = [column for column in entity.columns if column.name not in (entity.key, "status")]
        data = [column for column in data if not column.automatic and column.name != entity.bin]
        action = find_bin_action(action, outcome[0] if outcome else "", entity.bin)
        if action == "summarize":
            refs = [c.name for c in entity.columns if c.references and c.kind != "texts"][:1]
            plain = [c.name for c in entity.columns if c.kind == "choice" and c != entity.status][:1]
            return ToolBlueprint(
                action="summarize", fields=(*refs, *plain), measure=find_measure(entity),
                excludes=find_excluded(entity), **base,
            )  # fmt: skip
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
            if not is_free_text(entity.column(entity.label)):
                fields = [name for name in fields if name != entity.label] or fields  # what has a name keeps it
            return ToolBlueprint(action="update", fields=tuple(fields), **base)
        if action == "move":
            known = [self._kind.moves.get(verb) for verb in outcome]
            sets = next((state for state in (*known, *outcome) if state in self._kind.status), None)
            if sets is not None and not self._can_lead_to(sets, outcome):
                return f"no state leads to {sets}"
            if sets is None:
                return f"{outcome[0] if outcome else 'that'} is no state of {with_article(self._noun)}"
            return ToolBlueprint(action="move", column="status", sets=sets, **base)
        return ToolBlueprint(action=action, **base)


def _name_key(noun: str) -> str:
    """Return the column that identifies a record; of a long noun only the last word."""
    plain = noun.rpartition("_")[2] if len(noun) > 18 else noun
    plain = "_".join(_KEY_WORDS.get(word, word) for word in plain.split("_"))
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
