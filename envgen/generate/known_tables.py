"""One table of known records: its columns, what it belongs to, its rules."""

from dataclasses import replace

from trajsmith.envgen.generate.blueprint import Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier
from trajsmith.envgen.generate.known_agreements import agree_with_name, find_owners, is_told_by_noun, is_told_by_owner
from trajsmith.envgen.generate.known_behaviours import build_bin_column, find_bin
from trajsmith.envgen.generate.known_records import PEOPLE, KnownColumn, KnownRecord
from trajsmith.envgen.generate.known_rules import add_rules
from trajsmith.envgen.generate.known_services import (
    ServiceContext,
    choose_key_style,
    name_table,
)
from trajsmith.envgen.generate.known_tools import ToolReader
from trajsmith.envgen.generate.listed_tools import ListedTool
from trajsmith.phrasing import normalize_name, singularize

MOST_NAMES = 30
"""Names of records that an environment has at most, before they are combined."""
NEW_NAMES = 3
"""Names that no seed state has: those of records that users want to be made."""
ROOTS = ("/workspace/", "/srv/data/", "/home/ines/", "./", "")
"""What the paths of a service begin with."""
DAILY = (5, 300)
"""Amounts of a budget for one day."""
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


class RecordReader:
    """Reader of one table and its tools."""

    def __init__(
        self,
        service: ServiceContext,
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
        before = self._service.lexicon.find(self._noun.rpartition("_")[0]) if "_" in self._noun else None
        return find_owners(self._noun, self._kind, self._known, named, before.name if before else None)

    def read(self, owners: list[tuple[str, bool]], start: int) -> tuple[Entity, list[ToolBlueprint]]:
        """Return the table and its tools.

        Args:
            owners: Nouns of what the records belong to, and whether each of them does.
            start: Number that the keys begin after.
        """
        key, kind = self._service.find_key(self._noun)
        is_named = self._noun in self._service.name_keys
        named = {self._service.find_key(noun)[0]: (noun, must) for noun, must in reversed(owners)}
        owners = [owner for column, owner in reversed(named.items()) if column != key]
        kinds = [self._known[noun] for noun, _ in owners]
        repeated = [one for one in self._kind.columns if one.required and is_told_by_owner(one, kinds)]
        needed = {one.label.pool for one in kinds} & {one.pool for one in repeated}
        owners = [(noun, must or self._known[noun].label.pool in needed) for noun, must in owners]
        parents = self._parent_columns(owners)
        label = self._label_column(parents, key if is_named else "")
        columns = [label, *parents, *self._data_columns(label, {one.name for one in parents}, kinds)]
        if self._kind.status:
            columns.append(TableColumn(name="status", kind="choice", label="status", choices=self._kind.status))
        verbs = {tool.means.outcome[0] for tool in self._tools if tool.means.outcome}
        actions = {tool.means.action for tool in self._tools}
        binned = find_bin(verbs, actions, self._kind.moves, self._kind.status, self._service.rng(self._noun, "bin"))
        if binned:
            columns.append(build_bin_column(binned))
        if not is_named:
            columns = [TableColumn(name=key, kind=kind, label=key), *columns]
        style = choose_key_style(self._service.name)
        short = self._service.take_prefix(self._noun)
        prefixes = {"digits": f"{short}-", "hex": f"{short.lower()}-", "letters": ""}
        entity = Entity(
            table=name_table(self._noun), noun=self._noun, label=label.name, cls=to_class_name(self._noun), key=key,
            start=start,
            columns=tuple(columns), prefix="" if kind == "whole" or is_named else prefixes[style],
            key_style="counted" if is_named else style, key_is_given=is_named, bin=binned,
        )  # fmt: skip
        paged = frozenset(
            to_identifier(tool.name, "tool")
            for tool in self._tools
            if _PAGES & set(map(normalize_name, tool.parameters))
        )
        rng = self._service.rng(self._noun, "rules")
        return add_rules(
            entity,
            ToolReader(self._service, self._noun, self._kind, self._tools, self._rng).read(entity),
            rng,
            paged,
            self._kind.name,
        )

    def _label_column(self, parents: list[TableColumn], key: str) -> TableColumn:
        """Return the column by which people call a record: "task_name" where what it belongs to may have a name.

        Args:
            key: Its name where it also identifies the record; else empty.
        """
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
        if name in {one.name for one in parents}:
            name = f"{self._noun}_title"
        name = key or name
        size = PEOPLE if known.pool == "person" else MOST_NAMES
        column = self._service.lexicon.build(known, name, *self._place, size=size)
        new = 6 if known.pool == "person" else NEW_NAMES if len(column.pool) >= 8 else 0
        if "path" in name.split("_") and key:
            root = self._service.rng("root").choice(ROOTS)
            column = column.model_copy(update={"pool": tuple(f"{root}{value}" for value in column.pool)})
        pool, new_names = column.pool[: len(column.pool) - new], column.pool[len(column.pool) - new :]
        return column.model_copy(
            update={"unique": bool(self._kind.unique or key), "required": True, "pool": pool, "examples": new_names}
        )

    def _parent_columns(self, owners: list[tuple[str, bool]]) -> list[TableColumn]:
        keys = [(*self._service.find_key(noun), noun, needed) for noun, needed in owners]
        return [
            TableColumn(name=key, kind=kind, label=key, references=name_table(noun), required=needed)
            for key, kind, noun, needed in keys
        ]

    def _data_columns(self, label: TableColumn, taken: set[str], owners: list[KnownRecord]) -> list[TableColumn]:
        """Return the columns that the tools name and some more that such records have."""
        named, others = list[tuple[KnownColumn, str]](), list[tuple[KnownColumn, str]]()
        for known in self._kind.columns:
            if is_told_by_owner(known, owners) or is_told_by_noun(known, self._noun):
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
        columns, used = list[TableColumn](), {label.name, *taken}
        for known in self._kind.columns:
            name = chosen.get(known.name, "")
            if singularize(name) in self._known.keys() - {self._noun}:  # "the notes of that contact" are records here
                name = "remarks" if known.is_text else "tags" if known.kind == "texts" else name
            if not name or name in used or name == "status":
                continue
            used.add(name)
            if known.name == "budget" and name.startswith("daily"):
                known = replace(known, low=DAILY[0], high=DAILY[1])
            column = self._service.lexicon.build(known, name, *self._place)
            column = agree_with_name(self._service.lexicon, self._kind, label, known, column)
            if known.pool == "email" and self._kind.label.pool == "person":
                new = self._service.lexicon.draw("private_email", *self._place)[:6]
                column = column.model_copy(update={"follows": label.name, "pool": (), "unique": True, "examples": new})
            columns.append(column)
        return columns
