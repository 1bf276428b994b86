"""The initial states as columns, from which facts are mined."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeGuard

from trajsmith.envcheck.state_shape import ROOT, Key, Row, ShapeNode, list_relations
from trajsmith.envcheck.state_view import View
from trajsmith.grounding import is_identifier, split_name
from trajsmith.phrasing import singularize

ANY_NAME = frozenset({"id", "key", "name", "code", "number", "title", "type", "uuid", "index"})
"""Names of identifiers that do not say of what."""
PARENT = "^"
"""Stands for the key of the row around a nested row, as if it were a column."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_DIGITS = re.compile(r"\d+")


def is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_moment(value: Any) -> bool:
    return isinstance(value, str) and _MOMENT.match(value) is not None


def is_day(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 10 and _DAY.fullmatch(value) is not None


def normalize_identifier(text: str) -> str:
    """The form of an identifier: digits and single letters replaced, prefixes kept: "W10012" -> "W#"."""
    return _DIGITS.sub("#", text)


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """Values of a column are keys of a relation."""

    relation: str
    column: str
    target: str
    listed: bool
    """True if the column holds lists of keys."""


@dataclass
class ObservedColumn:
    """All values of one field of a relation, state by state, in the order of the rows."""

    relation: str
    name: str
    states: list[list[Any]]

    @cached_property
    def values(self) -> list[Any]:
        return [value for state in self.states for value in state]

    @cached_property
    def non_null(self) -> list[Any]:
        return [value for value in self.values if value is not None]

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(classify_value(value) for value in self.non_null)

    @cached_property
    def distinct(self) -> int:
        return len(set(map(repr, self.non_null)))

    @cached_property
    def is_category(self) -> bool:
        """True for flags and for texts that take few values."""
        if self.kinds == {"flag"}:
            return self.distinct == 2
        return (
            self.kinds == {"text"}
            and 2 <= self.distinct <= 10
            and len(self.non_null) >= 5 * self.distinct
            and not is_identifier(self.name)
        )


def classify_value(value: Any) -> str:
    """One word for what a value is."""
    if isinstance(value, bool):
        return "flag"
    if is_number(value):
        return "number"
    if is_day(value):
        return "day"
    if is_moment(value):
        return "moment"
    if isinstance(value, str):
        return "text"
    return "list" if isinstance(value, list) else "null" if value is None else "other"


class StateColumns:
    """Views of all initial states that were looked at, as columns."""

    def __init__(self, views: Sequence[View], shape: ShapeNode) -> None:
        self.views = list(views)
        self.nodes = dict(list_relations(shape))
        self.relations = [name for name in self.nodes if any(view.rows(name) for view in self.views)]
        self.columns = {(column.relation, column.name): column for column in self._columns()}

    def _columns(self) -> Iterator[ObservedColumn]:
        for relation in [ROOT, *self.relations]:
            names = dict.fromkeys(name for view in self.views for row in view.rows(relation).values() for name in row)
            for name in names:
                yield ObservedColumn(
                    relation, name, [[row.get(name) for row in self._rows(view, relation)] for view in self.views]
                )

    def _rows(self, view: View, relation: str) -> list[Row]:
        return list(view.rows(relation).values())

    def of(self, relation: str) -> list[ObservedColumn]:
        return [column for (name, _), column in self.columns.items() if name == relation]

    def rows(self, relation: str) -> int:
        return sum(len(view.rows(relation)) for view in self.views)

    @cached_property
    def identities(self) -> dict[str, str]:
        """Relation to the column that repeats the key of its rows."""
        identities_by_relation: dict[str, str] = {}
        for relation in self.relations:
            keys = [key[-1] for view in self.views for key in view.rows(relation)]
            for column in self.of(relation):
                if (
                    keys
                    and column.name not in identities_by_relation.values()
                    and list(map(str, column.values)) == keys
                ):
                    identities_by_relation.setdefault(relation, column.name)
        for relation, node in self.nodes.items():
            if node.identity:
                identities_by_relation.setdefault(relation, node.identity)
        return identities_by_relation

    @cached_property
    def names(self) -> dict[str, str]:
        """Column names that can only be the identifier of one relation, with that relation."""
        by_name: dict[str, str] = {}
        for relation, column in self.identities.items():
            if len(split_name(column)) < 2 or list(self.identities.values()).count(column) > 1:
                continue
            others = [one for one in self.columns.values() if one.name.rsplit(".", 1)[-1] == column and one.non_null]
            if all(
                one.relation == relation
                or ((pointed := self.reference(one.relation, one.name)) is not None and pointed.target == relation)
                for one in others
            ):
                by_name[column] = relation
        return by_name

    @cached_property
    def references(self) -> list[ColumnReference]:
        """Return the column references between relations."""
        return [reference for column in self.columns.values() if (reference := self._reference(column)) is not None]

    def reference(self, relation: str, column: str) -> ColumnReference | None:
        return self._by_column.get((relation, column))

    @cached_property
    def _by_column(self) -> dict[tuple[str, str], ColumnReference]:
        return {(reference.relation, reference.column): reference for reference in self.references}

    @cached_property
    def _keys(self) -> dict[str, list[set[str]]]:
        """Keys of the relations that things can point to, by state."""
        named = [name for name in self.relations if self.nodes[name].kind == "table" or self.nodes[name].identity]
        return {name: [{key[-1] for key in view.rows(name)} for view in self.views] for name in named}

    def _reference(self, column: ObservedColumn) -> ColumnReference | None:
        listed = column.kinds == {"list"}
        if not listed and not column.kinds <= {"text", "number"}:
            return None
        states = [_texts(values) for values in column.states]
        distinct = set().union(*states) if states else set()
        fitting = [
            target
            for target, keys in self._keys.items()
            if not (target == column.relation and self.identities.get(target) == column.name)
            and all(values <= known for values, known in zip(states, keys, strict=True))
        ]
        named = [target for target in fitting if self._speaks_of(column.name, target)]
        if "number" in column.kinds and not is_identifier(column.name.rsplit(".", 1)[-1]):
            return None
        unsure = len(distinct) < 5 or column.kinds == {"number"} or not self._forms_agree(distinct, fitting)
        if not named and (unsure or self.identities.get(column.relation) == column.name):
            return None
        chosen = self._primary(named or fitting)
        return ColumnReference(column.relation, column.name, chosen, listed) if chosen else None

    def _speaks_of(self, column: str, target: str) -> bool:
        name = column.rsplit(".", 1)[-1]
        if self.identities.get(target) == name and name.casefold() not in ANY_NAME:
            return True
        noun = split_name(target.rsplit(".", 1)[-1])
        own = split_name(name)
        return bool(noun and own) and (is_identifier(name) or own[-1] == noun[-1]) and singularize(noun[-1]) in own

    def _forms_agree(self, values: set[str], targets: list[str]) -> bool:
        forms = {normalize_identifier(value) for value in values}
        return len(forms) <= 3 and any("#" in form for form in forms) and bool(targets)

    def _primary(self, targets: list[str]) -> str:
        """Of several relations with these keys, the one whose keys are its own."""
        own = [
            target
            for target in targets
            if not any(
                other != target and all(a <= b for a, b in zip(self._keys[target], self._keys[other], strict=True))
                for other in targets
            )
        ]
        named = [t for t in targets if self._speaks_of(self.identities.get(t, ""), t)]
        return next(iter([t for t in own if t in named] or named or own or targets), "")


def _texts(values: Sequence[Any]) -> set[str]:
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return {str(item) for item in flat if item is not None and item != "" and not isinstance(item, dict | list)}


def get_row_value(row: Row, key: Key, column: str) -> Any:
    """A value of a row; `PARENT` is the key of the row around it."""
    if column == PARENT:
        return key[-2] if len(key) > 1 else None
    return row.get(column)
