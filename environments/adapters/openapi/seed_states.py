"""Build initial states from the document's examples and schemas, with valid references."""

import functools
import random
from datetime import datetime, timedelta
from typing import Any

from trajsmith.environments.adapters.openapi.document_model import DocumentModel
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import with_article
from trajsmith.environments.adapters.openapi.record_completion import build_identity, build_slots
from trajsmith.environments.adapters.openapi.resource_paths import SINGLETON_KEY
from trajsmith.environments.adapters.openapi.store import ResourceStore, find_leaves, find_target_key, to_key
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, ResourceTable
from trajsmith.environments.adapters.openapi.value_generation import OmitValue, ValueContext
from trajsmith.records import JsonObject, JsonValue, derive_seed

STATE_SIZES = {"small": 5, "medium": 20, "large": 80}
"""Records of a table, by the state's size."""
_BELOW = 2
"""How many times more records there are of what stands below something."""
_TRIES = 25
_PATIENCE = 4
"""Attempts after which an optional property that is invalid is no longer made."""
_START = datetime(2026, 3, 2, 9, 0)


class NoValidRecord(UnsupportedFeature):
    """Error: no valid record of a table can be generated.

    Attributes:
        table: The table's name.
    """

    def __init__(self, table: str, reason: str) -> None:
        self.table = table
        super().__init__(reason)


def build_seed_state(model: DocumentModel, size: str, seed: int) -> JsonObject:
    """Return a state of a size; the same seed gives the same state.

    Raises:
        NoValidRecord: The document leaves no valid record for one of its tables.
    """
    now = _START + timedelta(days=random.Random(derive_seed(seed, "now")).randint(0, 27))
    parts: JsonObject = {"now": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "counters": {}, "seed": seed}
    parts.update({name: {} for name in model.tables})
    store = ResourceStore(model.tables, parts)
    _Seeder(model, store, STATE_SIZES[size]).fill()
    for name in model.tables:
        parts[name] = dict(store.items(name))
    parts["counters"] = {name: len(parts[name]) for name, table in model.tables.items() if not table.fixed}
    return parts


class _Seeder:
    def __init__(self, model: DocumentModel, store: ResourceStore, count: int) -> None:
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

    def _place(self, table: ResourceTable) -> None:
        count = self._count * (1 if table.has_root else _BELOW)
        for number in range(1, count * 3):
            if len(self._store.records(table.name)) == count:
                break
            try:
                identity = self._identity(table, number)
            except (UnsupportedFeature, OmitValue) as reason:
                raise NoValidRecord(table.name, f"{table.identity}: {reason}") from reason
            key = to_key(identity)
            if key and self._store.get(table.name, key) is None:
                self._store.put(table.name, key, {} if table.identity == GENERATED_ID else {table.identity: identity})

    def _identity(self, table: ResourceTable, number: int) -> JsonValue:
        if number <= len(table.examples) and table.identity != GENERATED_ID:
            identity = table.examples[number - 1].get(table.identity)
            if isinstance(identity, str | int) and not isinstance(identity, bool):
                return identity
        return build_identity(self._model, self._store, table, number)

    def _place_fixed(self) -> None:
        keyed = {name: parent for parent, names in self._model.keyed.items() for name in names}
        waiting = [table.name for table in self._model.tables.values() if table.fixed]
        waiting.sort(key=lambda name: keyed.get(keyed.get(name, ""), "") != "")  # those below fixed ones come last
        for name in waiting:
            for key in self._store.keys(keyed[name]) if name in keyed else [SINGLETON_KEY]:
                self._store.put(name, key, {})

    def _put(self, table: ResourceTable, key: str, number: int, attempt: int) -> None:
        rng = random.Random(derive_seed(self._store.seed, table.name, key, attempt))
        occasion = ValueContext(table.noun, number + attempt, rng, self._model.moment(self._store))
        slots = build_slots(self._model, self._store, table.references, occasion)
        identity = (self._store.get(table.name, key) or {}).get(table.identity)
        if table.identity != GENERATED_ID:
            slots[table.identity,] = lambda: identity
        for name, values in table.scopes.items():
            slots[name,] = functools.partial(rng.choice, values)
        for name in self._avoided.get(table.name, ()):
            slots[name,] = _raise_omit
        occasion.slots = slots
        example = table.examples[number] if number < len(table.examples) and attempt == 0 else {}
        try:
            generated: Any = self._model.maker.make(table.schema, (), occasion)
        except (UnsupportedFeature, OmitValue) as reason:
            raise NoValidRecord(table.name, f"no {table.noun} can be made: {reason}") from reason
        if not isinstance(generated, dict):
            raise NoValidRecord(table.name, f"{with_article(table.noun)} is no object")
        touched = {reference.path[0] for reference in table.references} | {table.identity}
        generated.update(
            {name: value for name, value in example.items() if name not in touched and not name.startswith("@")}
        )
        self._store.put(table.name, key, self._add_hidden(table, key, generated, rng))

    def _add_hidden(self, table: ResourceTable, key: str, record: JsonObject, rng: random.Random) -> JsonObject:
        """Add what no answer shows: the record's parent, the records that it holds, its scopes."""
        extended = dict(record)
        for reference in table.references:
            name = reference.path[0]
            keys = self._store.keys(reference.table)
            if not name.startswith("@") or not keys:
                continue
            if len(reference.path) == 1:
                extended[name] = rng.choice(keys)
            else:
                others = [other for other in keys if (reference.table, other) != (table.name, key)]
                extended[name] = sorted(rng.sample(others, min(len(others), rng.randint(1, 4))))
        for name, values in table.scopes.items():
            if name.startswith("@"):
                extended[name] = rng.choice(values)
        return extended

    def _make_valid(self, table: ResourceTable, key: str, number: int) -> None:
        fault: str | None = None
        for attempt in range(_TRIES):
            record = self._store.get(table.name, key) or {}
            try:
                fault = self._model.find_record_fault(self._store, table, record) or self._lost(table, record)
            except UnsupportedFeature as reason:
                fault = str(reason)
            if fault is None:
                return
            place = fault.partition(":")[0].partition(".")[0]
            if attempt > _PATIENCE and place in record and place != table.identity:
                self._avoided.setdefault(table.name, set()).add(place)
            self._put(table, key, number, attempt + 1)
        raise NoValidRecord(table.name, f"no valid {table.noun} found: {fault}")

    def _lost(self, table: ResourceTable, record: JsonObject) -> str | None:
        for reference in table.references:
            for value in find_leaves(record, reference.path):
                target = find_target_key(value, reference)
                if target is not None and self._store.get(reference.table, target) is None:
                    return f"{'.'.join(reference.path)} means no {reference.table}"
        return None


def _raise_omit() -> JsonValue:
    raise OmitValue("it did not come out valid")
