"""A state as relations, and what a call changed in it."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from trajsmith.envcheck.state_shape import PLAIN, ROOT, Key, Row, Rows, ShapeNode, extract_rows
from trajsmith.grounding import split_name
from trajsmith.records import JsonObject

REMEMBERED = 4096
"""Parts of states that are kept taken apart."""


@dataclass(frozen=True, slots=True)
class StateRowChange:
    """Change of one row; `before` is None if it is new, `after` if it is gone."""

    relation: str
    key: Key
    before: Row | None
    after: Row | None

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """Changed fields with both values."""
        before, after = self.before or {}, self.after or {}
        names = dict.fromkeys([*before, *after])
        return {
            name: (before.get(name), after.get(name))
            for name in names
            if not is_json_equal(before.get(name), after.get(name))
        }


def is_json_equal(first: Any, second: Any) -> bool:
    """Equal as JSON: 1 is not True."""
    return bool(first == second) and isinstance(first, bool) == isinstance(second, bool)


class StateViewer:
    """Makes views of the states of one environment; parts that states share are taken apart once."""

    def __init__(self, shape: ShapeNode) -> None:
        self.shape = shape
        self._known: dict[int, tuple[Any, Rows]] = {}

    def view(self, state: JsonObject) -> "View":
        return View(state, self)

    def rows(self, name: str, part: Any) -> Rows:
        known = self._known.get(id(part))
        if known is not None and known[0] is part:
            return known[1]
        rows = extract_rows(name, part, self.shape.fields.get(name, PLAIN))
        if isinstance(part, dict | list):
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[id(part)] = (part, rows)
        return rows


class View:
    """One state; never change what it gives."""

    def __init__(self, state: JsonObject, viewer: StateViewer) -> None:
        self.state = state
        self._viewer = viewer

    @cached_property
    def relations(self) -> Rows:
        rows_by_name: Rows = {}
        for name, part in self.state.items():
            for relation, rows in self._viewer.rows(name, part).items():
                if relation == ROOT:
                    rows_by_name.setdefault(ROOT, {}).update(rows)
                else:
                    rows_by_name[relation] = rows
        return rows_by_name

    @cached_property
    def text(self) -> str:
        """The whole state as one text without case, to look for values in."""
        return orjson.dumps(self.state).decode().casefold()

    def rows(self, relation: str) -> dict[Key, Row]:
        return self.relations.get(relation, {})

    def equals(self, other: "View") -> bool:
        return self.state is other.state or self.state == other.state

    def changes(self, after: "View") -> list[StateRowChange]:
        """Return the row changes from this state to another one."""
        row_changes: list[StateRowChange] = []
        for name in dict.fromkeys([*self.state, *after.state]):
            old, new = self.state.get(name), after.state.get(name)
            if old is new or (name in self.state and name in after.state and is_json_equal(old, new)):
                continue
            first = self._viewer.rows(name, old) if name in self.state else {}
            second = after._viewer.rows(name, new) if name in after.state else {}
            for relation in dict.fromkeys([*first, *second]):
                row_changes += _changes(relation, first.get(relation, {}), second.get(relation, {}))
        return row_changes


def _changes(relation: str, before: dict[Key, Row], after: dict[Key, Row]) -> list[StateRowChange]:
    return [
        StateRowChange(relation, key, before.get(key), after.get(key))
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]


COUNTERS = frozenset({"counter", "sequence", "next", "last", "serial", "autoincrement"})


def is_counter_change(change: StateRowChange) -> bool:
    """Return True if a change affects only a counter that identifiers are drawn from."""
    names = [change.relation, *(change.key if not change.relation or change.relation.endswith("counters") else ())]
    return bool(COUNTERS & {word for name in names for word in split_name(name)})


def outline_value(value: Any) -> str:
    """Names and types of a value, without the values but for short texts, which may be choices."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{outline_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted({outline_value(inner) for inner in value})) + "]"
    return value if isinstance(value, str) and value.islower() and value.isidentifier() else type(value).__name__
