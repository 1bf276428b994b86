"""Build responses: the record or page of records, with the envelope that the schema declares."""

import random
from dataclasses import dataclass, field
from datetime import datetime

from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.operations import Operation
from trajsmith.environments.adapters.openapi.payloads import RecordPayload, find_role
from trajsmith.environments.adapters.openapi.record_rendering import RecordRenderer
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.store import ResourceStore
from trajsmith.environments.adapters.openapi.value_generation import OmitValue, Path, ValueContext, ValueGenerator
from trajsmith.records import JsonObject, JsonValue, derive_seed

_WORDS = ("success", "ok", "deleted", "succeeded", "done")
_FIRST = datetime(2026, 1, 1)


@dataclass
class ResponseContext:
    """Values known when a response is built, by role; a role that is None has no value now."""

    values: dict[str, JsonValue] = field(default_factory=dict)
    record: JsonObject | None = None
    """The record that the operation was about, for answers that show some of it."""


class ResponseBuilder:
    """Builder of the responses of one operation."""

    def __init__(
        self, operation: Operation, payload: RecordPayload | None, dialect: Dialect, viewer: RecordRenderer, base: str
    ) -> None:
        self.made: list[str] = []
        """Places of the answer whose value is a constant, made at load because nothing says what it is."""
        self.payload = payload
        self._operation = operation
        self._dialect = dialect
        self._viewer = viewer
        self._base = base
        self._constants: dict[Path, JsonValue] = {}
        if operation.answer.schema is not None and not (payload is not None and not payload.path):
            self._prepare(operation.answer.schema, (), payload.path if payload else ())

    def record(self, store: ResourceStore, record: JsonObject, facts: ResponseContext) -> JsonValue:
        """Return the response that shows one record."""
        if self.payload is None:
            facts.record = record
            return self._whole(None, facts)
        return self._whole(self._viewer.show(store, record, self.payload.schema), facts)

    def page(self, store: ResourceStore, records: list[JsonObject], facts: ResponseContext) -> JsonValue:
        """Return the response that shows a list."""
        if self.payload is None:
            return self._whole(None, facts)
        return self._whole([self._viewer.show(store, record, self.payload.schema) for record in records], facts)

    def _whole(self, inner: JsonValue, facts: ResponseContext) -> JsonValue:
        schema = self._operation.answer.schema
        if schema is None:
            return self._operation.answer.description or f"{self._operation.answer.status}"
        path = self.payload.path if self.payload else None
        return self._around(schema, path, inner, facts, ())

    def _around(
        self, schema: JsonObject, path: Path | None, inner: JsonValue, facts: ResponseContext, at: Path
    ) -> JsonValue:
        if path == ():
            return inner
        if at in self._constants:
            return self._constants[at]
        properties, required = self._viewer.shape(schema)
        content: JsonObject = {}
        for name, child in properties.items():
            if path and name == path[0]:
                content[name] = self._around(child, path[1:], inner, facts, (*at, name))
                continue
            value = self._extra(name, child, facts, (*at, name))
            if value is not _NOTHING:
                content[name] = value
            elif name in required:
                content[name] = self._constants.get((*at, name))
        return content

    def _extra(self, name: str, schema: JsonObject, facts: ResponseContext, at: Path) -> JsonValue:
        """A value beside the records, or `_NOTHING` where none is known."""
        looked = self._dialect.look(schema)
        if facts.record is not None and name in facts.record and not isinstance(facts.record[name], dict | list):
            return facts.record[name]
        if self._dialect.properties(looked):
            if at in self._constants:
                return self._constants[at]
            inner = self._around(looked, None, None, facts, at)
            return inner if inner else _NOTHING
        role = find_role(name)
        if role is None:
            return _NOTHING
        value = facts.values.get(role)
        if role == "count" and "total" in facts.values and self.payload is not None:
            value = facts.values["count" if self._has_total else "total"]
        return _convert_value(value, role, looked, self._base)

    @property
    def _has_total(self) -> bool:
        schema = self._operation.answer.schema or {}
        names = list(self._dialect.properties(schema))
        for child in self._dialect.properties(schema).values():
            names.extend(self._dialect.properties(child))
        return any(find_role(name) == "total" for name in names)

    def _prepare(self, schema: JsonObject, at: Path, path: Path) -> None:
        """Make constants for what is required and nothing says what it is."""
        properties, required = self._viewer.shape(schema)
        if not properties:
            self._constant(schema, at)
            return
        for name, child in properties.items():
            if path and name == path[0]:
                if path[1:]:
                    self._prepare(child, (*at, name), path[1:])
            elif self._dialect.properties(child):
                if name in required:
                    self._prepare(child, (*at, name), ())
            elif name in required:
                self._constant(child, (*at, name))

    def _constant(self, schema: JsonObject, at: Path) -> None:
        rng = random.Random(derive_seed(self._operation.label, *at))
        occasion = ValueContext(at[-1] if at else "answer", 0, rng, _FIRST)
        try:
            self._constants[at] = ValueGenerator(self._dialect).make(schema, at, occasion)
        except OmitValue as error:
            raise UnsupportedFeature(f"no value for {'.'.join(at)}") from error
        if find_role(at[-1] if at else "") is None and "const" not in self._dialect.look(schema):
            self.made.append(".".join(at) or "the answer")


_NOTHING = object()


def _convert_value(value: JsonValue, role: str, schema: JsonObject, base: str) -> JsonValue:
    """The value of a role in the type that the schema wants, or `_NOTHING`."""
    kind = schema.get("type")
    kinds = set(kind) if isinstance(kind, list) else {kind}
    if value is None:
        return None if "null" in kinds and role in ("next", "previous", "cursor") else _NOTHING
    if "enum" in schema:
        words = [word for word in schema["enum"] if word == value or word in _WORDS]
        return words[0] if words else _NOTHING
    if role in ("next", "previous", "here") and "string" in kinds:
        return base + str(value) if str(schema.get("format", "")).startswith("ur") else str(value)
    fits = {
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "string": isinstance(value, str),
        None: True,
    }
    return value if any(fits.get(name, False) for name in kinds) else _NOTHING
