"""Render a record as an answer's schema declares it, with embedded records where the schema has them."""

from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.store import ResourceStore
from trajsmith.environments.adapters.openapi.tables import REFERENCE_MARK, ResourceTable
from trajsmith.environments.adapters.openapi.value_generation import OmitValue
from trajsmith.records import JsonObject, JsonValue

_DEPTH = 3
"""Records inside records that are shown even where nothing requires it."""
_END = 12
"""Records inside records where a required circle is given up."""


class RecordRenderer:
    """Renderer of records; caches what it learned of each schema."""

    def __init__(self, tables: dict[str, ResourceTable], dialect: Dialect) -> None:
        self._tables = tables
        self._dialect = dialect
        self._known: dict[int, tuple[JsonObject, dict[str, JsonObject], set[str]]] = {}

    def shape(self, schema: JsonObject) -> tuple[dict[str, JsonObject], set[str]]:
        """Return properties and required properties of a schema."""
        known = self._known.get(id(schema))
        if known is None:
            known = (schema, self._dialect.all_properties(schema), self._dialect.required(schema))
            self._known[id(schema)] = known  # keeps the schema, so that its id stays its own
        return known[1], known[2]

    def show(self, store: ResourceStore, record: JsonObject, schema: JsonObject, depth: int = 0) -> JsonObject:
        """Return a record as an answer's schema wants it.

        Raises:
            LeftOut: Records contain each other without end.
        """
        properties, required = self.shape(schema)
        shown: JsonObject = {}
        for name in (*properties, *(required - properties.keys())) if properties else record:
            if name not in record or name.startswith("@"):
                continue
            try:
                child = properties.get(name, {})
                shown[name] = self._value(store, record[name], child, depth, name in required)
            except OmitValue:
                continue
        return shown

    def _value(self, store: ResourceStore, value: JsonValue, schema: JsonObject, depth: int, needed: bool) -> JsonValue:
        if isinstance(value, list):
            return self._list(store, value, schema, depth)
        if not isinstance(value, dict):
            return value
        place = value.get(REFERENCE_MARK)
        if not isinstance(place, str):
            return self.show(store, value, schema, depth)
        if depth >= _END:
            raise UnsupportedFeature("records contain each other without end")
        if depth >= _DEPTH and not needed:
            raise OmitValue
        table, _, key = place.partition("/")
        record = store.get(table, key)
        if record is None:
            raise OmitValue
        properties, _ = self.shape(schema)
        return self.show(store, record, schema if properties else self._tables[table].schema, depth + 1)

    def _list(self, store: ResourceStore, values: list[JsonValue], schema: JsonObject, depth: int) -> list[JsonValue]:
        items = self._dialect.look(schema).get("items")
        shown = []
        for value in values:
            try:
                shown.append(self._value(store, value, items if isinstance(items, dict) else {}, depth, False))
            except OmitValue:
                continue
        return shown
