"""Typed operations of solution programs (Agent-World, section 3.1.1): lists, filters, joins, order, writes, answers.

A program is data first: it can be read, stored, mutated and compared like any record, and nothing in it runs code. The
Python text that a dataset shows is generated from it (`python_source`) and proved to do the same in the sandbox.
"""

from typing import Annotated, Literal

from pydantic import Field

from trajsmith.records import FrozenModel, GoldCall, JsonObject, JsonValue

Comparison = Literal["equals", "above", "below"]


class KeepRows(FrozenModel):
    """Filter of rows by a comparison of one field."""

    kind: Literal["keep"] = "keep"
    field: str
    how: Comparison
    value: JsonValue


class ListRows(FrozenModel):
    """The rows that the program is about: one call, one call per page, or one call per row of another list."""

    tool: str
    arguments: JsonObject = {}
    """Fixed arguments."""
    owner: str = ""
    """Parameter that takes the field of this name of the opening call's result."""
    page: str = ""
    """Parameter that counts pages from 1; the last page is the first that is not full."""
    parent: "ListRows | None" = None
    parent_key: str = ""
    """Parameter that takes the field of this name of each row of the parent."""
    parents: tuple[KeepRows, ...] = ()
    """Filters of the parent's rows: no call is made for the others."""


class LookUpRows(FrozenModel):
    """Join by a loop: a tool is called for every row, and its fields are added to the row."""

    kind: Literal["look_up"] = "look_up"
    tool: str
    field: str
    """Field of the row, and the parameter that takes it."""


class JoinRows(FrozenModel):
    """Join of two lists: rows stay whose field occurs in the other list, or does not."""

    kind: Literal["join"] = "join"
    tool: str
    owner: str
    on: str
    present: bool


class TakeRows(FrozenModel):
    """Sort rows by a field and keep the first ones; a tie at the cut is an error."""

    kind: Literal["take"] = "take"
    field: str
    descending: bool
    count: int = Field(ge=1)


Step = Annotated[KeepRows | LookUpRows | JoinRows | TakeRows, Field(discriminator="kind")]


class Branch(FrozenModel):
    """Condition of the writes: the aggregate of a field compared with a bound."""

    how: Literal["sum", "count"]
    field: str = ""
    above: bool
    value: int | float


class WriteRows(FrozenModel):
    """Loop with writes: a tool is called for every row that is left."""

    tool: str
    field: str
    """Field of the row, and the parameter that takes it."""
    arguments: JsonObject = {}
    adds: str = ""
    """Numeric field of the results that becomes a field of the rows."""


class Aggregate(FrozenModel):
    """Answer of a program, computed from its rows."""

    how: Literal["count", "sum", "mean", "largest", "smallest", "labels", "ordered", "share", "difference", "done"]
    """`labels` and `ordered` list the labels of rows, `share` is the percentage that is left, `difference` is largest
    minus smallest, `done` answers nothing beyond the report of the writes."""
    field: str = ""
    label: str = ""
    """Field that names a row."""


class SolutionProgram(FrozenModel):
    """A program: an opening, the rows, steps over them, writes under a condition, and an answer."""

    environment: str
    table: str
    """Key of the phrasebook's `tables`."""
    opening: tuple[GoldCall, ...] = ()
    rows: ListRows
    steps: tuple[Step, ...] = ()
    branch: Branch | None = None
    write: WriteRows | None = None
    answer: Aggregate

    @property
    def operations(self) -> tuple[str, ...]:
        """Kinds of the operations, in order: "list", "loop", "keep", "join", "write", "sum", ..."""
        names = ["list"]
        names += ["pages"] if self.rows.page else []
        names += [*(["keep"] * len(self.rows.parents)), "loop"] if self.rows.parent else []
        for step in self.steps:
            names += ["loop", "join"] if step.kind == "look_up" else [step.kind]
        names += ["branch"] if self.branch else []
        names += ["loop", "write"] if self.write else []
        return (*names, self.answer.how)


class ProgramFailed(Exception):
    """A call of a program was refused, its rows lack what it needs, or its answer is not one."""
