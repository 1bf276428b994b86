"""How a record looks in an answer: only what the answer's schema declares, other records put in where it shows them."""

from environments.openapi.dialect import Dialect
from environments.openapi.references import LeftOut
from environments.openapi.store import Store
from environments.openapi.tables import REF, Table
from environments.openapi.values import Omit
from trajectory import JsonObject, JsonValue

_DEPTH = 3
"""Records inside records that are shown even where nothing requires it."""
_END = 12
"""Records inside records where a required circle is given up."""


class Viewer:
    """Shows records; remembers what it learned of each schema."""

    def __init__(self, tables: dict[str, Table], dialect: Dialect) -> None:
        self._tables = tables
        self._dialect = dialect
        self._known: dict[int, tuple[JsonObject, dict[str, JsonObject], set[str]]] = {}

    def shape(self, schema: JsonObject) -> tuple[dict[str, JsonObject], set[str]]:
        """Properties and required properties of a schema."""
        known = self._known.get(id(schema))
        if known is None:
            known = (schema, self._dialect.all_properties(schema), self._dialect.required(schema))
            self._known[id(schema)] = known  # keeps the schema, so that its id stays its own
        return known[1], known[2]

    def show(self, store: Store, record: JsonObject, schema: JsonObject, depth: int = 0) -> JsonObject:
        """A record as an answer's schema wants it.

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
            except Omit:
                continue
        return shown

    def _value(self, store: Store, value: JsonValue, schema: JsonObject, depth: int, needed: bool) -> JsonValue:
        if isinstance(value, list):
            return self._list(store, value, schema, depth)
        if not isinstance(value, dict):
            return value
        place = value.get(REF)
        if not isinstance(place, str):
            return self.show(store, value, schema, depth)
        if depth >= _END:
            raise LeftOut("records contain each other without end")
        if depth >= _DEPTH and not needed:
            raise Omit
        table, _, key = place.partition("/")
        found = store.get(table, key)
        if found is None:
            raise Omit
        properties, _ = self.shape(schema)
        return self.show(store, found, schema if properties else self._tables[table].schema, depth + 1)

    def _list(self, store: Store, values: list[JsonValue], schema: JsonObject, depth: int) -> list[JsonValue]:
        items = self._dialect.look(schema).get("items")
        shown = []
        for value in values:
            try:
                shown.append(self._value(store, value, items if isinstance(items, dict) else {}, depth, False))
            except Omit:
                continue
        return shown
