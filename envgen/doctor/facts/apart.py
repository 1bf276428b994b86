"""Facts about what is in one place only."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal, Self

from envgen.doctor.facts.data import ANY_NAME, Data
from envgen.doctor.facts.fact import Broken, Fact, row_name, short
from envgen.doctor.view import Change, View

ROWS = 8


class Apart(Fact):
    """What a column names is not in the relation of that name: it was moved, and not copied."""

    CHECK: ClassVar[str] = "copies"
    FIRM: ClassVar[bool] = False
    kind: Literal["apart"] = "apart"
    relation: str
    column: str
    other: str

    @classmethod
    def mine(cls, data: Data) -> Iterable[Self]:
        for other, identity in data.identities.items():
            if identity in ANY_NAME or data.nodes[other].kind != "table":
                continue
            for relation in data.relations:
                column = data.columns.get((relation, identity))
                if relation == other or column is None or column.kinds != {"text"} or len(column.given) < ROWS:
                    continue
                keys = [{key[-1] for key in view.rows(other)} for view in data.views]
                if all(known.isdisjoint(values) for known, values in zip(keys, column.states, strict=True)):
                    yield cls(relation=relation, column=identity, other=other)

    def touched(self, changes: Sequence[Change]) -> bool:
        return any(change.relation in (self.relation, self.other) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        known = {key[-1] for key in before.rows(self.other)}
        was = {row.get(self.column) for row in before.rows(self.relation).values()} & known
        there = {key[-1] for key in after.rows(self.other)}
        for key, row in after.rows(self.relation).items():
            value = row.get(self.column)
            if value in there and value not in was:
                where = row_name(self.relation, key)
                return Broken(where, f"{self.column} {short(value)} is in {self.other} as well", "in one of them only")
        return None

    def text(self) -> str:
        return f"{self.relation}: what {self.column} names is not in {self.other}"
