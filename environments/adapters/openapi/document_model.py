"""Model of a document at run time: tables, relations, validation and generation of values."""

import functools
import random
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.record_rendering import RecordRenderer
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.store import (
    ResourceStore,
    build_reference,
    find_leaves,
    find_target_key,
    to_key,
)
from trajsmith.environments.adapters.openapi.tables import RecordReference, ResourceTable
from trajsmith.environments.adapters.openapi.value_generation import Path, ValueGenerator
from trajsmith.records import JsonObject, JsonValue, derive_seed


class RequestRefused(Exception):
    """Error response of the API to a call.

    Attributes:
        status: HTTP status that fits.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass
class DocumentModel:
    """Run-time model of a document."""

    tables: dict[str, ResourceTable]
    requests: Dialect
    responses: Dialect
    viewer: RecordRenderer
    maker: ValueGenerator
    keyed: dict[str, list[str]] = field(default_factory=dict)
    """Tables with one record per record of another, by that other."""
    owned: set[tuple[str, Path]] = field(default_factory=set)
    """References of records that go away with what they mean."""
    shown: dict[str, list[JsonObject]] = field(default_factory=dict)
    """Schemas in which answers show the records of a table, beside the table's own."""

    @functools.cached_property
    def referrers(self) -> dict[str, list[tuple[str, RecordReference]]]:
        """Return the places in other tables that refer to records of each table."""
        referrers: dict[str, list[tuple[str, RecordReference]]] = {name: [] for name in self.tables}
        for table in self.tables.values():
            for reference in table.references:
                referrers[reference.table].append((table.name, reference))
        return referrers

    def find_fault(self, schema: JsonObject, value: JsonValue, request: bool = False) -> str | None:
        """Return a value's validation error, as `path: message`, or None."""
        return self._checks.find_fault(schema, value, request)

    @functools.cached_property
    def _checks(self) -> "SchemaValidators":
        return SchemaValidators(self.requests, self.responses)

    def find_record_fault(self, store: ResourceStore, table: ResourceTable, record: JsonObject) -> str | None:
        """Return the reason why a record cannot be shown as each answer requires, or None."""
        for schema in (table.schema, *self.shown.get(table.name, ())):
            fault = self.find_fault(schema, self.viewer.show(store, record, schema))
            if fault is not None:
                return fault
        return None

    # References

    def check_references(self, store: ResourceStore, record: JsonObject, references: list[RecordReference]) -> None:
        """Refuse a record that refers to records which do not exist.

        Raises:
            Refused: One does not exist.
        """
        for reference in references:
            for value in find_leaves(record, reference.path):
                target = find_target_key(value, reference)
                if target is not None and store.get(reference.table, target) is None:
                    raise RequestRefused(404, f"{self.tables[reference.table].noun} not found: {target}")

    def normalize_record(
        self, store: ResourceStore, record: JsonObject, references: list[RecordReference]
    ) -> JsonObject:
        """Return a record as stored: embedded records, or names where those are shown, become references.

        Raises:
            Refused: An embedded record does not exist.
        """
        for reference in references:
            if reference.embedded:
                record = self._replaced(store, record, reference.path, reference)
        return record

    def _replaced(self, store: ResourceStore, value: JsonValue, path: Path, reference: RecordReference) -> Any:
        if not path:
            table = self.tables[reference.table]
            identity = value.get(table.identity) if isinstance(value, dict) else value
            if identity is None or isinstance(identity, bool | list | dict):
                return value
            key = to_key(identity)
            if store.get(table.name, key) is None:
                raise RequestRefused(404, f"{table.noun} not found: {key}")
            return build_reference(table.name, key)
        if path[0] == "*" and isinstance(value, list):
            return [self._replaced(store, child, path[1:], reference) for child in value]
        if isinstance(value, dict) and path[0] in value:
            return {**value, path[0]: self._replaced(store, value[path[0]], path[1:], reference)}
        return value

    def identity_value(self, store: ResourceStore, table: ResourceTable, key: str) -> JsonValue:
        """Return the identity of a record as other records write it."""
        record = store.get(table.name, key) or {}
        return record.get(table.identity, key)

    # Times and draws

    def rng(self, store: ResourceStore, table: str, number: int) -> random.Random:
        return random.Random(derive_seed(store.seed, table, number))

    @staticmethod
    def moment(store: ResourceStore) -> datetime:
        return datetime.fromisoformat(store.now)


def set_at_path(record: JsonObject, path: Path, value: JsonValue) -> JsonObject:
    """Return a copy of a record with a value at a path of nested objects."""
    if len(path) == 1:
        return {**record, path[0]: value}
    inner = record.get(path[0])
    return {**record, path[0]: set_at_path(inner if isinstance(inner, dict) else {}, path[1:], value)}


def remove_reference(value: Any, path: Path, key: str, reference: RecordReference) -> Any:
    """Return a copy of a value in which lists at a path no longer refer to one record."""
    if path == ("*",) and isinstance(value, list):
        return [child for child in value if find_target_key(child, reference) != key]
    if path[:1] == ("*",) and isinstance(value, list):
        return [remove_reference(child, path[1:], key, reference) for child in value]
    if path and isinstance(value, dict) and path[0] in value:
        return {**value, path[0]: remove_reference(value[path[0]], path[1:], key, reference)}
    return value


class SchemaValidators:
    """Schema validators, compiled at their first use."""

    def __init__(self, requests: Dialect, responses: Dialect) -> None:
        self._dialects = {True: requests, False: responses}
        self._compiled: dict[tuple[int, bool], tuple[JsonObject, Any]] = {}

    def find_fault(self, schema: JsonObject, value: JsonValue, request: bool) -> str | None:
        key = (id(schema), request)
        known = self._compiled.get(key)
        if known is None:
            known = self._compiled[key] = (schema, self._compile(schema, self._dialects[request]))
        validator = known[1]
        if validator.is_valid(value):
            return None
        return _format_error(next(iter(validator.iter_errors(value))))

    def _compile(self, schema: JsonObject, dialect: Dialect) -> Any:
        import jsonschema_rs

        try:
            return jsonschema_rs.Draft202012Validator(dialect.self_contained(schema), validate_formats=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise UnsupportedFeature(
                f"a schema is no valid JSON Schema: {' '.join(str(error).split())[:160]}"
            ) from error


def _format_error(error: Any) -> str:
    where = ".".join(str(part) for part in error.instance_path)
    message = " ".join(str(error.message).split())[:300]
    return f"{where}: {message}" if where else message
