"""The state of one play: tables shared with the initial state until they are written, and what was written."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from environments.hosting import Change
from environments.openapi.tables import REF, Reference, Table
from environments.openapi.values import Path
from trajectory import JsonObject, JsonValue

Parts = Mapping[str, Any]
"""A parsed state that several plays share; nobody changes it."""


class Store:
    """Reads and writes records. A record is never changed in place: `put` a new one."""

    def __init__(self, tables: Mapping[str, Table], parts: Parts) -> None:
        self.now: str = parts["now"]
        self.seed: int = parts["seed"]
        self._counters: dict[str, int] = dict(parts["counters"])
        self._tables: dict[str, dict[str, JsonObject]] = {name: parts[name] for name in tables}
        self._own: set[str] = set()
        self._dirty: dict[tuple[str, str], None] = {}
        self._undo: list[tuple[str, str, JsonValue]] = []
        self._order: dict[str, list[str]] = {}

    def records(self, table: str) -> dict[str, JsonObject]:
        """All records by key: read only."""
        return self._tables[table]

    def keys(self, table: str) -> list[str]:
        """All keys, 2 before 10: an order that does not depend on when a record came."""
        found = self._order.get(table)
        if found is None:
            found = self._order[table] = sorted(self._tables[table], key=natural)
        return found

    def items(self, table: str) -> Iterator[tuple[str, JsonObject]]:
        """All keys and records, in the order of the keys."""
        records = self._tables[table]
        return ((key, records[key]) for key in self.keys(table))

    def get(self, table: str, key: str) -> JsonObject | None:
        return self._tables[table].get(key)

    def put(self, table: str, key: str, record: JsonObject) -> None:
        self._write(table, key, record)

    def remove(self, table: str, key: str) -> None:
        self._write(table, key, None)

    def next_number(self, table: str) -> int:
        """The next number of a table; a number is given out once."""
        number = self._counters.get(table, 0) + 1
        self._undo.append((_COUNTERS, table, self._counters.get(table)))
        self._counters[table] = number
        self._dirty[_COUNTERS, table] = None
        return number

    def begin(self) -> None:
        """From here on `undo` takes everything back."""
        self._undo = []

    def undo(self) -> None:
        """Take back what was written since `begin`."""
        for part, key, old in reversed(self._undo):
            if part != _COUNTERS:
                self._write(part, key, old)
            elif old is None:
                del self._counters[key]
            else:
                self._counters[key] = old
        self._undo = []

    def changes(self) -> list[Change]:
        """What was written since the last time."""
        found: list[Change] = []
        for part, key in self._dirty:
            value: JsonValue = self._counters.get(key) if part == _COUNTERS else self._tables[part].get(key)
            found.append((part, key, None if value is None else orjson.dumps(value)))
        self._dirty = {}
        return found

    def _write(self, table: str, key: str, record: JsonObject | None) -> None:
        if table not in self._own:
            self._tables[table] = dict(self._tables[table])
            self._own.add(table)
        records = self._tables[table]
        old = records.get(key)
        self._undo.append((table, key, old))
        if (old is None) != (record is None):
            self._order.pop(table, None)
        if record is None:
            records.pop(key, None)
        else:
            records[key] = record
        self._dirty[table, key] = None


_COUNTERS = "counters"


@functools.lru_cache(maxsize=100_000)
def natural(key: str) -> str:
    """A form of a key that sorts numbers by their size."""
    return re.sub(r"\d+", lambda match: match[0].rjust(16, "0"), key)


def key_of(value: JsonValue) -> str:
    """The key of an identity: 7 and 7.0 are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def reference_to(table: str, key: str) -> JsonObject:
    """What stands in a record for another record that is shown there."""
    return {REF: f"{table}/{key}"}


def target_of(value: JsonValue, reference: Reference) -> str | None:
    """Key of the record that a value at a reference's place means; None if it means none."""
    if value is None:
        return None
    if isinstance(value, dict):
        place = value.get(REF)
        return place.partition("/")[2] if isinstance(place, str) else None
    return None if reference.embedded or isinstance(value, list | bool) else key_of(value)


def leaves(value: JsonValue, path: Path) -> Iterator[JsonValue]:
    """All values at a place; "*" stands for every item of a list."""
    if not path:
        yield value
    elif path[0] == "*":
        for child in value if isinstance(value, list) else ():
            yield from leaves(child, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from leaves(value[path[0]], path[1:])


def dangling(tables: Iterable[Table], parts: Parts) -> Iterator[str]:
    """References of a state that lead nowhere, in words."""
    for table in tables:
        for key, record in parts[table.name].items():
            for reference in table.references:
                for value in leaves(record, reference.path):
                    target = target_of(value, reference)
                    if target is not None and target not in parts[reference.table]:
                        yield f"{table.name}/{key}: {'.'.join(reference.path)}: no {reference.table}/{target}"
