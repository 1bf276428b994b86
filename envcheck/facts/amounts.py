"""Facts about amounts: what is never negative, never out of order, and what adds up."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

from trajsmith.envcheck.facts.base import BrokenFact, Fact, find_changed_rows, format_row_name, shorten_value
from trajsmith.envcheck.facts.state_columns import ObservedColumn, StateColumns, is_number
from trajsmith.envcheck.findings import Severity
from trajsmith.envcheck.state_shape import Key, Row
from trajsmith.envcheck.state_view import StateRowChange, View
from trajsmith.grounding import is_identifier

CENT = 0.0101
"""Sums of money may be rounded."""
ROWS = 12
"""Rows that a numeric fact needs."""


class NonNegative(Fact):
    """A number is never negative."""

    CHECK: ClassVar[str] = "bounds"
    FIRM: ClassVar[bool] = False
    kind: Literal["floor"] = "floor"
    relation: str
    column: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for column in data.columns.values():
            if column.kinds == {"number"} and len(column.non_null) >= ROWS and column.distinct >= 4:
                low, high = min(column.non_null), max(column.non_null)
                if low >= 0 and (low == 0 or high >= 2 * low) and not is_identifier(column.name):
                    yield cls(relation=column.relation, column=column.name)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column,)):
            value = (change.after or {}).get(self.column)
            if is_number(value) and value < 0:
                where = format_row_name(self.relation, change.key)
                return BrokenFact(
                    where, f"{self.column} is {shorten_value(value)}", "never below zero, as in every initial state"
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.column} is never negative"


class OrderedColumns(Fact):
    """One value of a row is never above another."""

    CHECK: ClassVar[str] = "bounds"
    FIRM: ClassVar[bool] = False
    kind: Literal["ordered"] = "ordered"
    relation: str
    low: str
    high: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            columns = [column for column in data.of(relation) if _comparable(column)]
            for low in columns:
                for high in columns:
                    if low is not high and low.kinds == high.kinds and _ordered(low.values, high.values):
                        yield cls(relation=relation, low=low.name, high=high.name)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.low, self.high)):
            row = change.after or {}
            low, high = row.get(self.low), row.get(self.high)
            if (
                low is None
                or high is None
                or (type(low) is not type(high) and not (is_number(low) and is_number(high)))
            ):
                continue
            if low > high:
                where = format_row_name(self.relation, change.key)
                seen = f"{self.low} is {shorten_value(low)}, {self.high} is {shorten_value(high)}"
                return BrokenFact(
                    where, seen, f"{self.low} never after or above {self.high}, as in every initial state"
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.low} is at most {self.high}"


class CoveredDeficit(Fact):
    """A number falls below zero only as far as another one of its row allows."""

    CHECK: ClassVar[str] = "bounds"
    kind: Literal["covered"] = "covered"
    relation: str
    column: str
    cover: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            numbers = [c for c in data.of(relation) if c.kinds == {"number"} and len(c.non_null) >= ROWS]
            for column in (c for c in numbers if min(c.non_null) < 0):
                for cover in (c for c in numbers if min(c.non_null) >= 0 and c.distinct >= 2):
                    pairs = [
                        (a, b)
                        for a, b in zip(column.values, cover.values, strict=True)
                        if a is not None and b is not None
                    ]
                    below = sum(a < 0 for a, _ in pairs)
                    uncovered = sum(b == 0 for _, b in pairs)
                    if below >= 5 and uncovered >= 5 and all(a + b >= 0 for a, b in pairs):
                        yield cls(relation=relation, column=column.name, cover=cover.name)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column, self.cover)):
            row = change.after or {}
            value, cover = row.get(self.column), row.get(self.cover)
            if is_number(value) and is_number(cover) and value + cover < -CENT:
                where = format_row_name(self.relation, change.key)
                seen = f"{self.column} is {shorten_value(value)}, {self.cover} is {shorten_value(cover)}"
                return BrokenFact(
                    where, seen, f"{self.column} never below minus {self.cover}, as in every initial state"
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.column} is at least minus {self.cover}"


def _comparable(column: ObservedColumn) -> bool:
    one = len(column.kinds) == 1 and column.kinds <= {"number", "day", "moment"}
    return one and len(column.non_null) >= ROWS and column.distinct >= 4


def _ordered(low: Sequence[Any], high: Sequence[Any]) -> bool:
    """Return True if one is never above the other, and the order is unlikely by chance."""
    pairs = [(a, b) for a, b in zip(low, high, strict=True) if a is not None and b is not None]
    if len(pairs) < ROWS or any(a > b for a, b in pairs) or all(a == b for a, b in pairs):
        return False
    step = len(pairs) // 2 + 1
    mixed = sum(a > pairs[(index + step) % len(pairs)][1] for index, (a, _) in enumerate(pairs))
    return bool(mixed >= max(3, 0.08 * len(pairs)))


class SumOfRows(Fact):
    """A number of a row is a sum over the rows inside it or pointing to it, of one column or of a product of two."""

    CHECK: ClassVar[str] = "totals"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["adds"] = "adds"
    relation: str
    column: str
    child: str
    link: str
    """Column of the child that points to the row; empty for rows inside it."""
    factors: tuple[str, ...]
    """Columns that are multiplied; none for a count of rows."""

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            totals = [
                c for c in data.of(relation) if c.kinds == {"number"} and c.distinct >= 3 and len(c.non_null) >= 6
            ]
            for child, link in _children(data, relation) if totals else ():
                for factors in _factors(data, child):
                    for column in totals:
                        fact = cls(relation=relation, column=column.name, child=child, link=link, factors=factors)
                        if fact._holds(data):
                            yield fact

    def _holds(self, data: StateColumns) -> bool:
        full = 0
        for view in data.views:
            sums = self._sums(view)
            for key, row in view.rows(self.relation).items():
                value, total = row.get(self.column), sums.get(key if not self.link else key[-1:], 0.0)
                if value is None or abs(value - total) > CENT:
                    return False
                full += total != 0
        return full >= 6

    def _sums(self, view: View) -> dict[Key, float]:
        sums: dict[Key, float] = {}
        for key, row in view.rows(self.child).items():
            owner = (str(row.get(self.link)),) if self.link else key[:-1]
            sums[owner] = sums.get(owner, 0.0) + self._value(row)
        return sums

    def _value(self, row: Row) -> float:
        value = 1.0
        for name in self.factors:
            factor = row.get(name)
            value *= factor if is_number(factor) else 0.0
        return value

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation in (self.relation, self.child) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        old, new = self._sums(before), self._sums(after)
        for key, row in after.rows(self.relation).items():
            earlier = before.rows(self.relation).get(key)
            owner = key[-1:] if self.link else key
            if earlier is not None and abs(old.get(owner, 0.0) - new.get(owner, 0.0)) <= CENT:
                continue  # a total that is set by itself is a discount, a payment, a correction
            value, total = row.get(self.column), round(new.get(owner, 0.0), 2)
            if not is_number(value) or abs(value - total) <= CENT:
                continue
            known = (earlier or {}).get(self.column)
            if is_number(known) and abs(known - old.get(owner, 0.0)) > CENT:
                continue
            return BrokenFact(
                format_row_name(self.relation, key),
                f"{self.column} is {shorten_value(value)}",
                f"{shorten_value(total)}, {self._describe_sum()}",
            )
        return None

    def _describe_sum(self) -> str:
        of = " x ".join(self.factors)
        return f"the sum of {of} over its {self.child}" if of else f"the number of its {self.child}"

    def text(self) -> str:
        return f"{self.relation}: {self.column} is {self._describe_sum()}"


def _children(data: StateColumns, relation: str) -> Iterator[tuple[str, str]]:
    for name in data.relations:
        if name.startswith(f"{relation}.") and "." not in name[len(relation) + 1 :]:
            yield name, ""
    for reference in data.references:
        if reference.target == relation and not reference.listed and data.nodes[relation].kind == "table":
            yield reference.relation, reference.column


def _factors(data: StateColumns, child: str) -> Iterator[tuple[str, ...]]:
    numbers = [c.name for c in data.of(child) if c.kinds == {"number"} and not is_identifier(c.name)]
    yield ()
    for index, first in enumerate(numbers[:8]):
        yield (first,)
        for second in numbers[index + 1 : 8]:
            yield (first, second)


class ProductOfColumns(Fact):
    """A number of a row is the product of two others."""

    CHECK: ClassVar[str] = "totals"
    kind: Literal["multiplies"] = "multiplies"
    relation: str
    column: str
    factors: tuple[str, str]

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            numbers = [
                c for c in data.of(relation) if c.kinds == {"number"} and c.distinct >= 3 and len(c.non_null) >= 8
            ]
            for column in numbers:
                for index, first in enumerate(numbers):
                    for second in numbers[index + 1 :]:
                        if column is not first and column is not second and _is_product(column, first, second):
                            yield cls(relation=relation, column=column.name, factors=(first.name, second.name))

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column, *self.factors)):
            row = change.after or {}
            value, first, second = row.get(self.column), row.get(self.factors[0]), row.get(self.factors[1])
            if is_number(value) and is_number(first) and is_number(second) and abs(value - first * second) > CENT:
                expected = f"{shorten_value(round(first * second, 2))}, {self.factors[0]} x {self.factors[1]}"
                where = format_row_name(self.relation, change.key)
                return BrokenFact(where, f"{self.column} is {shorten_value(value)}", expected)
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.column} is {self.factors[0]} x {self.factors[1]}"


def _is_product(column: ObservedColumn, first: ObservedColumn, second: ObservedColumn) -> bool:
    rows = [
        (value, a, b)
        for value, a, b in zip(column.values, first.values, second.values, strict=True)
        if value is not None and a is not None and b is not None
    ]
    telling = sum(a not in (0, 1) and b not in (0, 1) for _, a, b in rows)
    return telling >= 5 and all(abs(value - a * b) <= CENT for value, a, b in rows)


class ListLengthColumn(Fact):
    """A number of a row is the length of one of its lists."""

    CHECK: ClassVar[str] = "totals"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["counts"] = "counts"
    relation: str
    column: str
    listed: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for column in data.columns.values():
            if column.kinds != {"list"} or len({len(value) for value in column.non_null}) < 3:
                continue
            for number in data.of(column.relation):
                if number.kinds == {"number"} and all(
                    is_number(count) and count == len(listed)
                    for count, listed in zip(number.values, column.values, strict=True)
                    if isinstance(listed, list)
                ):
                    yield cls(relation=column.relation, column=number.name, listed=column.name)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column, self.listed)):
            row = change.after or {}
            count, listed = row.get(self.column), row.get(self.listed)
            if isinstance(listed, list) and count != len(listed):
                where = format_row_name(self.relation, change.key)
                return BrokenFact(
                    where, f"{self.column} is {shorten_value(count)}", f"{len(listed)}, the length of {self.listed}"
                )
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.column} is the length of {self.listed}"
