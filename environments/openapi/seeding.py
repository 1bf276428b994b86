"""Initial states: records from the document's examples and schemas, whose references all lead to records."""

import functools
import random
from datetime import datetime, timedelta
from typing import Any

from environments.openapi.chains import ONLY
from environments.openapi.filling import identity_of_number, slots_of
from environments.openapi.model import Model
from environments.openapi.references import LeftOut
from environments.openapi.store import Store, key_of, leaves, target_of
from environments.openapi.tables import ID, Table
from environments.openapi.values import Occasion, Omit
from environments.openapi.words import a
from trajectory import JsonObject, JsonValue, derive_seed

SIZES = {"small": 5, "medium": 20, "large": 80}
"""Records of a table, by the state's size."""
_BELOW = 2
"""How many times more records there are of what stands below something."""
_TRIES = 25
_PATIENCE = 4
"""Attempts after which an optional property that is invalid is no longer made."""
_START = datetime(2026, 3, 2, 9, 0)


class NoRecords(LeftOut):
    """No valid record of a table can be made.

    Attributes:
        table: The table's name.
    """

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        super().__init__(reason)


def seed_state(model: Model, size: str, seed: int) -> JsonObject:
    """A state of a size; the same seed gives the same state.

    Raises:
        NoRecords: The document leaves no valid record for one of its tables.
    """
    now = _START + timedelta(days=random.Random(derive_seed(seed, "now")).randint(0, 27))
    parts: JsonObject = {"now": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "counters": {}, "seed": seed}
    parts.update({name: {} for name in model.tables})
    store = Store(model.tables, parts)
    _Seeder(model, store, SIZES[size]).fill()
    for name in model.tables:
        parts[name] = dict(store.items(name))
    parts["counters"] = {name: len(parts[name]) for name, table in model.tables.items() if not table.fixed}
    return parts


class _Seeder:
    def __init__(self, model: Model, store: Store, count: int) -> None:
        self._model = model
        self._store = store
        self._count = count
        self._avoided: dict[str, set[str]] = {}
        """Optional properties, by table, that did not come out valid."""

    def fill(self) -> None:
        """First all keys, so that records may mean each other; then the records; at last what came out invalid."""
        tables = list(self._model.tables.values())
        for table in tables:
            if not table.fixed:
                self._place(table)
        self._place_fixed()
        for table in tables:
            for number, key in enumerate(self._store.keys(table.name)):
                self._put(table, key, number, 0)
        for table in tables:
            for number, key in enumerate(self._store.keys(table.name)):
                self._make_valid(table, key, number)

    def _place(self, table: Table) -> None:
        count = self._count * (1 if table.has_root else _BELOW)
        for number in range(1, count * 3):
            if len(self._store.records(table.name)) == count:
                break
            try:
                identity = self._identity(table, number)
            except (LeftOut, Omit) as reason:
                raise NoRecords(table.name, f"{table.identity}: {reason}") from reason
            key = key_of(identity)
            if key and self._store.get(table.name, key) is None:
                self._store.put(table.name, key, {} if table.identity == ID else {table.identity: identity})

    def _identity(self, table: Table, number: int) -> JsonValue:
        if number <= len(table.examples) and table.identity != ID:
            given = table.examples[number - 1].get(table.identity)
            if isinstance(given, str | int) and not isinstance(given, bool):
                return given
        return identity_of_number(self._model, self._store, table, number)

    def _place_fixed(self) -> None:
        keyed = {name: parent for parent, names in self._model.keyed.items() for name in names}
        waiting = [table.name for table in self._model.tables.values() if table.fixed]
        waiting.sort(key=lambda name: keyed.get(keyed.get(name, ""), "") != "")  # those below fixed ones come last
        for name in waiting:
            for key in self._store.keys(keyed[name]) if name in keyed else [ONLY]:
                self._store.put(name, key, {})

    def _put(self, table: Table, key: str, number: int, attempt: int) -> None:
        rng = random.Random(derive_seed(self._store.seed, table.name, key, attempt))
        occasion = Occasion(table.noun, number + attempt, rng, self._model.moment(self._store))
        slots = slots_of(self._model, self._store, table.references, occasion)
        identity = (self._store.get(table.name, key) or {}).get(table.identity)
        if table.identity != ID:
            slots[table.identity,] = lambda: identity
        for name, values in table.scopes.items():
            slots[name,] = functools.partial(rng.choice, values)
        for name in self._avoided.get(table.name, ()):
            slots[name,] = _nothing
        occasion.slots = slots
        example = table.examples[number] if number < len(table.examples) and attempt == 0 else {}
        try:
            made: Any = self._model.maker.make(table.schema, (), occasion)
        except (LeftOut, Omit) as reason:
            raise NoRecords(table.name, f"no {table.noun} can be made: {reason}") from reason
        if not isinstance(made, dict):
            raise NoRecords(table.name, f"{a(table.noun)} is no object")
        touched = {reference.path[0] for reference in table.references} | {table.identity}
        made.update(
            {name: value for name, value in example.items() if name not in touched and not name.startswith("@")}
        )
        self._store.put(table.name, key, self._hidden(table, key, made, rng))

    def _hidden(self, table: Table, key: str, record: JsonObject, rng: random.Random) -> JsonObject:
        """What no answer shows: what the record stands below, which records it holds, its scopes."""
        made = dict(record)
        for reference in table.references:
            name = reference.path[0]
            keys = self._store.keys(reference.table)
            if not name.startswith("@") or not keys:
                continue
            if len(reference.path) == 1:
                made[name] = rng.choice(keys)
            else:
                others = [other for other in keys if (reference.table, other) != (table.name, key)]
                made[name] = sorted(rng.sample(others, min(len(others), rng.randint(1, 4))))
        for name, values in table.scopes.items():
            if name.startswith("@"):
                made[name] = rng.choice(values)
        return made

    def _make_valid(self, table: Table, key: str, number: int) -> None:
        fault: str | None = None
        for attempt in range(_TRIES):
            record = self._store.get(table.name, key) or {}
            try:
                fault = self._model.record_fault(self._store, table, record) or self._lost(table, record)
            except LeftOut as reason:
                fault = str(reason)
            if fault is None:
                return
            place = fault.partition(":")[0].partition(".")[0]
            if attempt > _PATIENCE and place in record and place != table.identity:
                self._avoided.setdefault(table.name, set()).add(place)
            self._put(table, key, number, attempt + 1)
        raise NoRecords(table.name, f"no valid {table.noun} found: {fault}")

    def _lost(self, table: Table, record: JsonObject) -> str | None:
        for reference in table.references:
            for value in leaves(record, reference.path):
                target = target_of(value, reference)
                if target is not None and self._store.get(reference.table, target) is None:
                    return f"{'.'.join(reference.path)} means no {reference.table}"
        return None


def _nothing() -> JsonValue:
    raise Omit("it did not come out valid")
