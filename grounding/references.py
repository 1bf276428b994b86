"""Picking a value out of a result in words that a person could use, and finding it again later.

A gold call that takes the third row of a list is worth nothing as data unless the user can say which row is meant. So
every row that is taken gets a selector: a field whose value is unique in the list, or an extreme of a date or price.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trajsmith.grounding.names import split_name
from trajsmith.grounding.paths import ListLevel, PathMatch, find_values, get_value
from trajsmith.grounding.row_fields import classify_field, list_sayable_fields, score_field
from trajsmith.phrasing import parse_datetime
from trajsmith.records import FromOutput, Selector

ONLY = 0.4
"""How often the only row of a list is left undescribed."""
EXTREME = 0.7
"""How likely people call a thing the latest or the first one, beside `score_field`."""
_PRICES = frozenset({"price", "total", "amount", "fee", "cost", "fare", "balance", "rate"})
_PAST = frozenset(
    {"created", "placed", "opened", "issued", "sent", "booked", "requested", "ordered", "started", "made", "reported"}
)

_NUMBER_OF = re.compile(r"^\d+ x ")


class ReferenceNotResolved(Exception):
    """A reference does not lead to exactly one value in this result."""


@dataclass(frozen=True)
class RowWords:
    """Conditions on the words for rows of a result, beside the rows themselves."""

    timed: frozenset[str] = frozenset()
    """Fields that people say with the time of day; of others they say only the day."""
    has_extreme: Callable[[ListLevel, str], bool] = lambda level, field: True
    """Whether the extreme of a field of a list is that of all there is; False where the list was cut, or has grown."""
    is_only: Callable[[ListLevel, str], bool] = lambda level, field: True
    """Whether no row that a cut list hides has the same value in a field."""
    is_grown: Callable[[ListLevel], bool] = lambda level: False
    """Whether a row was made after the list was shown, so that its only row is no longer the only one."""
    declared: Callable[[ListLevel], Sequence[str] | None] = lambda level: None
    """Fields by which alone the rows of a list are called; None where any sayable field may serve."""


def choose_row(
    level: ListLevel, rng: random.Random, only: float = ONLY, words: RowWords = RowWords()
) -> Selector | None:
    """A selector that picks the row of a level out, or None if nothing that a person would say does.

    Numbers are used only where no name, date or text does it, levels and counts only where no number does.

    Args:
        only: Probability that the only row of a list is left undescribed.
        words: What else decides which words are clear.
    """
    alone = len(level.rows) == 1 and not words.is_grown(level)
    if alone and (not isinstance(level.row, dict) or rng.random() < only):
        return Selector(rows=level.path, how="only")
    if not isinstance(level.row, dict):
        return None
    tiers: dict[str, list[tuple[float, Selector]]] = {"said": [], "number": [], "level": []}
    for field in list_sayable_fields(level.row, words.declared(level)):
        kind = classify_field(field, get_value(level.row, field))
        tiers[kind if kind in tiers else "said"] += _list_selectors(level, field, words)
    options = next((tier for tier in tiers.values() if tier), [])
    if not options:
        return Selector(rows=level.path, how="only") if alone else None
    return rng.choices([selector for _, selector in options], [weight for weight, _ in options])[0]


def _list_selectors(level: ListLevel, field: str, words: RowWords) -> list[tuple[float, Selector]]:
    values = [get_value(row, field) for row in level.rows]
    own = values[level.index]
    options = []
    clear = values.count(own) == 1 and not _is_part_of_another(own, values) and words.is_only(level, field)
    if clear and (field in words.timed or _is_only_on_its_day(own, values)):
        options.append((score_field(field, own), Selector(rows=level.path, how="equals", field=field, value=own)))
    comparable = (parse_datetime(own) is not None and set(split_name(field)) & _PAST) or (
        set(split_name(field)) & _PRICES and isinstance(own, int | float)
    )
    if not isinstance(own, str) and words.declared(level) is not None:
        comparable = False  # people have words for their things, and none of them is "the one with the lowest balance"
    comparable = comparable and values.count(own) == 1 and all(type(value) is type(own) for value in values)
    if len(values) > 1 and comparable and words.has_extreme(level, field):
        for how, extreme in (("largest", max(values)), ("smallest", min(values))):
            if own == extreme:
                options.append(
                    (
                        EXTREME,
                        Selector(
                            rows=level.path, how="largest" if how == "largest" else "smallest", field=field, value=own
                        ),
                    )
                )
    return options


def _is_part_of_another(own: Any, values: Sequence[Any]) -> bool:
    """Return whether what people name of an enumeration is in that of another row, too.

    They name both of two things, and the first one of more: "the order for the monitor arm" may be that with a monitor
    arm and two other things.
    """
    if not isinstance(own, str):
        return False
    parts = _list_parts(own)
    named = set(parts if len(parts) < 3 else parts[:1])
    return any(isinstance(value, str) and value != own and named <= set(_list_parts(value)) for value in values)


def _list_parts(enumeration: str) -> list[str]:
    """Return what a text such as "2 x Desk Lamp, 1 x Kettle" lists, without numbers."""
    return [_NUMBER_OF.sub("", part) for part in enumeration.split(", ")]


def _is_only_on_its_day(own: Any, values: Sequence[Any]) -> bool:
    """Return True unless another row has the same day at another time: people say only the day."""
    moment = parse_datetime(own)
    if not isinstance(moment, datetime):
        return True
    return sum(isinstance(value, str) and value[:10] == str(own)[:10] for value in values) == 1


def pick_values(
    result: Any,
    path: str,
    rng: random.Random,
    only: float = ONLY,
    keep: Callable[[PathMatch], bool] | None = None,
    words: RowWords = RowWords(),
) -> list[tuple[Any, tuple[Selector, ...]]]:
    """Pick all values at a path that can be told apart, each with its selectors, in document order.

    Args:
        keep: Test that a value must pass; it sees the rows around it.
    """
    candidates = []
    for match in find_values(result, path):
        if match.value is None or match.value == "" or isinstance(match.value, dict):
            continue
        if keep is not None and not keep(match):
            continue
        chosen = [choose_row(level, rng, only, words) for level in match.levels]
        selectors = tuple(selector for selector in chosen if selector is not None)
        if len(selectors) == len(chosen):
            candidates.append((match.value, selectors))
    return candidates


def resolve_reference(provenance: FromOutput, result: Any) -> Any:
    """Find the value in a result, following the selectors again.

    Raises:
        ReferenceNotResolved: The result has no such value, or more than one.
    """
    if provenance.pattern is None:
        return _resolve_whole(provenance, result)
    part = take_part(provenance.pattern, result if isinstance(result, str) else _resolve_whole(provenance, result))
    if part is None:
        raise ReferenceNotResolved(f"nothing in the text matches {provenance.pattern}")
    return part


def take_part(pattern: str, value: Any) -> str | None:
    """Return the first group of a pattern in a text, or None."""
    match = re.search(pattern, value) if isinstance(value, str) else None
    return match[1] if match else None


def _resolve_whole(provenance: FromOutput, result: Any) -> Any:
    by_rows = {selector.rows: selector for selector in provenance.selectors}
    matches = [
        match.value
        for match in find_values(result, provenance.path)
        if all(_selected(level, by_rows.get(level.path)) for level in match.levels)
    ]
    if len(matches) != 1:
        raise ReferenceNotResolved(f"{len(matches)} values at {provenance.path}")
    return matches[0]


def leads_to(provenance: FromOutput, result: Any, value: Any) -> bool:
    """Return True if a reference leads to this value, and to no other, in a result."""
    try:
        return bool(resolve_reference(provenance, result) == value)
    except ReferenceNotResolved:
        return False


def _selected(level: ListLevel, selector: Selector | None) -> bool:
    if selector is None or selector.how == "only":
        return len(level.rows) == 1
    own = get_value(level.rows[level.index], selector.field)
    if selector.how in ("equals", "each"):
        return bool(own == selector.value)
    values = [get_value(row, selector.field) for row in level.rows]
    if not (all(isinstance(value, str) for value in values) or all(isinstance(value, int | float) for value in values)):
        return False
    return bool(own == (max(values) if selector.how == "largest" else min(values)))


def find_rows(result: Any, selector: Selector) -> Iterator[Any]:
    """Yield the rows of a result in which a field has the value of a selector."""
    for match in find_values(result, selector.rows):
        for row in match.value if isinstance(match.value, list) else ():
            if get_value(row, selector.field) == selector.value:
                yield row
