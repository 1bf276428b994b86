"""Facts about what rows have in common with the rows that they point to: copies, owners, indexes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

from trajsmith.envcheck.facts.base import BrokenFact, Fact, find_changed_rows, format_row_name, shorten_value
from trajsmith.envcheck.facts.state_columns import PARENT, StateColumns, get_row_value
from trajsmith.envcheck.findings import Severity
from trajsmith.envcheck.state_shape import Key, Row
from trajsmith.envcheck.state_view import StateRowChange, View
from trajsmith.grounding import split_name

ROWS = 8
Path = tuple[str, str]
"""A column, and a column of the row that it points to ("" for the column itself)."""


class AgreeingPaths(Fact):
    """Two ways from a row lead to equal values: copies agree with what they copy, owners with one another."""

    CHECK: ClassVar[str] = "copies"
    FIRM: ClassVar[bool] = False
    kind: Literal["agrees"] = "agrees"
    relation: str
    first: Path
    second: Path
    targets: tuple[str, str]
    """Relations that the first columns of the paths point to; empty where there is no second column."""

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            paths = list(_paths(data, relation))
            known = {path: [_follow(data, view, relation, path) for view in data.views] for path, _ in paths}
            for index, (first, target) in enumerate(paths):
                for second, other in paths[index + 1 :]:
                    hops = (first[1] or second[1]) and first[0] != second[0]
                    if hops and _may_agree(data, relation, first, second) and _agree(known[first], known[second]):
                        yield cls(relation=relation, first=first, second=second, targets=(target, other))

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.first[0], self.second[0])):
            row = change.after or {}
            ones = _step(after, row, change.key, self.first, self.targets[0])
            others = _step(after, row, change.key, self.second, self.targets[1])
            if ones is None or others is None or _equal(ones, others) or _is_inside(ones, others):
                continue
            where = format_row_name(self.relation, change.key)
            return BrokenFact(
                where,
                f"{_format_path(self.first)} is {shorten_value(ones)}",
                f"{shorten_value(others)}, its {_format_path(self.second)}",
            )
        return None

    def text(self) -> str:
        return f"{self.relation}: {_format_path(self.first)} agrees with {_format_path(self.second)}"


def _format_path(path: Path) -> str:
    column = "parent" if path[0] == PARENT else path[0]
    return f"{column} -> {path[1]}" if path[1] else column


def _paths(data: StateColumns, relation: str) -> Iterator[tuple[Path, str]]:
    for column in data.of(relation):
        if column.kinds <= {"text", "day", "moment", "number"} and column.distinct >= 4:
            yield (column.name, ""), ""
    for column in data.of(relation):
        reference = data.reference(relation, column.name)
        if reference is None or reference.listed or reference.target == relation:
            continue
        identity = data.identities.get(reference.target)
        for other in data.of(reference.target):
            if other.name != identity and other.kinds <= {"text", "number"} and other.distinct >= 4:
                yield (column.name, other.name), reference.target
        if "." in reference.target and data.nodes[reference.target].kind == "list":
            yield (column.name, PARENT), reference.target


def _may_agree(data: StateColumns, relation: str, first: Path, second: Path) -> bool:
    """Numbers agree by chance; only those with one name are copies."""
    kinds: set[str] = set()
    for path in (first, second):
        reference = data.reference(relation, path[0]) if path[1] else None
        place = (reference.target, path[1]) if reference else (relation, path[0])
        kinds |= data.columns[place].kinds if place in data.columns else set()
    return "number" not in kinds or split_name(first[1] or first[0])[-1:] == split_name(second[1] or second[0])[-1:]


def _follow(data: StateColumns, view: View, relation: str, path: Path) -> list[Any]:
    target = ""
    if path[1]:
        reference = data.reference(relation, path[0])
        target = reference.target if reference else ""
    index = _by_last(view, target) if target else {}
    return [_value(row, key, path, index) for key, row in view.rows(relation).items()]


def _by_last(view: View, relation: str) -> dict[str, tuple[Key, Row]]:
    return {key[-1]: (key, row) for key, row in view.rows(relation).items()}


def _value(row: Row, key: Key, path: Path, index: dict[str, tuple[Key, Row]]) -> Any:
    value = get_row_value(row, key, path[0])
    if not path[1] or value is None:
        return value
    target_row = index.get(str(value))
    return get_row_value(target_row[1], target_row[0], path[1]) if target_row else None


def _step(view: View, row: Row, key: Key, path: Path, target: str) -> Any:
    return _value(row, key, path, _by_last(view, target) if target else {})


def _equal(first: Any, second: Any) -> bool:
    """Return True for equal values, and for a code or a number inside another value.

    A name inside a name ("Bread baking" in "Bread baking: chapter 2") is how somebody called it, and no rule.
    """
    if first == second or str(first) == str(second):
        return True
    return _is_inside(first, second) and any(sign.isdigit() for sign in min(first, second, key=len))


def _is_inside(first: Any, second: Any) -> bool:
    """Return True if one of two texts holds the other: that breaks no rule that two values are equal."""
    return isinstance(first, str) and isinstance(second, str) and (second in first or first in second)


def _agree(first: list[list[Any]], second: list[list[Any]]) -> bool:
    """Return True if all rows agree, and the agreement is unlikely by chance."""
    agreed, mixed = 0, 0
    for ones, others in zip(first, second, strict=True):
        pairs = [(a, b) for a, b in zip(ones, others, strict=True) if a is not None and b is not None]
        if any(not _equal(a, b) for a, b in pairs):
            return False
        agreed += len(pairs)
        mixed += sum(not _equal(a, pairs[(index + 1) % len(pairs)][1]) for index, (a, _) in enumerate(pairs))
    return agreed >= ROWS and mixed >= max(4, 0.3 * agreed)


class ListedMember(Fact):
    """The row that a column points to lists another value of the row."""

    CHECK: ClassVar[str] = "copies"
    FIRM: ClassVar[bool] = False
    kind: Literal["member"] = "member"
    relation: str
    column: str
    link: str
    target: str
    listed: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        lists = [column for column in data.columns.values() if column.kinds == {"list"} and column.relation]
        for reference in data.references:
            for listed in lists:
                if reference.listed or listed.relation != reference.target:
                    continue
                for column in data.of(reference.relation):
                    if column.name != reference.column and column.kinds == {"text"} and column.distinct >= 4:
                        fact = cls(
                            relation=reference.relation,
                            column=column.name,
                            link=reference.column,
                            target=reference.target,
                            listed=listed.name,
                        )
                        if fact._holds(data):
                            yield fact

    def _holds(self, data: StateColumns) -> bool:
        held = mixed = 0
        for view in data.views:
            index = _by_last(view, self.target)
            rows = [row for row in view.rows(self.relation).values() if str(row.get(self.link)) in index]
            for place, row in enumerate(rows):
                listed = index[str(row.get(self.link))][1].get(self.listed) or []
                if row.get(self.column) is None or row[self.column] not in listed:
                    return False
                held += 1
                mixed += rows[(place + 1) % len(rows)].get(self.column) not in listed
        return held >= 5 and mixed >= max(3, 0.3 * held)

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column, self.link)):
            row = change.after or {}
            target_row = _by_last(after, self.target).get(str(row.get(self.link)))
            listed = target_row[1].get(self.listed) if target_row else None
            if isinstance(listed, list) and row.get(self.column) not in listed:
                where = format_row_name(self.relation, change.key)
                other = format_row_name(self.target, (str(row.get(self.link)),))
                seen = f"{self.listed} of {other} does not have {shorten_value(row.get(self.column))}"
                return BrokenFact(where, seen, f"it has the {self.column} of every row that points to it")
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.listed} of the {self.target} at {self.link} has {self.column}"


class MirroredReference(Fact):
    """Rows list the rows that point to them: both directions say the same."""

    CHECK: ClassVar[str] = "indexes"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["mirrors"] = "mirrors"
    relation: str
    """The rows that point."""
    column: str
    target: str
    """The rows that list."""
    listed: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for reference in data.references:
            for back in data.references:
                opposite = back.relation == reference.target and back.target == reference.relation
                if back.listed and not reference.listed and opposite:
                    fact = cls(
                        relation=reference.relation,
                        column=reference.column,
                        target=reference.target,
                        listed=back.column,
                    )
                    held = [fact._wrong(view) for view in data.views]
                    if not any(held) and sum(len(view.rows(reference.relation)) for view in data.views) >= 4:
                        yield fact

    def _wrong(self, view: View) -> list[tuple[Key, str, str]]:
        """Every disagreement: row that points, what is seen, what is expected."""
        index = _by_last(view, self.target)
        disagreements = []
        for key, row in view.rows(self.relation).items():
            owner = index.get(str(row.get(self.column)))
            if owner is not None and key[-1] not in _strings(owner[1].get(self.listed)):
                where = format_row_name(self.target, owner[0])
                disagreements.append(
                    (key, f"{self.listed} of {where} does not list it", f"listed, as its {self.column} says")
                )
        pointing = _by_last(view, self.relation)
        for key, row in view.rows(self.target).items():
            for name in _strings(row.get(self.listed)):
                item = pointing.get(name)
                if item is not None and str(item[1].get(self.column)) != key[-1]:
                    where = format_row_name(self.target, key)
                    seen = (
                        f"{self.listed} of {where} lists it, its {self.column} is "
                        f"{shorten_value(item[1].get(self.column))}"
                    )
                    disagreements.append((item[0], seen, "both say the same"))
        return disagreements

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation in (self.relation, self.target) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        known = {(key, seen) for key, seen, _ in self._wrong(before)}
        ended = {
            change.key for change in changes if change.relation == self.relation and change.before and change.after
        }
        for key, seen, expected in self._wrong(after):
            if (key, seen) not in known and key not in ended:  # one that was changed as well may have left on purpose
                return BrokenFact(format_row_name(self.relation, key), seen, expected)
        return None

    def text(self) -> str:
        return f"{self.target}: {self.listed} lists the {self.relation} whose {self.column} points to it"


def _strings(value: Any) -> set[str]:
    return {str(item) for item in value} if isinstance(value, list) else set()


class IndexMap(Fact):
    """A map leads from a column of a relation to the keys of its rows."""

    CHECK: ClassVar[str] = "indexes"
    SEVERITY: ClassVar[Severity] = "error"
    kind: Literal["indexes"] = "indexes"
    map: str
    target: str
    column: str
    listed: bool
    """True if the map leads to lists of keys."""

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for name, node in data.nodes.items():
            if node.kind != "map" or name not in data.relations:
                continue
            listed = data.columns[name, "value"].kinds == {"list"}
            for target in data.relations:
                if data.nodes[target].kind != "table":
                    continue
                for column in data.of(target):
                    if column.kinds == {"text"} and column.name != data.identities.get(target):
                        fact = cls(map=name, target=target, column=column.name, listed=listed)
                        if fact._holds(data):
                            yield fact

    def _holds(self, data: StateColumns) -> bool:
        held = 0
        for view in data.views:
            if self._wrong(view):
                return False
            held += len(view.rows(self.map))
        return held >= 3

    def _wrong(self, view: View) -> list[tuple[str, str, str]]:
        wanted: dict[str, set[str]] = {}
        for key, row in view.rows(self.target).items():
            if row.get(self.column) is not None:
                wanted.setdefault(str(row[self.column]), set()).add(key[-1])
        disagreements = []
        entries = {key[-1]: row.get("value") for key, row in view.rows(self.map).items()}
        for name in dict.fromkeys([*wanted, *entries]):
            value = entries.get(name)
            has = _strings(value) if self.listed else {str(value)} - {"None"}
            if has != wanted.get(name, set()):
                listed = ", ".join(sorted(wanted.get(name, set()))) or "nothing"
                disagreements.append(
                    (
                        name,
                        shorten_value(value),
                        f"{listed}: the {self.target} whose {self.column} is {shorten_value(name)}",
                    )
                )
        return disagreements

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation in (self.map, self.target) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        known = {name for name, _, _ in self._wrong(before)}
        for name, seen, expected in self._wrong(after):
            if name not in known:
                return BrokenFact(format_row_name(self.map, (name,)), seen, expected)
        return None

    def text(self) -> str:
        return f"{self.map} leads from {self.column} to the keys of {self.target}"


class ConditionalPresence(Fact):
    """The value of one column decides if another column is null."""

    CHECK: ClassVar[str] = "copies"
    FIRM: ClassVar[bool] = False
    kind: Literal["when"] = "when"
    relation: str
    column: str
    non_null: tuple[Any, ...]
    """Values with which the other column has one."""
    empty: tuple[Any, ...]
    """Values with which it is null."""
    other: str

    @classmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        for relation in data.relations:
            columns = data.of(relation)
            for other in columns:
                share = len(other.non_null) / max(len(other.values), 1)
                if not 0.03 <= share <= 0.97 or other.kinds == {"flag"}:
                    continue
                for column in columns:
                    if column is other or not column.is_category or None in column.values:
                        continue
                    non_null, empty = _split(column.values, other.values)
                    if non_null and empty:
                        yield cls(
                            relation=relation, column=column.name, non_null=non_null, empty=empty, other=other.name
                        )

    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        for change in find_changed_rows(changes, self.relation, (self.column, self.other)):
            row = change.after or {}
            value, other = row.get(self.column), row.get(self.other)
            if (value in self.non_null and other is None) or (value in self.empty and other is not None):
                expected = "a value" if value in self.non_null else "null"
                where = format_row_name(self.relation, change.key)
                observed = f"{self.other} is {shorten_value(other)} while {self.column} is {shorten_value(value)}"
                return BrokenFact(where, observed, f"{expected}, as in every initial state")
        return None

    def text(self) -> str:
        return (
            f"{self.relation}: {self.other} has a value exactly if {self.column} is "
            f"{' or '.join(map(str, self.non_null))}"
        )


def _split(values: Sequence[Any], others: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Values that always go with a value of the other column, and those that never do; none if one is mixed."""
    seen: dict[Any, list[int]] = {}
    for value, other in zip(values, others, strict=True):
        counts = seen.setdefault(value, [0, 0])
        counts[other is not None] += 1
    if any(empty and with_value for empty, with_value in seen.values()):
        return (), ()
    enough = {value: counts for value, counts in seen.items() if sum(counts) >= 5}
    return tuple(v for v, c in enough.items() if c[1]), tuple(v for v, c in enough.items() if c[0])
