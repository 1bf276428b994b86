"""Blueprints of environments: what every source is read into and what the code is written from."""

import keyword
from typing import Annotated, Literal

from pydantic import AfterValidator, StringConstraints

from trajsmith.records import Actor, FrozenModel


def _check_name(text: str) -> str:
    if not (text.isascii() and text.isidentifier()) or keyword.iskeyword(text):
        raise ValueError(f"{text[:60]!r} is no name in Python")
    return text


Name = Annotated[str, AfterValidator(_check_name)]
"""Becomes a name in the code. A blueprint may be read from a file, and nothing of it may become other code."""
NameOrNone = Annotated[str, AfterValidator(lambda text: text and _check_name(text))]
"""The same, or empty."""
Scalar = str | int | float | bool
ColumnKind = Literal["text", "whole", "number", "flag", "date", "moment", "choice", "texts", "record", "records"]
KeyStyle = Literal["counted", "digits", "hex", "letters"]
ToolAction = Literal[
    "get", "list", "create", "update", "delete", "move", "link", "unlink", "discard", "restore", "summarize", "whoami",
]  # fmt: skip
READS: tuple[ToolAction, ...] = ("get", "list", "summarize", "whoami")
"""Actions that change nothing."""


class SkippedItem(FrozenModel):
    """Part of a source that was skipped, with the reason."""

    what: str
    reason: str


class BlueprintSource(FrozenModel):
    """Origin of an environment: the file or server that it was read from."""

    kind: Literal["openapi", "mcp", "tables"]
    name: str
    """The file's name, or the server's."""
    digest: Annotated[str, StringConstraints(pattern=r"^\w*$")]
    """Hash of what was read."""
    title: str = ""
    licence: str = ""
    """As the source states it; empty if it does not."""


class TableColumn(FrozenModel):
    """A field of an entity."""

    name: Name
    kind: ColumnKind
    label: str = ""
    """Its name in the source."""
    description: str = ""
    required: bool = True
    """False if records may lack it."""
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    shortest: int | None = None
    longest: int | None = None
    pattern: str = ""
    unique: bool = False
    references: NameOrNone = ""
    """Table whose keys it holds."""
    automatic: bool = False
    """True if the environment sets it to its clock when a record is made."""
    pool: tuple[Scalar, ...] = ()
    """Values that seed states draw from."""
    examples: tuple[Scalar, ...] = ()
    """Values for new records that no seed state has; some of the pool if empty."""
    when: Literal["", "past", "future"] = ""
    """Side of the present on which the dates of seed states lie; either if empty."""
    follows: NameOrNone = ""
    """Column of names that addresses for mail are made from; other texts are drawn from the pool."""
    beside: NameOrNone = ""
    """Column whose value decides what stands here in seed states."""
    values: tuple[tuple[str, Scalar], ...] = ()
    """Values of that column with what stands here beside each; a value that is missing has the pool, or nothing."""
    owner: NameOrNone = ""
    """Column with the key of the record whose name decides which names seed states draw from."""
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Names of owners with the names that their records have; others draw from the pool."""
    within: NameOrNone = ""
    """Column with the key of the record in which a value is unique; empty where no two records have the same."""
    columns: "tuple[TableColumn, ...]" = ()
    """Fields of a record, or of each record of a list, that stands inside this one."""


class RecordQuota(FrozenModel):
    """Most records that belong to one record of another table."""

    column: Name
    """Column with the other record's key."""
    most: int


class SharedOwner(FrozenModel):
    """A record belongs to the same record as what it belongs to: the company of a ticket is that of its contact."""

    column: Name
    """Column with the key that must be the same."""
    through: Name
    """Column with the key of the record that has the same one."""
    there: Name
    """Column of that record."""


class AmountLimit(FrozenModel):
    """Largest amount that a record may hold."""

    column: Name
    most: float


class Entity(FrozenModel):
    """A table of the state."""

    table: Name
    noun: Name
    cls: Name
    key: Name
    """Column that identifies a record."""
    key_is_given: bool = False
    """True if whoever makes a record says its key; else the environment counts."""
    start: int = 0
    """What counted keys begin after."""
    label: NameOrNone = ""
    """Column by which people call a record; empty where its name tells."""
    quota: RecordQuota | None = None
    shared_owners: tuple[SharedOwner, ...] = ()
    limits: tuple[AmountLimit, ...] = ()
    ahead: tuple[Name, ...] = ()
    """Columns of dates that lie before the present in no record that is made or changed."""
    bin: NameOrNone = ""
    """Flag of records that are in the trash or the archive; empty where deleted records are gone."""
    reopens: bool = False
    """True if a tool leads a record out of a status that would else be its last."""
    prefix: Annotated[str, StringConstraints(pattern=r"^[\w.-]*$")] = ""
    """What counted keys of text begin with."""
    key_style: KeyStyle = "counted"
    """How a key is made of its number: the number itself, or one that does not tell the next."""
    description: str = ""
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Scalar | None, ...], ...] = ()
    """Real records, in the order of the columns."""

    def column(self, name: str) -> TableColumn:
        return next(column for column in self.columns if column.name == name)

    @property
    def is_named(self) -> bool:
        """Return True if records are identified by what people call them: a path, the name of a branch."""
        return self.key == self.label

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def parts(self) -> "tuple[Entity, ...]":
        """Return the records that stand inside a record of this table, each as an entity named after its column."""
        return tuple(self.part(column) for column in self.columns if column.columns)

    def part(self, column: TableColumn) -> "Entity":
        """Return the record, or each record of a list, in a column; none of its columns is a key."""
        last = column.name.rpartition("_")[2]
        many = column.kind == "records" and last.endswith("s") and not last.endswith("ss")
        name = column.name[:-1] if many and column.name[:-1] not in self.names else column.name
        words = "".join(part.capitalize() for part in name.split("_"))
        return Entity(
            table=self.table, noun=f"{self.noun}_{name}", cls=f"{self.cls}{words}", key=f"{column.name}_",
            description=column.description, columns=column.columns,
        )  # fmt: skip

    @property
    def status(self) -> TableColumn | None:
        """Return the column that holds a record's status, if there is one."""
        return next((column for column in self.columns if column.kind == "choice" and _is_status(column.name)), None)


class RangeFilter(FrozenModel):
    """Argument of a list that bounds a column: created_after, min_price."""

    name: Name
    column: Name
    sign: Literal[">=", ">", "<=", "<"]


class ToolBlueprint(FrozenModel):
    """A tool."""

    name: Name
    action: ToolAction
    table: Name
    description: str
    fields: tuple[Name, ...] = ()
    """Columns that are arguments: values to set, or what a list is narrowed by."""
    needed: tuple[Name, ...] = ()
    """Those of them that must be given."""
    search: NameOrNone = ""
    """Argument of a list that is looked for in all texts."""
    search_needed: bool = False
    """True if a list needs the text that it looks for."""
    ranges: tuple[RangeFilter, ...] = ()
    """Arguments of a list that bound a column."""
    column: NameOrNone = ""
    """Column that a move sets, whose keys a link adds to, an unlink takes from or a list of an owner shows, or whose
    record a get shows and an update changes."""
    owner: NameOrNone = ""
    """Table of the record whose keys a list shows; empty if it shows all records."""
    sets: str | bool = ""
    """What a move makes of it."""
    only_while: tuple[str, ...] = ()
    """States in which a record may be changed, moved or deleted; every state if empty."""
    unless: NameOrNone = ""
    """Flag that keeps a record from being changed or deleted."""
    paged: bool = False
    """True if a list has pages."""
    roles: tuple[str, ...] = ()
    """Roles of the person who is signed in that may call it; all may if empty."""
    belongs: NameOrNone = ""
    """Column with the only person who may call it for a record; anybody may if empty."""
    measure: NameOrNone = ""
    """Column of amounts that a summary adds up."""
    excludes: tuple[str, ...] = ()
    """States of records that a summary leaves out."""
    actor: Actor = "assistant"
    """Who calls it: the agent, or only the user on their own device."""


class SignedIn(FrozenModel):
    """The person on whose behalf the agent acts."""

    table: NameOrNone = ""
    """Table of people with roles that it is one of; empty where it is a name in columns of other tables."""
    role: NameOrNone = ""
    """Column of that table with the role."""
    roles: tuple[str, ...] = ()
    """Roles that the person may have in seed states, the usual one first."""
    people: tuple[str, ...] = ()
    """Names that the person may have in seed states, where there is no table."""


class Blueprint(FrozenModel):
    """A whole environment before it is code."""

    name: Name
    cls: Name
    title: str
    domain: str
    source: BlueprintSource
    entities: tuple[Entity, ...]
    operations: tuple[ToolBlueprint, ...]
    signed_in: SignedIn | None = None
    """Set where rules ask who acts."""
    left_out: tuple[SkippedItem, ...] = ()
    notes: tuple[str, ...] = ()

    def entity(self, table: str) -> Entity:
        return next(entity for entity in self.entities if entity.table == table)

    def referrers(self, table: str) -> list[tuple[Entity, TableColumn]]:
        """Columns that hold keys of a table, or records with such keys."""
        return [
            (entity, column)
            for entity in self.entities
            for column in entity.columns
            if table in (column.references, *(inner.references for inner in column.columns))
        ]


FINAL_STATUSES = frozenset({
    "archived", "cancelled", "canceled", "closed", "completed", "complete", "declined", "deleted", "delivered", "done",
    "expired", "failed", "finished", "refunded", "rejected", "resolved", "returned", "revoked", "terminated", "void",
    "withdrawn",
})  # fmt: skip
"""Choices of a status that nothing leads out of."""


def find_final_choices(entity: Entity) -> tuple[str, ...]:
    """Return the status values that a record never leaves again; never all of them."""
    status = None if entity.reopens else entity.status
    finals = tuple(choice for choice in status.choices if choice.lower() in FINAL_STATUSES) if status else ()
    return finals if status and len(finals) < len(status.choices) else ()


def _is_status(name: str) -> bool:
    return name.removesuffix("_value").rpartition("_")[2] in ("status", "state", "stage", "phase")
