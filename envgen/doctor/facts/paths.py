"""Facts about what rows have in common with the rows that they point to: copies, owners, indexes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal, Self

from envgen.doctor.case import Severity
from envgen.doctor.facts.data import PARENT, Data, value_at
from envgen.doctor.facts.fact import Broken, Fact, changed_rows, row_name, short
from envgen.doctor.shape import Key, Row
from envgen.doctor.view import Change, View
from grounding.names import words

ROWS = 8
Path = tuple[str, str]
"""A column, and a column of the row that it points to ("" for the column itself)."""


class Agrees(Fact):
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
    def mine(cls, data: Data) -> Iterable[Self]:
        for relation in data.relations:
            paths = list(_paths(data, relation))
            known = {path: [_follow(data, view, relation, path) for view in data.views] for path, _ in paths}
            for index, (first, target) in enumerate(paths):
                for second, other in paths[index + 1 :]:
                    hops = (first[1] or second[1]) and first[0] != second[0]
                    if hops and _may_agree(data, relation, first, second) and _agree(known[first], known[second]):
                        yield cls(relation=relation, first=first, second=second, targets=(target, other))

    def touched(self, changes: Sequence[Change]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        for change in changed_rows(changes, self.relation, (self.first[0], self.second[0])):
            row = change.after or {}
            ones = _step(after, row, change.key, self.first, self.targets[0])
            others = _step(after, row, change.key, self.second, self.targets[1])
            if ones is None or others is None or _equal(ones, others):
                continue
            where = row_name(self.relation, change.key)
            return Broken(where, f"{_told(self.first)} is {short(ones)}", f"{short(others)}, its {_told(self.second)}")
        return None

    def text(self) -> str:
        return f"{self.relation}: {_told(self.first)} agrees with {_told(self.second)}"


def _told(path: Path) -> str:
    column = "parent" if path[0] == PARENT else path[0]
    return f"{column} -> {path[1]}" if path[1] else column


def _paths(data: Data, relation: str) -> Iterator[tuple[Path, str]]:
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


def _may_agree(data: Data, relation: str, first: Path, second: Path) -> bool:
    """Numbers agree by chance; only those with one name are copies."""
    kinds: set[str] = set()
    for path in (first, second):
        reference = data.reference(relation, path[0]) if path[1] else None
        place = (reference.target, path[1]) if reference else (relation, path[0])
        kinds |= data.columns[place].kinds if place in data.columns else set()
    return "number" not in kinds or words(first[1] or first[0])[-1:] == words(second[1] or second[0])[-1:]


def _follow(data: Data, view: View, relation: str, path: Path) -> list[Any]:
    target = ""
    if path[1]:
        reference = data.reference(relation, path[0])
        target = reference.target if reference else ""
    index = _by_last(view, target) if target else {}
    return [_value(row, key, path, index) for key, row in view.rows(relation).items()]


def _by_last(view: View, relation: str) -> dict[str, tuple[Key, Row]]:
    return {key[-1]: (key, row) for key, row in view.rows(relation).items()}


def _value(row: Row, key: Key, path: Path, index: dict[str, tuple[Key, Row]]) -> Any:
    value = value_at(row, key, path[0])
    if not path[1] or value is None:
        return value
    found = index.get(str(value))
    return value_at(found[1], found[0], path[1]) if found else None


def _step(view: View, row: Row, key: Key, path: Path, target: str) -> Any:
    return _value(row, key, path, _by_last(view, target) if target else {})


def _equal(first: Any, second: Any) -> bool:
    if first == second or str(first) == str(second):
        return True
    return isinstance(first, str) and isinstance(second, str) and (second in first or first in second)


def _agree(first: list[list[Any]], second: list[list[Any]]) -> bool:
    """True if all rows agree, and would not if the rows were mixed."""
    agreed, mixed = 0, 0
    for ones, others in zip(first, second, strict=True):
        pairs = [(a, b) for a, b in zip(ones, others, strict=True) if a is not None and b is not None]
        if any(not _equal(a, b) for a, b in pairs):
            return False
        agreed += len(pairs)
        mixed += sum(not _equal(a, pairs[(index + 1) % len(pairs)][1]) for index, (a, _) in enumerate(pairs))
    return agreed >= ROWS and mixed >= max(4, 0.3 * agreed)


class Member(Fact):
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
    def mine(cls, data: Data) -> Iterable[Self]:
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

    def _holds(self, data: Data) -> bool:
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

    def touched(self, changes: Sequence[Change]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        for change in changed_rows(changes, self.relation, (self.column, self.link)):
            row = change.after or {}
            found = _by_last(after, self.target).get(str(row.get(self.link)))
            listed = found[1].get(self.listed) if found else None
            if isinstance(listed, list) and row.get(self.column) not in listed:
                where = row_name(self.relation, change.key)
                other = row_name(self.target, (str(row.get(self.link)),))
                seen = f"{self.listed} of {other} does not have {short(row.get(self.column))}"
                return Broken(where, seen, f"it has the {self.column} of every row that points to it")
        return None

    def text(self) -> str:
        return f"{self.relation}: {self.listed} of the {self.target} at {self.link} has {self.column}"


class Mirrors(Fact):
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
    def mine(cls, data: Data) -> Iterable[Self]:
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
        found = []
        for key, row in view.rows(self.relation).items():
            owner = index.get(str(row.get(self.column)))
            if owner is not None and key[-1] not in _strings(owner[1].get(self.listed)):
                where = row_name(self.target, owner[0])
                found.append((key, f"{self.listed} of {where} does not list it", f"listed, as its {self.column} says"))
        pointing = _by_last(view, self.relation)
        for key, row in view.rows(self.target).items():
            for name in _strings(row.get(self.listed)):
                item = pointing.get(name)
                if item is not None and str(item[1].get(self.column)) != key[-1]:
                    where = row_name(self.target, key)
                    seen = f"{self.listed} of {where} lists it, its {self.column} is {short(item[1].get(self.column))}"
                    found.append((item[0], seen, "both say the same"))
        return found

    def touched(self, changes: Sequence[Change]) -> bool:
        return any(change.relation in (self.relation, self.target) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        known = {(key, seen) for key, seen, _ in self._wrong(before)}
        ended = {
            change.key for change in changes if change.relation == self.relation and change.before and change.after
        }
        for key, seen, expected in self._wrong(after):
            if (key, seen) not in known and key not in ended:  # one that was changed as well may have left on purpose
                return Broken(row_name(self.relation, key), seen, expected)
        return None

    def text(self) -> str:
        return f"{self.target}: {self.listed} lists the {self.relation} whose {self.column} points to it"


def _strings(value: Any) -> set[str]:
    return {str(item) for item in value} if isinstance(value, list) else set()


class Indexes(Fact):
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
    def mine(cls, data: Data) -> Iterable[Self]:
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

    def _holds(self, data: Data) -> bool:
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
        found = []
        entries = {key[-1]: row.get("value") for key, row in view.rows(self.map).items()}
        for name in dict.fromkeys([*wanted, *entries]):
            value = entries.get(name)
            has = _strings(value) if self.listed else {str(value)} - {"None"}
            if has != wanted.get(name, set()):
                listed = ", ".join(sorted(wanted.get(name, set()))) or "nothing"
                found.append((name, short(value), f"{listed}: the {self.target} whose {self.column} is {short(name)}"))
        return found

    def touched(self, changes: Sequence[Change]) -> bool:
        return any(change.relation in (self.map, self.target) for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        known = {name for name, _, _ in self._wrong(before)}
        for name, seen, expected in self._wrong(after):
            if name not in known:
                return Broken(row_name(self.map, (name,)), seen, expected)
        return None

    def text(self) -> str:
        return f"{self.map} leads from {self.column} to the keys of {self.target}"


class When(Fact):
    """Whether a column has a value follows from the value of another."""

    CHECK: ClassVar[str] = "copies"
    FIRM: ClassVar[bool] = False
    kind: Literal["when"] = "when"
    relation: str
    column: str
    given: tuple[Any, ...]
    """Values with which the other column has one."""
    empty: tuple[Any, ...]
    """Values with which it is null."""
    other: str

    @classmethod
    def mine(cls, data: Data) -> Iterable[Self]:
        for relation in data.relations:
            columns = data.of(relation)
            for other in columns:
                share = len(other.given) / max(len(other.values), 1)
                if not 0.03 <= share <= 0.97 or other.kinds == {"flag"}:
                    continue
                for column in columns:
                    if column is other or not column.is_category or None in column.values:
                        continue
                    given, empty = _split(column.values, other.values)
                    if given and empty:
                        yield cls(relation=relation, column=column.name, given=given, empty=empty, other=other.name)

    def touched(self, changes: Sequence[Change]) -> bool:
        return any(change.relation == self.relation for change in changes)

    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        for change in changed_rows(changes, self.relation, (self.column, self.other)):
            row = change.after or {}
            value, other = row.get(self.column), row.get(self.other)
            if (value in self.given and other is None) or (value in self.empty and other is not None):
                expected = "a value" if value in self.given else "null"
                where = row_name(self.relation, change.key)
                told = f"{self.other} is {short(other)} while {self.column} is {short(value)}"
                return Broken(where, told, f"{expected}, as in every initial state")
        return None

    def text(self) -> str:
        return (
            f"{self.relation}: {self.other} has a value exactly if {self.column} is {' or '.join(map(str, self.given))}"
        )


def _split(values: Sequence[Any], others: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Values that always go with a value of the other column, and those that never do; none if one is mixed."""
    seen: dict[Any, list[int]] = {}
    for value, other in zip(values, others, strict=True):
        counts = seen.setdefault(value, [0, 0])
        counts[other is not None] += 1
    if any(empty and given for empty, given in seen.values()):
        return (), ()
    enough = {value: counts for value, counts in seen.items() if sum(counts) >= 5}
    return tuple(v for v, c in enough.items() if c[1]), tuple(v for v, c in enough.items() if c[0])
