"""Facts about identity: keys, references, forms of identifiers, what stands only once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, Self

from trajsmith.envcheck.facts.base import BrokenFact, Fact, find_changed_rows, format_row_name, shorten_value
from trajsmith.envcheck.facts.state_columns import (
    ANY_NAME,
    ObservedColumn,
    StateColumns,
    classify_value,
    normalize_identifier,
)
from trajsmith.envcheck.findings import Severity
from trajsmith.envcheck.state_clock import read_current_time
from trajsmith.envcheck.state_shape import Row
from trajsmith.envcheck.state_view import StateRowChange, View

COLLISIONS = 8.0
"""Pairs that chance would have made equal, from which on it is a rule that none is."""


class KeyColumn(Fact):
    """A column repeats the key of its row."""

    CHECK: ClassVar[str] = "references"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["named"] = "named"
    relation: str
    column: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation, column in data.identities.items():
            if data.rows(relation) >= 2:
                yield cls(relation=relation, column=column)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column,)):
            value = (change.after or {}).get(self.column)
            if str(value) != change.key[-1] and value is not None:
                where = format_row_name(self.relation, change.key)
                if change.key[-1].startswith(f"{value} (again)"):
                    return BrokenFact(
                        where, f"{self.column} is {shorten_value(value)}, as in another row", "one row of this name"
                    )
                return BrokenFact(
                    where, f"{self.column} is {shorten_value(value)}", f"its key, {shorten_value(change.key[-1])}"
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: each row goes by its {self.column}, and no other does"


class ForeignKeyFact(Fact):
    """Values of a column are keys of another relation."""

    CHECK: ClassVar[str] = "references"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["refers"] = "refers"
    relation: str
    column: str
    target: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for reference in data.references:
            if data.columns[reference.relation, reference.column].non_null:
                yield cls(relation=reference.relation, column=reference.column, target=reference.target)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(
            change.relation == self.relation or (change.relation == self.target and change.after is None)
            for change in changes
        )

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        keys = {key[-1] for key in after.rows(self.target)}
        expected = f"a key of {self.target}"
        for change in find_changed_rows(changes, self.relation, (self.column,)):
            old = _texts((change.before or {}).get(self.column))
            for text in _texts((change.after or {}).get(self.column)):
                if text not in keys and text not in old:
                    return BrokenFact(
                        format_row_name(self.relation, change.key), f"{self.column} is {shorten_value(text)}", expected
                    )
        gone = {change.key[-1] for change in changes if change.relation == self.target and change.after is None} - keys
        gone = {key for key in gone if not self._moved(key, changes)}
        for key, row in after.rows(self.relation).items() if gone else ():
            for text in _texts(row.get(self.column)):
                if text in gone:
                    where = format_row_name(self.relation, key)
                    return BrokenFact(where, f"{self.column} is still {shorten_value(text)}, which is gone", expected)
        return None

    def _moved(self, key: str, changes: Sequence[StateRowChange]) -> bool:
        """Return True if a missing row exists elsewhere under the same key (a trash, an archive)."""
        return any(
            change.before is None and change.after is not None and (key in change.after.values() or key in change.key)
            for change in changes
        )

    def text(self) -> str:
        return f"{self.relation}: {self.column} is a key of {self.target}"


def _texts(value: Any) -> set[str]:
    values = value if isinstance(value, list) else [value]
    return {str(item) for item in values if item is not None and item != "" and not isinstance(item, dict | list)}


class IdentifierFormat(Fact):
    """Identifiers of a relation have one form."""

    CHECK: ClassVar[str] = "identifiers"
    FIRM: ClassVar[bool] = False
    kind: Literal["formed"] = "formed"
    relation: str
    column: str
    forms: tuple[str, ...]

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation, column in data.identities.items():
            values = [value for value in data.columns[relation, column].non_null if isinstance(value, str)]
            forms = sorted({normalize_identifier(value) for value in values})
            if len(set(values)) >= 5 and len(forms) == 1 and "#" in forms[0]:
                yield cls(relation=relation, column=column, forms=tuple(forms))

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation and change.before is None for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in changes:
            if change.relation != self.relation or change.before is not None or change.after is None:
                continue
            value = change.after.get(self.column)
            if not isinstance(value, str) or normalize_identifier(value) not in self.forms:
                expected = f"the form of the others: {' or '.join(self.forms)}"
                return BrokenFact(
                    format_row_name(self.relation, change.key), f"{self.column} is {shorten_value(value)}", expected
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.column} has the form {' or '.join(self.forms)}"


class UniquePair(Fact):
    """No two rows of a state relate the same two things to one another, unless one of the rows is over."""

    CHECK: ClassVar[str] = "uniqueness"
    kind: Literal["once"] = "once"
    relation: str
    columns: tuple[str, str]
    status: tuple[str, ...]
    """Columns that say what a row's life has come to; rows that differ there may relate the same things."""
    ends: tuple[str, ...]
    """Columns with days or moments; rows on different sides of the clock may as well."""

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            columns = [
                c for c in data.of(relation) if data.reference(relation, c.name) and c.kinds <= {"text", "number"}
            ]
            columns = [c for c in columns if c.name != data.identities.get(relation)]
            status = tuple(c.name for c in data.of(relation) if _says_status(c) and c not in columns)
            ends = tuple(c.name for c in data.of(relation) if c.kinds & {"day", "moment"})
            for index, first in enumerate(columns):
                for second in columns[index + 1 :]:
                    if _expected(first.states, second.states) >= COLLISIONS and _apart(first.states, second.states):
                        yield cls(relation=relation, columns=(first.name, second.name), status=status, ends=ends)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        now = read_current_time(after).isoformat()
        for change in find_changed_rows(changes, self.relation, self.columns):
            row = change.after or {}
            values = [row.get(name) for name in self.columns]
            if None in values:
                continue
            for key, other in after.rows(self.relation).items():
                same = key != change.key and [other.get(name) for name in self.columns] == values
                if same and self._life(row, now) == self._life(other, now):
                    pair_text = ", ".join(
                        f"{name} {shorten_value(value)}" for name, value in zip(self.columns, values, strict=True)
                    )
                    where, twin = format_row_name(self.relation, change.key), format_row_name(self.relation, key)
                    return BrokenFact(
                        where, f"{pair_text}, as {twin} has", "no two such rows, as in every initial state"
                    )
        return None

    def _life(self, row: Row, now: str) -> list[Any]:
        return [
            *(row.get(name) for name in self.status),
            *(None if row.get(name) is None else str(row[name]) >= now[: len(str(row[name]))] for name in self.ends),
        ]

    def text(self) -> str:
        return f"{self.relation}: no two rows have the same {' and '.join(self.columns)}"


def _says_status(column: ObservedColumn) -> bool:
    return column.kinds == {"flag"} or (column.kinds == {"text"} and 5 * column.distinct <= len(column.non_null))


def _apart(first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]]) -> bool:
    for ones, others in zip(first, second, strict=True):
        pairs = [(a, b) for a, b in zip(ones, others, strict=True) if a is not None and b is not None]
        if len(set(pairs)) != len(pairs):
            return False
    return True


def _expected(first: Sequence[Sequence[Any]], second: Sequence[Sequence[Any]]) -> float:
    """Return the expected number of equal pairs if both columns were independent."""
    total = 0.0
    for ones, others in zip(first, second, strict=True):
        rows = [(a, b) for a, b in zip(ones, others, strict=True) if a is not None and b is not None]
        pairs = len(rows) * (len(rows) - 1) / 2
        if pairs:
            total += _equal(a for a, _ in rows) * _equal(b for _, b in rows) / pairs
    return total


def _equal(values: Iterable[Any]) -> float:
    return sum(count * (count - 1) / 2 for count in Counter(values).values())


class ColumnType(Fact):
    """A column has one type; it is null nowhere, or may be null."""

    CHECK: ClassVar[str] = "state_schema"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["typed"] = "typed"
    relation: str
    column: str
    kinds: tuple[str, ...]

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for column in data.columns.values():
            if len(column.non_null) >= 5 and len(column.kinds) == 1 and not column.kinds & {"other", "list"}:
                yield cls(relation=column.relation, column=column.name, kinds=tuple(sorted(column.kinds)))

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column,)):
            value = (change.after or {}).get(self.column)
            if value is None or _broad(classify_value(value)) == _broad(self.kinds[0]):
                continue
            return BrokenFact(
                format_row_name(self.relation, change.key),
                f"{self.column} is {shorten_value(value)}",
                f"a {_broad(self.kinds[0])}, as in every initial state",
            )
        return None

    def text(self) -> str:
        return f"{self.relation or 'state'}: {self.column} is a {_broad(self.kinds[0])}"


def _broad(kind: str) -> str:
    return "text" if kind in ("day", "moment") else kind


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
