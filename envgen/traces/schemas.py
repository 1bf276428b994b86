"""Schemas of arguments and results, inferred from values or taken from a recording's tool definitions."""

from collections.abc import Sequence
from typing import Any

from trajsmith.records import JsonObject

MOST_FIELDS = 40
"""Fields of an object; one with more is a mapping."""
Schema = dict[str, Any]


def infer_result_schema(values: Sequence[Any]) -> Schema:
    """Return a JSON Schema of results: numbers may have fractions, and only the outermost fields are required."""
    schema: Schema = _loosen(infer_value_schema(values), 0)
    return schema


def _loosen(schema: Any, depth: int) -> Any:
    if isinstance(schema, list):
        return [_loosen(one, depth) for one in schema]
    if not isinstance(schema, dict):
        return schema
    loose = {
        name: {field: _loosen(inner, depth + 1) for field, inner in value.items()}
        if name == "properties"
        else _loosen(value, depth + 1)
        if name in ("items", "anyOf")
        else value
        for name, value in schema.items()
        if name != "required" or depth == 0
    }
    return {**loose, "type": "number"} if loose.get("type") == "integer" else loose


def infer_value_schema(values: Sequence[Any], depth: int = 0) -> Schema:
    """Return a JSON Schema that holds for all values."""
    schemas: list[Schema] = []
    kinds = {_name_type(value) for value in values}
    if "integer" in kinds and "number" in kinds:
        kinds.discard("integer")
    for kind in sorted(kinds):
        if kind == "object":
            objects = [value for value in values if isinstance(value, dict)]
            schemas.append(_infer_object(objects, depth))
        elif kind == "array":
            items = [item for value in values if isinstance(value, list) for item in value]
            schemas.append(
                {"type": "array", **({"items": infer_value_schema(items, depth + 1)} if items and depth < 6 else {})}
            )
        else:
            schemas.append({"type": kind})
    if len(schemas) == 1:
        return schemas[0]
    return {"anyOf": schemas} if schemas else {}


def _infer_object(objects: Sequence[JsonObject], depth: int) -> Schema:
    names = list(dict.fromkeys(name for one in objects for name in one))
    shared = [name for name in names if all(name in one for one in objects)]
    if depth >= 6 or len(names) > MOST_FIELDS or (len(objects) > 2 and not shared and len(names) > 3):
        return {"type": "object"}
    fields = {name: infer_value_schema([one[name] for one in objects if name in one], depth + 1) for name in names}
    return (
        {"type": "object", "properties": fields, "required": shared}
        if shared
        else {"type": "object", "properties": fields}
    )


def _name_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    kinds = {int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(value)]


def infer_arguments_schema(calls: Sequence[JsonObject], stated: JsonObject | None) -> Schema:
    """Return the schema of a tool's arguments: the stated one, else what calls show."""
    if isinstance(stated, dict) and isinstance(stated.get("properties"), dict):
        return stated
    names = list(dict.fromkeys(name for call in calls for name in call))
    return {
        "type": "object",
        "properties": {name: infer_value_schema([call[name] for call in calls if name in call], 1) for name in names},
        "required": [name for name in names if all(name in call for call in calls)],
    }
