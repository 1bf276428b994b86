"""State of one session: tables shared with the initial state until written, and the writes."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from trajsmith.environments.adapters.openapi.tables import REFERENCE_MARK, RecordReference, ResourceTable
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.environments.programs import StateChange
from trajsmith.records import JsonObject, JsonValue

StateParts = Mapping[str, Any]
"""A parsed state that several plays share; nobody changes it."""


class ResourceStore:
    """Store of records. A record is never changed in place: `put` a new one."""

    def __init__(self, tables: Mapping[str, ResourceTable], parts: StateParts) -> None:
        self.now: str = parts["now"]
        self.seed: int = parts["seed"]
        self._counters: dict[str, int] = dict(parts["counters"])
        self._tables: dict[str, dict[str, JsonObject]] = {name: parts[name] for name in tables}
        self._own: set[str] = set()
        self._dirty: dict[tuple[str, str], None] = {}
        self._undo: list[tuple[str, str, JsonValue]] = []
        self._order: dict[str, list[str]] = {}

    def records(self, table: str) -> dict[str, JsonObject]:
        """Return all records by key: read only."""
        return self._tables[table]

    def keys(self, table: str) -> list[str]:
        """Return all keys, 2 before 10: an order that does not depend on insertion."""
        keys = self._order.get(table)
        if keys is None:
            keys = self._order[table] = sorted(self._tables[table], key=natural_sort_key)
        return keys

    def items(self, table: str) -> Iterator[tuple[str, JsonObject]]:
        """Return all keys and records, in the order of the keys."""
        records = self._tables[table]
        return ((key, records[key]) for key in self.keys(table))

    def get(self, table: str, key: str) -> JsonObject | None:
        return self._tables[table].get(key)

    def put(self, table: str, key: str, record: JsonObject) -> None:
        self._write(table, key, record)

    def remove(self, table: str, key: str) -> None:
        self._write(table, key, None)

    def next_number(self, table: str) -> int:
        """Return the next number of a table; a number is given out once."""
        number = self._counters.get(table, 0) + 1
        self._undo.append((_COUNTERS, table, self._counters.get(table)))
        self._counters[table] = number
        self._dirty[_COUNTERS, table] = None
        return number

    def begin(self) -> None:
        """Begin a transaction that `undo` takes back."""
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

    def changes(self) -> list[StateChange]:
        """Return what was written since the last call."""
        changes: list[StateChange] = []
        for part, key in self._dirty:
            value: JsonValue = self._counters.get(key) if part == _COUNTERS else self._tables[part].get(key)
            changes.append((part, key, None if value is None else orjson.dumps(value)))
        self._dirty = {}
        return changes

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
def natural_sort_key(key: str) -> str:
    """Return a form of a key that sorts numbers by their size."""
    return re.sub(r"\d+", lambda match: match[0].rjust(16, "0"), key)


def to_key(value: JsonValue) -> str:
    """Return the key of an identity: 7 and 7.0 are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def build_reference(table: str, key: str) -> JsonObject:
    """Return the value that stands for another record where that record is shown."""
    return {REFERENCE_MARK: f"{table}/{key}"}


def find_target_key(value: JsonValue, reference: RecordReference) -> str | None:
    """Return the key of the record that a reference refers to; None if it refers to none."""
    stands_alone = reference.embedded or isinstance(value, list | bool)
    return None if stands_alone and not isinstance(value, dict) else find_record_key(value)


def find_record_key(value: JsonValue) -> str | None:
    """Return the key in a value that means a record: its identity, or a reference where the record is shown."""
    if isinstance(value, dict):
        place = value.get(REFERENCE_MARK)
        return place.partition("/")[2] if isinstance(place, str) else None
    return None if value is None else to_key(value)


def find_leaves(value: JsonValue, path: Path) -> Iterator[JsonValue]:
    """Return all values at a path; "*" stands for every item of a list."""
    if not path:
        yield value
    elif path[0] == "*":
        for child in value if isinstance(value, list) else ():
            yield from find_leaves(child, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from find_leaves(value[path[0]], path[1:])


def find_dangling(tables: Iterable[ResourceTable], parts: StateParts) -> Iterator[str]:
    """Describe the references of a state that have no target."""
    for table in tables:
        for key, record in parts[table.name].items():
            for reference in table.references:
                for value in find_leaves(record, reference.path):
                    target = find_target_key(value, reference)
                    if target is not None and target not in parts[reference.table]:
                        yield f"{table.name}/{key}: {'.'.join(reference.path)}: no {reference.table}/{target}"
