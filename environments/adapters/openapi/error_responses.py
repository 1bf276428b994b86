"""Build error responses in the shape that the document declares."""

import random
from datetime import datetime

from trajsmith.environments.adapters.openapi.document_model import DocumentModel
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words
from trajsmith.environments.adapters.openapi.operations import Operation
from trajsmith.environments.adapters.openapi.value_generation import OmitValue, ValueContext
from trajsmith.environments.session import RefusalKind, ToolResult
from trajsmith.records import JsonObject, JsonValue

_MESSAGE = normalize_words("message msg detail details error errormessage description reason title text errors")
_STATUS = normalize_words("status statuscode code errorcode httpstatus")
_NAMES = {400: "bad_request", 404: "not_found", 409: "conflict", 422: "unprocessable"}
_FIRST = datetime(2026, 1, 1)
_DEPTH = 4


def build_error_response(
    model: DocumentModel, operation: Operation, kind: RefusalKind, status: int, message: str
) -> ToolResult:
    """Return the error response; a plain text where the document declares no shape that fits."""
    schema = _find_error_schema(operation, status)
    if schema is not None:
        content = _build_error(model, schema, status, message, 0)
        if isinstance(content, dict) and model.find_fault(schema, content) is None and message in str(content):
            return ToolResult(content, kind)
    return ToolResult.refusal(kind, message)


def _find_error_schema(operation: Operation, status: int) -> JsonObject | None:
    for name in (str(status), "4XX", "default", *(("400", "422") if status in (400, 422) else ())):
        if operation.failures.get(name) is not None:
            return operation.failures[name]
    return None


def _build_error(model: DocumentModel, schema: JsonObject, status: int, message: str, depth: int) -> JsonValue:
    """An error of a shape: the message and the status where their names say so, made values where they must be."""
    properties, required = model.viewer.shape(schema)
    if not properties or depth > _DEPTH:
        return _build_other_value(model, schema)
    content: JsonObject = {}
    for name, child in properties.items():
        value = _build_error_field(model, name, model.responses.look(child), status, message, depth)
        if value is not None:
            content[name] = value
        elif name in required:
            content[name] = _build_other_value(model, child)
    return content


def _build_error_field(
    model: DocumentModel, name: str, schema: JsonObject, status: int, message: str, depth: int
) -> JsonValue:
    kind, key = schema.get("type"), normalize_name(name)
    if key in _STATUS:
        value: JsonValue = status if kind in ("integer", "number") else _NAMES.get(status, str(status))
        return value if model.find_fault(schema, value) is None else None
    if key not in _MESSAGE:
        return None
    if model.responses.all_properties(schema):
        return _build_error(model, schema, status, message, depth + 1)
    if kind == "array":
        items = model.responses.look(schema.get("items", {}))
        inner = (
            _build_error(model, items, status, message, depth + 1) if model.responses.all_properties(items) else message
        )
        return [inner]
    return message if model.find_fault(schema, message) is None else None


def _build_other_value(model: DocumentModel, schema: JsonObject) -> JsonValue:
    try:
        return model.maker.make(schema, (), ValueContext("error", 0, random.Random(0), _FIRST))
    except (UnsupportedFeature, OmitValue):
        return None
