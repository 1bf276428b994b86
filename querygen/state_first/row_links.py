"""Which rows of a state refer to each other, and which of them belong to the user."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from trajsmith.records import JsonObject

Row: TypeAlias = tuple[str, str]
"""Table and key."""


class RowLinks:
    """References between the rows of one state: a text in a row that is the key of another."""

    def __init__(self, state: JsonObject) -> None:
        self.state = state
        self._by_key: dict[str, list[Row]] = defaultdict(list)
        tables = [(name, rows) for name, rows in state.items() if isinstance(rows, dict)]
        self._rows: dict[Row, Any] = {(name, key): row for name, rows in tables for key, row in rows.items()}
        for row in self._rows:
            if isinstance(self._rows[row], dict):
                self._by_key[row[1]].append(row)
        self._targets: dict[Row, tuple[Row, ...]] = {}

    def list_targets(self, row: Row) -> tuple[Row, ...]:
        """Return the rows that a row refers to."""
        if row not in self._targets:
            keys = dict.fromkeys(text for text in _iterate_texts(self._rows.get(row)) if text in self._by_key)
            self._targets[row] = tuple(one for key in keys for one in self._by_key[key] if one != row)
        return self._targets[row]

    @cached_property
    def _referring(self) -> dict[Row, list[Row]]:
        """Row to the rows that refer to it."""
        referring: dict[Row, list[Row]] = defaultdict(list)
        for row in self._rows:
            for target in self.list_targets(row):
                referring[target].append(row)
        return referring

    def list_linked(self, texts: Iterable[str]) -> set[Row]:
        """Return the rows that some texts name by their key or hold as part, and all that those refer to.

        Args:
            texts: Keys; one that is the key of no row names the rows in which it stands.
        """
        wanted = set(texts)
        inner = {text for text in wanted if text not in self._by_key}
        rows = [row for key in wanted - inner for row in self._by_key[key]]
        if inner:
            rows += [row for row, content in self._rows.items() if not inner.isdisjoint(_iterate_texts(content))]
        return self._add_targets(rows)

    def list_owned(self, users: Collection[Row]) -> set[Row]:
        """Return some rows, those that refer to them, and those that refer to these; no other rows of their tables."""
        people = {table for table, _ in users}
        owned, waiting = set(users), list(users)
        while waiting:
            for row in self._referring.get(waiting.pop(), ()):
                if row not in owned and row[0] not in people:
                    owned.add(row)
                    waiting.append(row)
        return owned

    @cached_property
    def own(self) -> set[Row]:
        """Rows of the user whom the state names in a field of its own; empty if it names none."""
        keys = [value for value in self.state.values() if isinstance(value, str) and value in self._by_key]
        return self.list_owned([row for key in keys for row in self._by_key[key]])

    def list_people(self, paths: Sequence[str]) -> list[Row]:
        """Return the rows of people who may be the user.

        Args:
            paths: Where their names stand, such as "customers.*.name".
        """
        tables = dict.fromkeys(path.split(".")[0] for path in paths if ".*." in path)
        return [(table, key) for table in tables for key in self.state.get(table) or {}]

    def _add_targets(self, rows: Iterable[Row]) -> set[Row]:
        """Return rows with all that they refer to."""
        reached: set[Row] = set()
        waiting = list(rows)
        while waiting:
            row = waiting.pop()
            if row not in reached:
                reached.add(row)
                waiting += self.list_targets(row)
        return reached


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(inner)
