"""Values for a parameter of which the state has nothing under its own name: the wide second look.

Used once the likely values have failed, or where there are none: rows of the state under names alike, what the
description and refusals say, forms of dates and times, and plain samples at last.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from trajsmith.grounding.fields import SchemaField, get_array_item
from trajsmith.grounding.hints import Hints, read_hints
from trajsmith.grounding.names import is_identifier, split_name
from trajsmith.grounding.rows import RowIndex, sample_texts
from trajsmith.grounding.schema_values import fit_value
from trajsmith.grounding.text_generation import GENERIC_TEXTS, SAMPLE_VALUES, list_matching_texts
from trajsmith.phrasing import shift_within_calendar

MOST, DEEPEST = 32, 3
KEY = 0.35
"""Weight of the key of any row for an identifier, beside values of 1.5 that stand under its name."""
OTHER_TEXT = 0.03
"""Weight of plain samples and of texts of the state where the schema has examples: a file has no room as a remark."""
Weighted = tuple[float, Any]
_QUERY = frozenset({"query", "q", "keyword", "search", "term", "pattern", "filter", "contain", "criteria", "prefix"})
SPAN_ENDS = frozenset({"end", "until", "to", "checkout", "out", "return", "due", "finish", "latest"})
"""Words of parameters that end a span of time; their days lie after those of others."""
_LATITUDES = frozenset({"lat", "latitude"})


def guess_values(
    field: SchemaField,
    index: RowIndex,
    now: datetime,
    learnt: Hints | None,
    rng: random.Random,
    root: Any,
    depth: int = 0,
) -> list[Weighted]:
    """Return (weight, value) of everything that a scalar, list or object parameter might take, each value once.

    Args:
        index: Rows of the state, and of earlier results.
        now: The state's clock.
        learnt: What refusals said about the parameter.
        root: Schema that local references lead into.
        depth: Lists around the value.
    """
    if depth > DEEPEST:
        return []
    if learnt is not None and learnt.kind and "array" not in field.types:
        field = replace(field, types=frozenset({learnt.kind}))
    if "array" in field.types:
        return _drop_duplicates(_lists(field, index, now, learnt, rng, root, depth))
    if "object" in field.types and not field.types & {"string", "integer", "number"}:
        return _drop_duplicates(_objects(field, index, learnt))
    return _drop_duplicates(_scalars(field, index, now, learnt, rng))


def _scalars(
    field: SchemaField, index: RowIndex, now: datetime, learnt: Hints | None, rng: random.Random
) -> Iterator[Weighted]:
    described = read_hints(field.description)
    template = (learnt and learnt.template) or described.template
    offered: list[tuple[float, Iterable[Any]]] = []
    if learnt is not None:
        offered += [(6.0, learnt.choices), (3.0, learnt.examples), (5.0, _in_limits(field, learnt, rng))]
    if isinstance(field.schema.get("enum"), list):
        offered.append((2.0, field.schema["enum"]))
    examples = field.schema.get("examples")
    examples = examples if isinstance(examples, list) else []
    offered.append((2.0, examples))
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
    for value in _generate_values(field, index, now, described, template, rng):
        yield OTHER_TEXT if examples else 0.3, fit_value(value, field, template)


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
    field: SchemaField, index: RowIndex, now: datetime, described: Hints, template: str | None, rng: random.Random
) -> Iterator[Any]:
    parts = split_name(field.name)
    if field.types & {"integer", "number"}:
        yield from _in_limits(field, described, rng)
        yield from (1, 2, 5, 10, 3, 20, 50, 100) if not set(parts) & _LATITUDES else (51.5, 40.7)
    if field.types and "string" not in field.types:
        return
    timely = template or field.schema.get("format") in ("date", "date-time") or set(parts) & {"date", "day", "datetime"}
    if timely:
        form = template or ("%Y-%m-%dT%H:%M:%S" if field.schema.get("format") == "date-time" else "%Y-%m-%d")
        yield from _format_datetimes(now, form, parts)
    if isinstance(field.schema.get("pattern"), str):
        yield from filter(None, list_matching_texts(field.schema["pattern"])[:4])
    if set(parts) & _QUERY:
        yield from sample_texts(index, rng, MOST // 2)
    for word in reversed(parts):
        yield from SAMPLE_VALUES.get(word, ())
        yield from GENERIC_TEXTS.get(word, ())
    yield from GENERIC_TEXTS["text"][:1]
    yield from sample_texts(index, rng, 4)


def _format_datetimes(now: datetime, form: str, parts: tuple[str, ...]) -> Iterator[str]:
    late = 20 if set(parts) & SPAN_ENDS else 0
    for days in (1, 3, 7, -1, -7, 0, 30, -30):
        moment = datetime.combine(shift_within_calendar(now.date(), days + late), datetime.min.time()).replace(hour=10)
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
    now: datetime,
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
    values = [value for _, value in guess_values(item, index, now, of_item, rng, root, depth + 1)]
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
