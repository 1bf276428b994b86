"""Everything about a document that calls need: tables, how they hang together, and how values are checked and made."""

import functools
import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from environments.openapi.dialect import Dialect
from environments.openapi.references import LeftOut
from environments.openapi.showing import Viewer
from environments.openapi.store import Store, key_of, leaves, reference_to, target_of
from environments.openapi.tables import Reference, Table
from environments.openapi.values import Maker, Path
from trajectory import JsonObject, JsonValue, derive_seed


class Refused(Exception):
    """A call that the API turns down.

    Attributes:
        status: HTTP status that fits.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass
class Model:
    """A document, understood."""

    tables: dict[str, Table]
    requests: Dialect
    responses: Dialect
    viewer: Viewer
    maker: Maker
    keyed: dict[str, list[str]] = field(default_factory=dict)
    """Tables with one record per record of another, by that other."""
    owned: set[tuple[str, Path]] = field(default_factory=set)
    """References of records that go away with what they mean."""
    shown: dict[str, list[JsonObject]] = field(default_factory=dict)
    """Schemas in which answers show the records of a table, beside the table's own."""

    @functools.cached_property
    def referrers(self) -> dict[str, list[tuple[str, Reference]]]:
        """Which places of which tables mean records of a table."""
        found: dict[str, list[tuple[str, Reference]]] = {name: [] for name in self.tables}
        for table in self.tables.values():
            for reference in table.references:
                found[reference.table].append((table.name, reference))
        return found

    def fault(self, schema: JsonObject, value: JsonValue, request: bool = False) -> str | None:
        """What is wrong with a value, as `path: message`, or None."""
        return self._checks.fault(schema, value, request)

    @functools.cached_property
    def _checks(self) -> "Checks":
        return Checks(self.requests, self.responses)

    def record_fault(self, store: Store, table: Table, record: JsonObject) -> str | None:
        """What keeps a record from being shown as any of the answers wants it, or None."""
        for schema in (table.schema, *self.shown.get(table.name, ())):
            fault = self.fault(schema, self.viewer.show(store, record, schema))
            if fault is not None:
                return fault
        return None

    # References

    def check_references(self, store: Store, record: JsonObject, references: list[Reference]) -> None:
        """Refuse a record that means records which do not exist.

        Raises:
            Refused: One does not exist.
        """
        for reference in references:
            for value in leaves(record, reference.path):
                target = target_of(value, reference)
                if target is not None and store.get(reference.table, target) is None:
                    raise Refused(404, f"{self.tables[reference.table].noun} not found: {target}")

    def normalised(self, store: Store, record: JsonObject, references: list[Reference]) -> JsonObject:
        """A record as it is stored: records that it embeds, or names where they are shown, become references to them.

        Raises:
            Refused: An embedded record does not exist.
        """
        for reference in references:
            if reference.embedded:
                record = self._replaced(store, record, reference.path, reference)
        return record

    def _replaced(self, store: Store, value: JsonValue, path: Path, reference: Reference) -> Any:
        if not path:
            table = self.tables[reference.table]
            identity = value.get(table.identity) if isinstance(value, dict) else value
            if identity is None or isinstance(identity, bool | list | dict):
                return value
            key = key_of(identity)
            if store.get(table.name, key) is None:
                raise Refused(404, f"{table.noun} not found: {key}")
            return reference_to(table.name, key)
        if path[0] == "*" and isinstance(value, list):
            return [self._replaced(store, child, path[1:], reference) for child in value]
        if isinstance(value, dict) and path[0] in value:
            return {**value, path[0]: self._replaced(store, value[path[0]], path[1:], reference)}
        return value

    def identity_value(self, store: Store, table: Table, key: str) -> JsonValue:
        """The identity of a record as other records write it."""
        record = store.get(table.name, key) or {}
        return record.get(table.identity, key)

    # Times and draws

    def rng(self, store: Store, table: str, number: int) -> random.Random:
        return random.Random(derive_seed(store.seed, table, number))

    @staticmethod
    def moment(store: Store) -> datetime:
        return datetime.fromisoformat(store.now)


def put_at(record: JsonObject, path: Path, value: JsonValue) -> JsonObject:
    """A copy of a record with a value at a place of objects inside objects."""
    if len(path) == 1:
        return {**record, path[0]: value}
    inner = record.get(path[0])
    return {**record, path[0]: put_at(inner if isinstance(inner, dict) else {}, path[1:], value)}


def without(value: Any, path: Path, key: str, reference: Reference) -> Any:
    """A copy of a value in which lists at a place no longer mean one record."""
    if path == ("*",) and isinstance(value, list):
        return [child for child in value if target_of(child, reference) != key]
    if path[:1] == ("*",) and isinstance(value, list):
        return [without(child, path[1:], key, reference) for child in value]
    if path and isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: without(value[path[0]], path[1:], key, reference)}
    return value


class Checks:
    """Validators of schemas, compiled at their first use."""

    def __init__(self, requests: Dialect, responses: Dialect) -> None:
        self._dialects = {True: requests, False: responses}
        self._compiled: dict[tuple[int, bool], tuple[JsonObject, Any]] = {}

    def fault(self, schema: JsonObject, value: JsonValue, request: bool) -> str | None:
        key = (id(schema), request)
        known = self._compiled.get(key)
        if known is None:
            known = self._compiled[key] = (schema, self._compile(schema, self._dialects[request]))
        validator = known[1]
        if validator.is_valid(value):
            return None
        return _words(next(iter(validator.iter_errors(value))))

    def _compile(self, schema: JsonObject, dialect: Dialect) -> Any:
        import jsonschema_rs

        try:
            return jsonschema_rs.Draft202012Validator(dialect.self_contained(schema), validate_formats=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise LeftOut(f"a schema is no valid JSON Schema: {' '.join(str(error).split())[:160]}") from error


def _words(error: Any) -> str:
    where = ".".join(str(part) for part in error.instance_path)
    message = " ".join(str(error.message).split())[:300]
    return f"{where}: {message}" if where else message
