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

from chatmodel.surface import as_moment
from grounding.fields import SchemaField
from grounding.hints import Hints, read_hints
from grounding.names import is_identifier, words
from grounding.rows import RowIndex, texts_in
from grounding.values import GENERIC_TEXTS, ValuePool, array_item

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


def guessed(
    field: SchemaField,
    index: RowIndex,
    pool: ValuePool,
    learnt: Hints | None,
    rng: random.Random,
    root: Any,
    depth: int = 0,
) -> list[Weighted]:
    """(weight, value) of everything that a scalar, list or object parameter might take, each value once.

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
        return _once(_lists(field, index, pool, learnt, rng, root, depth))
    if "object" in field.types and not field.types & {"string", "integer", "number"}:
        return _once(_objects(field, index, learnt))
    return _once(_scalars(field, index, pool, learnt, rng))


def fitted(value: Any, field: SchemaField, template: str | None = None) -> Any:
    """The value as the parameter wants it: a number for its text, a day for a moment; None if it does not fit."""
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
    return _fitted_text(value, field, template)


def _fitted_text(value: str, field: SchemaField, template: str | None) -> str | None:
    form = template or {"date": "%Y-%m-%d", "date-time": "%Y-%m-%dT%H:%M:%S"}.get(str(field.schema.get("format")))
    moment = as_moment(value) if form else None
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
    told = read_hints(field.description)
    template = (learnt and learnt.template) or told.template
    offered: list[tuple[float, Iterable[Any]]] = []
    if learnt is not None:
        offered += [(6.0, learnt.choices), (3.0, learnt.examples), (5.0, _in_limits(field, learnt, rng))]
    if isinstance(field.schema.get("enum"), list):
        offered.append((2.0, field.schema["enum"]))
    if "boolean" in field.types:
        offered.append((1.0, (True, False)))
    offered += [(2.5, told.choices), (1.5, told.examples)]
    for weight, values in offered:
        for value in values:
            yield weight, fitted(value, field, template)
    for score, value in _sampled(index.values(words(field.name), field.context), rng):
        yield score**2 * 1.5, fitted(value, field, template)
    if is_identifier(field.name):
        for value in dict.fromkeys(row.identity[1] for row in index.rows[: 2 * MOST] if row.identity is not None):
            yield KEY, fitted(value, field, template)
    for value in _made(field, index, pool, told, template, rng):
        yield 0.3, fitted(value, field, template)


def _sampled(found: Iterator[Weighted], rng: random.Random) -> list[Weighted]:
    """Some of many, the likest first; equals in random order."""
    once: dict[str, Weighted] = {}
    for number, (score, value) in enumerate(found):
        once.setdefault(repr(value), (score, value))
        if number > 2000:
            break
    ordered = sorted(once.values(), key=lambda pair: (-pair[0], rng.random()))
    return ordered[:MOST]


def _made(
    field: SchemaField, index: RowIndex, pool: ValuePool, told: Hints, template: str | None, rng: random.Random
) -> Iterator[Any]:
    parts = words(field.name)
    if field.types & {"integer", "number"}:
        yield from _in_limits(field, told, rng)
        yield from (1, 2, 5, 10, 3, 20, 50, 100) if not set(parts) & _LATITUDES else (51.5, 40.7)
    if field.types and "string" not in field.types:
        return
    timely = template or field.schema.get("format") in ("date", "date-time") or set(parts) & {"date", "day", "datetime"}
    if timely:
        form = template or ("%Y-%m-%dT%H:%M:%S" if field.schema.get("format") == "date-time" else "%Y-%m-%d")
        yield from _moments(pool.now, form, parts)
    if set(parts) & _QUERY:
        yield from texts_in(index, rng, MOST // 2)
    for word in reversed(parts):
        yield from _SAMPLES.get(word, ())
        yield from GENERIC_TEXTS.get(word, ())
    yield from GENERIC_TEXTS["text"][:1]
    yield from texts_in(index, rng, 4)


def _moments(now: datetime, form: str, parts: tuple[str, ...]) -> Iterator[str]:
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
    found = [low, high, (low + high) / 2, low + rng.random() * (high - low)]
    return [int(value) for value in found] if "integer" in field.types else [round(value, 2) for value in found]


def _lists(
    field: SchemaField,
    index: RowIndex,
    pool: ValuePool,
    learnt: Hints | None,
    rng: random.Random,
    root: Any,
    depth: int,
) -> Iterator[Weighted]:
    item = array_item(field, root) or (replace(field, types=frozenset()) if learnt is not None else None)
    for score, value in _sampled(index.values(words(field.name), field.context, lists=True), rng):
        if isinstance(value, list) and (item is None or all(_item_fits(one, item) for one in value)):
            yield score, value[:3]
    if item is None:
        yield 0.2, ["a"]
        return
    of_item = replace(learnt, kind=None) if learnt is not None and learnt.kind == "array" else learnt
    values = [value for _, value in guessed(item, index, pool, of_item, rng, root, depth + 1)]
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
    return bool(fitted(value, item) == value)


def _objects(field: SchemaField, index: RowIndex, learnt: Hints | None) -> Iterator[Weighted]:
    if learnt is not None and learnt.keys:
        yield 8.0, dict.fromkeys(learnt.keys, GENERIC_TEXTS["text"][0])
    for score, value in index.values(words(field.name), field.context, lists=True):
        if isinstance(value, dict):
            yield score, value
    for row in index.rows[:40]:
        plain = {"_".join(alias): value for alias, value in row.values.items() if len(alias) == 1}
        if plain:
            yield 0.2, dict(list(plain.items())[:4])
    yield 0.2, {"name": "Spring review", "status": "active"}
    yield 0.1, {}


def _once(found: Iterable[Weighted]) -> list[Weighted]:
    """Each value once, with its best weight; most likely first."""
    best: dict[str, Weighted] = {}
    for weight, value in found:
        if value is not None and (repr(value) not in best or best[repr(value)][0] < weight):
            best[repr(value)] = (weight, value)
    return sorted(best.values(), key=lambda pair: -pair[0])[: 2 * MOST]


__all__ = ["fitted", "guessed"]
