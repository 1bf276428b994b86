"""Values by one schema alone: its choices, boundaries, values that it allows or forbids, and conversion to it."""

import re
from datetime import date, datetime, time
from typing import Any

from trajsmith.environments.schema_patterns import matches_pattern
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.text_generation import LONGEST_SAMPLE, list_matching_texts
from trajsmith.phrasing import parse_datetime, shift_within_calendar
from trajsmith.records import JsonObject

FARTHEST = 10**15
OTHER_TEXTS = ("Something else entirely", "None of that", "See above")
_OFFSET = re.compile(r"(?:[zZ]|[+-]\d\d:?\d\d)$")
_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def fits_schema(value: Any, schema: JsonObject, types: frozenset[str]) -> bool:
    """Return True if a value fits this schema, by cheap tests only."""
    if not has_type(value, types):
        return False
    if isinstance(value, str):
        return _fits_text(value, schema)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return is_within_bounds(value, schema)
    return True


def _fits_text(value: str, schema: JsonObject) -> bool:
    pattern = schema.get("pattern")
    if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", FARTHEST):
        return False
    return not isinstance(pattern, str) or matches_pattern(pattern, value)


def has_type(value: Any, types: frozenset[str]) -> bool:
    """Return True if a value has one of these JSON types; any value has one of none."""
    for kind in types:  # no generator: this is asked a hundred thousand times
        if is_json_type(value, kind):
            return True
    return not types


def has_format(value: Any, form: str) -> bool:
    """Return True if a text has a JSON Schema format; formats other than dates are assumed to match."""
    if not isinstance(value, str) or form not in ("date", "date-time", "time"):
        return True
    try:
        {"date": date.fromisoformat, "date-time": datetime.fromisoformat, "time": time.fromisoformat}[form](value)
    except ValueError:
        return False
    return True


def lacks_utc_offset(value: Any, form: str) -> bool:
    """Return True for a time without UTC offset, which RFC 3339 requires and many tools do not."""
    return form in ("date-time", "time") and isinstance(value, str) and _OFFSET.search(value) is None


def is_json_type(value: Any, kind: str) -> bool:
    """Return True if a value has a JSON type; a boolean is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int)
    return isinstance(value, _KINDS.get(kind, (object,)))


def is_within_bounds(value: float, schema: JsonObject) -> bool:
    """Return True if a number keeps the bounds of a schema; bounds that are no numbers say nothing."""
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    below, above = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    return (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (below is None or value > below)
        and (above is None or value < above)
    )


def _bound(schema: JsonObject, name: str) -> float | None:
    bound = schema.get(name)
    return bound if isinstance(bound, int | float) and not isinstance(bound, bool) else None


def list_allowed_numbers(schema: JsonObject, whole: bool) -> list[Any]:
    """Numbers that a schema allows: small ones, and its edges."""
    step = 1 if whole else 0.01
    low = schema.get("minimum")
    if low is None:
        low = schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else 1
    high = schema.get("maximum")
    if high is None and "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    candidates = [low, low + 1, low + 2, low + 4, *([] if whole else [low + 0.5, 12.5])]
    candidates += [high, high - 1, (low + high) // 2] if high is not None else [10, 25, 100]
    allowed = [int(value) if whole else value for value in candidates]
    return [value for value in allowed if is_within_bounds(value, schema)] or [low]


def list_boundary_values(schema: JsonObject, types: frozenset[str]) -> list[Any]:
    """Values at the edge of what a schema allows; correct code stands all of them."""
    if "enum" in schema or "const" in schema:
        return []
    if types & {"integer", "number"}:
        whole = "integer" in types
        values = [
            schema.get("minimum"),
            schema.get("maximum"),
            0,
            -1,
            FARTHEST,
            -FARTHEST,
            *([] if whole else [0.001, 1e300]),
        ]
        return [value for value in values if value is not None and is_within_bounds(value, schema)]
    if "string" in types:
        return _text_edges(schema)
    return []


def _text_edges(schema: JsonObject) -> list[str]:
    if schema.get("format") == "date":
        return ["0001-01-01", "9999-12-31", "2024-02-29"]
    if schema.get("format") == "date-time":
        return ["0001-01-01T00:00:00", "9999-12-31T23:59:59"]
    if schema.get("format"):
        return []
    if isinstance(schema.get("pattern"), str):
        return list(list_matching_texts(schema["pattern"])[:6])
    low, high = int(schema.get("minLength", 0)), int(schema.get("maxLength", 5000))
    edges = ["x" * length for length in (low, high) if length <= LONGEST_SAMPLE]
    values = ["", " ", "0", *edges, "Ωé漢字🙂 \"'\\<b>\n\t", "null", "\u0000", "%s{0}$(x)"]
    return [text for text in dict.fromkeys(values) if low <= len(text) <= high]


def list_invalid_values(schema: JsonObject, types: frozenset[str]) -> list[Any]:
    """Values that a schema forbids."""
    values: list[Any] = []
    if isinstance(schema.get("enum"), list):
        values.append("no such choice")
    if types & {"integer", "number"}:
        values += [
            value
            for value in (schema.get("minimum", 0) - 1, schema.get("maximum", 0) + 1)
            if not is_within_bounds(value, schema)
        ]
    if "string" in types and "enum" not in schema:
        values += [{}, []]
        if schema.get("minLength"):
            values.append("")
        if schema.get("maxLength", LONGEST_SAMPLE) < LONGEST_SAMPLE:
            values.append("x" * (int(schema["maxLength"]) + 1))
        if schema.get("format") in ("date", "date-time"):
            values.append("not a date")
    elif types and not types & {"object", "array"}:
        values += ["not a number", []]
    elif "array" in types and "string" not in types:
        values.append({"not": "a list"})
    elif "object" in types:
        values.append("not an object")
    return values


def fit_value(value: Any, field: SchemaField, template: str | None = None) -> Any:
    """Convert the value to what the parameter accepts: a number for its text, a day for a time; None if none fits."""
    schema, types = field.schema, field.types
    choices = schema.get("enum")
    if isinstance(choices, list):
        return value if value in choices else None
    if isinstance(value, bool):
        return value if not types or "boolean" in types else None
    if types and "string" not in types and isinstance(value, str):
        value = _as_number(value)
    elif types == frozenset({"string"}) and isinstance(value, int | float):
        value = str(value)
    if isinstance(value, float) and types and "number" not in types:
        value = int(value) if value.is_integer() and "integer" in types else None
    if isinstance(value, int | float):
        return value if (not types or types & {"integer", "number"}) and is_within_bounds(value, schema) else None
    if not isinstance(value, str) or (types and "string" not in types):
        return None
    return _fit_text(value, field, template)


def _fit_text(value: str, field: SchemaField, template: str | None) -> str | None:
    form = template or {"date": "%Y-%m-%d", "date-time": "%Y-%m-%dT%H:%M:%S"}.get(str(field.schema.get("format")))
    moment = parse_datetime(value) if form else None
    if form and moment is not None:
        whole = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day, 10)
        value = whole.strftime(form)
    return value if _fits_text(value, field.schema) else None


def _as_number(value: str) -> int | float | None:
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return None


def list_nearby_values(value: Any, field: SchemaField) -> list[Any]:
    """Return other values beside a value: numbers and days close to it, other texts; empty where it is a choice."""
    if isinstance(value, bool) or value is None or field.choices:
        return []
    if isinstance(value, int | float):
        return [other for other in (value + 1, value - 1, value * 2) if is_within_bounds(other, field.schema)]
    moment = parse_datetime(value)
    if moment is not None:
        return [shift_within_calendar(moment, days).isoformat()[: len(str(value))] for days in (1, 2, 7)]
    if isinstance(value, str) and "pattern" not in field.schema:
        return [text[: field.schema.get("maxLength", 200)] for text in OTHER_TEXTS]
    return []
