"""Values for a parameter of which the state has nothing under its own name: the wide second look.

Used once the likely values have failed, or where there are none: rows of the state under names alike, what the
description and refusals say, forms of dates and times, and plain samples at last.
"""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.hints import Hints, read_hints
from trajsmith.grounding.names import is_identifier, split_name
from trajsmith.grounding.rows import RowIndex, sample_texts
from trajsmith.grounding.values import GENERIC_TEXTS, ValuePool, get_array_item
from trajsmith.phrasing.value_formatting import parse_datetime

MOST, DEEPEST = 32, 3
KEY = 0.35
"""Weight of the key of any row for an identifier, beside values of 1.5 that stand under its name."""
Weighted = tuple[float, Any]
_QUERY = frozenset({"query", "q", "keyword", "search", "term", "pattern", "filter", "contain", "criteria", "prefix"})
_LATITUDES = frozenset({"lat", "latitude"})
_SAMPLES: dict[str, tuple[str, ...]] = {
    "email": ("alex.morgan@example.com", "sam.lee@example.org"),
    "mail": ("alex.morgan@example.com",),
    "recipient": ("alex.morgan@example.com",),
    "phone": ("+12025550143",),
    "url": ("https://example.com/page",),
    "uri": ("https://example.com/page",),
    "link": ("https://example.com/page",),
    "path": ("/report.txt", "report.txt", "/", "."),
    "file": ("report.txt", "/report.txt"),
    "folder": ("archive",),
    "directory": ("archive", "/"),
    "dir": ("archive",),
    "currency": ("USD", "EUR"),
    "language": ("en", "English"),
    "country": ("US", "United States"),
    "city": ("London", "New York"),
    "location": ("London",),
    "address": ("12 High Street",),
    "color": ("red", "#336699"),
    "colour": ("red", "#336699"),
    "name": ("Alex Morgan", "Spring review"),
    "username": ("alex",),
    "user": ("alex",),
    "password": ("Str0ng-Passw0rd",),
    "time": ("10:00",),
    "timezone": ("UTC",),
    "branch": ("feature-x",),
    "range": ("A1:B2",),
    "expression": ("2 + 3",),
    "zip": ("10001",),
    "ip": ("192.0.2.10",),
    "domain": ("example.com",),
}


def guess_values(
    field: SchemaField,
    index: RowIndex,
    pool: ValuePool,
    learnt: Hints | None,
    rng: random.Random,
    root: Any,
    depth: int = 0,
) -> list[Weighted]:
    """Return (weight, value) of everything that a scalar, list or object parameter might take, each value once.

    Args:
        learnt: What refusals said about the parameter.
        root: Schema that local references lead into.
        depth: Lists around the value.
    """
    if depth > DEEPEST:
        return []
    if learnt is not None and learnt.kind and "array" not in field.types:
        field = replace(field, types=frozenset({learnt.kind}))
    if "array" in field.types:
        return _drop_duplicates(_lists(field, index, pool, learnt, rng, root, depth))
    if "object" in field.types and not field.types & {"string", "integer", "number"}:
        return _drop_duplicates(_objects(field, index, learnt))
    return _drop_duplicates(_scalars(field, index, pool, learnt, rng))


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
        return value if (not types or types & {"integer", "number"}) and _within(value, schema) else None
    if not isinstance(value, str) or (types and "string" not in types):
        return None
    return _fit_text(value, field, template)


def _fit_text(value: str, field: SchemaField, template: str | None) -> str | None:
    form = template or {"date": "%Y-%m-%d", "date-time": "%Y-%m-%dT%H:%M:%S"}.get(str(field.schema.get("format")))
    moment = parse_datetime(value) if form else None
    if form and moment is not None:
        whole = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day, 10)
        value = whole.strftime(form)
    pattern = field.schema.get("pattern")
    try:
        fits = not isinstance(pattern, str) or re.search(pattern, value) is not None
    except re.error:
        fits = True
    longest, shortest = field.schema.get("maxLength"), field.schema.get("minLength", 0)
    return value if fits and shortest <= len(value) <= (longest or len(value)) else None


def _within(value: float, schema: dict[str, Any]) -> bool:
    bounds = (schema.get(name) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))
    low, high, above, below = (bound if _real(bound) else None for bound in bounds)
    return (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
        and (below is None or value < below)
    )


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_number(value: str) -> int | float | None:
    try:
        return int(value)
    except ValueError:
        try:
            return float(value)
        except ValueError:
            return None


def _scalars(
    field: SchemaField, index: RowIndex, pool: ValuePool, learnt: Hints | None, rng: random.Random
) -> Iterator[Weighted]:
    described = read_hints(field.description)
    template = (learnt and learnt.template) or described.template
    offered: list[tuple[float, Iterable[Any]]] = []
    if learnt is not None:
        offered += [(6.0, learnt.choices), (3.0, learnt.examples), (5.0, _in_limits(field, learnt, rng))]
    if isinstance(field.schema.get("enum"), list):
        offered.append((2.0, field.schema["enum"]))
    if "boolean" in field.types:
        offered.append((1.0, (True, False)))
    offered += [(2.5, described.choices), (1.5, described.examples)]
    for weight, values in offered:
        for value in values:
            yield weight, fit_value(value, field, template)
    for score, value in _sample_values(index.values(split_name(field.name), field.context), rng):
        yield score**2 * 1.5, fit_value(value, field, template)
    if is_identifier(field.name):
        for value in dict.fromkeys(row.identity[1] for row in index.rows[: 2 * MOST] if row.identity is not None):
            yield KEY, fit_value(value, field, template)
    for value in _generate_values(field, index, pool, described, template, rng):
        yield 0.3, fit_value(value, field, template)


def _sample_values(weighted: Iterator[Weighted], rng: random.Random) -> list[Weighted]:
    """Some of many, the likest first; equals in random order."""
    once: dict[str, Weighted] = {}
    for number, (score, value) in enumerate(weighted):
        once.setdefault(repr(value), (score, value))
        if number > 2000:
            break
    ordered = sorted(once.values(), key=lambda pair: (-pair[0], rng.random()))
    return ordered[:MOST]


def _generate_values(
    field: SchemaField, index: RowIndex, pool: ValuePool, hints: Hints, template: str | None, rng: random.Random
) -> Iterator[Any]:
    parts = split_name(field.name)
    if field.types & {"integer", "number"}:
        yield from _in_limits(field, hints, rng)
        yield from (1, 2, 5, 10, 3, 20, 50, 100) if not set(parts) & _LATITUDES else (51.5, 40.7)
    if field.types and "string" not in field.types:
        return
    timely = template or field.schema.get("format") in ("date", "date-time") or set(parts) & {"date", "day", "datetime"}
    if timely:
        form = template or ("%Y-%m-%dT%H:%M:%S" if field.schema.get("format") == "date-time" else "%Y-%m-%d")
        yield from _format_datetimes(pool.now, form, parts)
    if set(parts) & _QUERY:
        yield from sample_texts(index, rng, MOST // 2)
    for word in reversed(parts):
        yield from _SAMPLES.get(word, ())
        yield from GENERIC_TEXTS.get(word, ())
    yield from GENERIC_TEXTS["text"][:1]
    yield from sample_texts(index, rng, 4)


def _format_datetimes(now: datetime, form: str, parts: tuple[str, ...]) -> Iterator[str]:
    late = 20 if set(parts) & {"end", "until", "to", "checkout", "out", "return", "due"} else 0
    for days in (1, 3, 7, -1, -7, 0, 30, -30):
        moment = datetime.combine(now.date() + timedelta(days=days + late), datetime.min.time()).replace(hour=10)
        try:
            yield moment.strftime(form)
        except ValueError:
            return


def _in_limits(field: SchemaField, hints: Hints, rng: random.Random) -> list[Any]:
    """Numbers between the limits that a text names."""
    if not field.types & {"integer", "number"} or (hints.low is None and hints.high is None):
        return []
    low = hints.low if hints.low is not None else min(1.0, hints.high or 1.0)
    high = hints.high if hints.high is not None else low + 10
    numbers = [low, high, (low + high) / 2, low + rng.random() * (high - low)]
    return [int(value) for value in numbers] if "integer" in field.types else [round(value, 2) for value in numbers]


def _lists(
    field: SchemaField,
    index: RowIndex,
    pool: ValuePool,
    learnt: Hints | None,
    rng: random.Random,
    root: Any,
    depth: int,
) -> Iterator[Weighted]:
    item = get_array_item(field, root) or (replace(field, types=frozenset()) if learnt is not None else None)
    for score, value in _sample_values(index.values(split_name(field.name), field.context, lists=True), rng):
        if isinstance(value, list) and (item is None or all(_item_fits(one, item) for one in value)):
            yield score, value[:3]
    if item is None:
        yield 0.2, ["a"]
        return
    of_item = replace(learnt, kind=None) if learnt is not None and learnt.kind == "array" else learnt
    values = [value for _, value in guess_values(item, index, pool, of_item, rng, root, depth + 1)]
    for value in values[:12]:
        yield 0.5, [value]
    if len(values) > 1:
        yield 0.3, values[:2]
    if isinstance(item.schema.get("enum"), list) or read_hints(field.description).choices:
        yield 3.0, values[:12]
    if not field.schema.get("minItems"):
        yield 0.05, []


def _item_fits(value: Any, item: SchemaField) -> bool:
    if isinstance(value, dict | list):
        return not item.types or ("object" if isinstance(value, dict) else "array") in item.types
    return bool(fit_value(value, item) == value)


def _objects(field: SchemaField, index: RowIndex, learnt: Hints | None) -> Iterator[Weighted]:
    if learnt is not None and learnt.keys:
        yield 8.0, dict.fromkeys(learnt.keys, GENERIC_TEXTS["text"][0])
    for score, value in index.values(split_name(field.name), field.context, lists=True):
        if isinstance(value, dict):
            yield score, value
    for row in index.rows[:40]:
        plain = {"_".join(alias): value for alias, value in row.values.items() if len(alias) == 1}
        if plain:
            yield 0.2, dict(list(plain.items())[:4])
    yield 0.2, {"name": "Spring review", "status": "active"}
    yield 0.1, {}


def _drop_duplicates(weighted: Iterable[Weighted]) -> list[Weighted]:
    """Each value once, with its best weight; most likely first."""
    best: dict[str, Weighted] = {}
    for weight, value in weighted:
        if value is not None and (repr(value) not in best or best[repr(value)][0] < weight):
            best[repr(value)] = (weight, value)
    return sorted(best.values(), key=lambda pair: -pair[0])[: 2 * MOST]


__all__ = ["fit_value", "guess_values"]
