"""Values that a schema allows, its boundary values, and values that it forbids."""

import contextlib
import functools
import random
import re
from datetime import date, datetime, time
from typing import Any

from trajsmith.environments import pattern_text
from trajsmith.records import JsonObject

PLAIN = (
    "Meeting moved to Thursday",
    "Please handle this soon",
    "Blue folder, second shelf",
    "Thanks for the quick answer",
    "a",
)
FARTHEST = 10**15
PATTERNS = 24
"""Texts that are made for a pattern."""
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
    for kind in types:  # no generator: this is asked a hundred thousand times
        if is_json_type(value, kind):
            break
    else:
        if types:
            return False
    if isinstance(value, str):
        pattern = schema.get("pattern")
        if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", FARTHEST):
            return False
        return not isinstance(pattern, str) or re.search(pattern, value) is not None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return is_within_bounds(value, schema)
    return True


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
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int)
    return isinstance(value, _KINDS.get(kind, (object,)))


def is_within_bounds(value: float, schema: JsonObject) -> bool:
    low, high = schema.get("minimum"), schema.get("maximum")
    below, above = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (below is None or value > below)
        and (above is None or value < above)
    )


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


def list_edge_values(schema: JsonObject, types: frozenset[str]) -> list[Any]:
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
        return list(_matching(schema["pattern"])[:6])
    low, high = int(schema.get("minLength", 0)), int(schema.get("maxLength", 5000))
    values = ["", " ", "0", "x" * low, "x" * high, "Ωé漢字🙂 \"'\\<b>\n\t", "null", "\u0000", "%s{0}$(x)"]
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
        if "maxLength" in schema:
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


def generate_matching_text(pattern: str, rng: random.Random) -> str:
    """A text that a regular expression finds."""
    return rng.choice(_matching(pattern))


@functools.lru_cache(maxsize=256)
def _matching(pattern: str) -> tuple[str, ...]:
    """Texts for a pattern, always the same ones; one empty text if none could be made."""
    texts = dict[str, None]()
    for seed in range(PATTERNS):
        with contextlib.suppress(ValueError):
            texts[pattern_text.generate_matching_text(pattern, random.Random(seed))] = None
    return tuple(texts) or ("",)
