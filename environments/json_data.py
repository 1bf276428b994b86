"""Conversion of foreign values to plain JSON data; what is no JSON is refused with its place."""

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel

from trajsmith.records import JsonValue, to_one_line

_LONG = re.compile(r"\d{19}")
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_DEEPEST = 200


class NotJsonError(ValueError):
    """Value that JSON cannot carry; the text is "place: reason"."""


def to_plain_json(value: object) -> JsonValue:
    """Convert a value to fresh plain JSON data, as the usual encoders of tool servers read it.

    Models and dataclasses become objects, dates and UUIDs text, tuples and sets arrays, integer keys text.

    Raises:
        NotJson: Something is no JSON: NaN, infinity, bytes, a cycle, an integer beyond 64 bits, lone surrogates.
    """
    try:
        converted = orjson.loads(orjson.dumps(value))
        if converted == value:  # most values; NaN would have become null
            return converted
    except (TypeError, ValueError):
        pass  # the slow way knows more types, and says what is wrong
    try:
        text = _ENCODER.encode(value)
        if _LONG.search(text):
            json.loads(text, parse_int=_checked)
        converted = orjson.loads(text)
        orjson.dumps(converted)  # refuses what is nested too deeply
        return converted
    except (TypeError, ValueError, RecursionError, AttributeError) as error:
        raise NotJsonError(_fault(value) or f"$: {to_one_line(error, 200)}") from error


def to_exact_json(value: object) -> JsonValue:
    """Convert like `to_plain_json`, but refuse values that do not come back as they were (tuples, sets, models).

    Raises:
        NotJson: JSON cannot carry it, or would give back something else.
    """
    converted = to_plain_json(value)
    if converted != value:
        raise NotJsonError(_find_difference(value, converted, "$"))
    return converted


def _checked(digits: str) -> int:
    number = int(digits)
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError("integer beyond 64 bits")
    return number


def _convert(value: object) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID | Decimal | PurePath):
        return str(value)
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_convert)


def _fault(value: object) -> str:
    """The first place that is no JSON, found the slow way; empty if none is found."""
    return next(_faults(value, "$", ()), "")


def _faults(value: object, place: str, above: tuple[int, ...]) -> Iterator[str]:
    if id(value) in above:
        yield f"{place}: a cycle"
    elif len(above) > _DEEPEST:
        yield f"{place[:80]}...: nested too deeply"
    elif isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str | int):
                yield f"{place}: the key {key!r:.80} is no text"
            else:
                yield from _faults(child, f"{place}.{key}", (*above, id(value)))
    elif isinstance(value, list | tuple | set | frozenset):
        for number, child in enumerate(value):
            yield from _faults(child, f"{place}[{number}]", (*above, id(value)))
    else:
        try:
            inner = value if value is None or isinstance(value, str | int | float) else _convert(value)
        except TypeError as error:
            yield f"{place}: {error}"
            return
        yield from _leaf(inner, place) if inner is value else _faults(inner, place, (*above, id(value)))


def _leaf(value: object, place: str) -> Iterator[str]:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        yield f"{place}: {value} is no JSON"
    elif isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        yield f"{place}: an integer beyond 64 bits"
    elif isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            yield f"{place}: text with lone surrogates"


def _find_difference(value: object, converted: JsonValue, place: str) -> str:
    """Return the place where a value and its JSON differ."""
    if type(value) is dict and isinstance(converted, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                return f"{place}: the key {key!r:.80} is no text"
            if child != converted[key]:
                return _find_difference(child, converted[key], f"{place}.{key}")
    if type(value) is list and isinstance(converted, list):
        for number, (child, other) in enumerate(zip(value, converted, strict=True)):
            if child != other:
                return _find_difference(child, other, f"{place}[{number}]")
    return f"{place}: a {type(value).__name__} does not come back from JSON as it was"
