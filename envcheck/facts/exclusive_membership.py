"""Facts about what is in one place only."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, Self

from trajsmith.envcheck.facts.base import BrokenFact, Fact, format_row_name, shorten_value
from trajsmith.envcheck.facts.state_columns import ANY_NAME, StateColumns
from trajsmith.envcheck.state_view import StateRowChange, View

ROWS = 8


class ExclusiveMembership(Fact):
    """A column's key never exists in the relation of that name: rows are moved, not copied."""

    CHECK: ClassVar[str] = "copies"
    FIRM: ClassVar[bool] = False
    kind: Literal["apart"] = "apart"
    relation: str
    column: str
    other: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for other, identity in data.identities.items():
            if identity in ANY_NAME or data.nodes[other].kind != "table":
                continue
            for relation in data.relations:
                column = data.columns.get((relation, identity))
                if relation == other or column is None or column.kinds != {"text"} or len(column.non_null) < ROWS:
                    continue
                keys = [{key[-1] for key in view.rows(other)} for view in data.views]
                if all(known.isdisjoint(values) for known, values in zip(keys, column.states, strict=True)):
                    yield cls(relation=relation, column=identity, other=other)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation in (self.relation, self.other) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        known = {key[-1] for key in before.rows(self.other)}
        was = {row.get(self.column) for row in before.rows(self.relation).values()} & known
        there = {key[-1] for key in after.rows(self.other)}
        for key, row in after.rows(self.relation).items():
            value = row.get(self.column)
            if value in there and value not in was:
                where = format_row_name(self.relation, key)
                return BrokenFact(
                    where, f"{self.column} {shorten_value(value)} is in {self.other} as well", "in one of them only"
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: what {self.column} names is not in {self.other}"
