"""Refusals in the shape that the document declares for errors."""

import random
from datetime import datetime

from environments.openapi.model import Model
from environments.openapi.operations import Operation
from environments.openapi.references import LeftOut
from environments.openapi.values import Occasion, Omit
from environments.openapi.words import kinds_of, plain
from environments.session import RefusalKind, ToolResult
from trajectory import JsonObject, JsonValue

_MESSAGE = kinds_of("message msg detail details error errormessage description reason title text errors")
_STATUS = kinds_of("status statuscode code errorcode httpstatus")
_NAMES = {400: "bad_request", 404: "not_found", 409: "conflict", 422: "unprocessable"}
_FIRST = datetime(2026, 1, 1)
_DEPTH = 4


def refusal(model: Model, operation: Operation, kind: RefusalKind, status: int, message: str) -> ToolResult:
    """The refusal as the agent sees it; a plain text where the document declares no shape that it fits."""
    schema = _schema(operation, status)
    if schema is not None:
        content = _written(model, schema, status, message, 0)
        if isinstance(content, dict) and model.fault(schema, content) is None and message in str(content):
            return ToolResult(content, kind)
    return ToolResult.refusal(kind, message)


def _schema(operation: Operation, status: int) -> JsonObject | None:
    for name in (str(status), "4XX", "default", *(("400", "422") if status in (400, 422) else ())):
        if operation.failures.get(name) is not None:
            return operation.failures[name]
    return None


def _written(model: Model, schema: JsonObject, status: int, message: str, depth: int) -> JsonValue:
    """An error of a shape: the message and the status where their names say so, made values where they must be."""
    properties, required = model.viewer.shape(schema)
    if not properties or depth > _DEPTH:
        return _other(model, schema)
    made: JsonObject = {}
    for name, child in properties.items():
        value = _field(model, name, model.responses.look(child), status, message, depth)
        if value is not None:
            made[name] = value
        elif name in required:
            made[name] = _other(model, child)
    return made


def _field(model: Model, name: str, schema: JsonObject, status: int, message: str, depth: int) -> JsonValue:
    kind, key = schema.get("type"), plain(name)
    if key in _STATUS:
        value: JsonValue = status if kind in ("integer", "number") else _NAMES.get(status, str(status))
        return value if model.fault(schema, value) is None else None
    if key not in _MESSAGE:
        return None
    if model.responses.all_properties(schema):
        return _written(model, schema, status, message, depth + 1)
    if kind == "array":
        items = model.responses.look(schema.get("items", {}))
        inner = _written(model, items, status, message, depth + 1) if model.responses.all_properties(items) else message
        return [inner]
    return message if model.fault(schema, message) is None else None


def _other(model: Model, schema: JsonObject) -> JsonValue:
    try:
        return model.maker.make(schema, (), Occasion("error", 0, random.Random(0), _FIRST))
    except (LeftOut, Omit):
        return None
