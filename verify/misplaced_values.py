"""Values told beside the wrong thing: "the top-up costs £11.00", where that is the price of the next row.

A tool's list may support every word of an answer that is wrong all the same. Here the rows of a list that an answer
names are held against the values of these rows that it tells. The rule is meant to be sure, not complete: it speaks
only where the values go with the names in none of the usual orders.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from trajsmith.phrasing import get_language
from trajsmith.phrasing.value_formatting import find_value_positions, format_value, is_value_mentioned
from trajsmith.records import Message
from trajsmith.verify.claim_support import UnsupportedClaim, iter_lists, iter_numbers

_TIME = re.compile(r"\d{1,2}:\d\d")
_CURRENCY = re.compile(r"[£€$]\s?$")
_DECIMAL = re.compile(r"[\d,]+\.\d")
_IDENTIFIER = re.compile(r"[A-Z]+[-_]?\d+")
_UNITS = frozenset(
    [
        "gb",
        "mb",
        "minutes",
        "hours",
        "days",
        "seats",
        "degrees",
        "percent",
        "km",
        "kwh",
        "litres",
        "passengers",
        "guests",
        "nights",
        "quantity",
    ]
)
"""Words in the names of fields that hold no money."""
Row = Mapping[str, Any]
Mention = tuple[int, int]
"""Place in a text, and the row of the list that stands there."""


def find_misplaced_values(messages: Sequence[Message]) -> tuple[UnsupportedClaim, ...]:
    """Return the values that the agent tells beside another row than their own, or as money where they are none.

    Args:
        messages: The dialogue. Lists that came since the user spoke last are compared.
    """
    claims: list[UnsupportedClaim] = []
    lists: list[Sequence[Row]] = []
    units: dict[float, set[bool]] = {}
    users = ""
    for index, message in enumerate(messages):
        if message.role == "user":
            lists, users = [], f"{users}\n{message.content}"
        elif message.shows_data:
            result = _read_json(message.content)
            lists += [rows for rows in iter_lists(result) if len(rows) > 1]
            for name, number in iter_numbers(result):
                units.setdefault(number, set()).add(not _UNITS.isdisjoint(name.lower().split("_")))
        elif message.role == "assistant" and message.content:
            amounts = get_language().grammar.find_amounts(message.content)
            wrong = [f"{amount:.2f}" for amount in amounts if not amount.is_integer() and units.get(amount) == {True}]
            wrong += [value for rows in lists for value in _find_in_answer(message.content, rows, users)]
            claims += [UnsupportedClaim(message=index, value=value) for value in wrong]
    return tuple(dict.fromkeys(claims))


def _read_json(content: str) -> Any:
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        return None


def _find_in_answer(text: str, rows: Sequence[Row], users: str) -> Iterator[str]:
    """Yield the misplaced values of one list."""
    flat = get_language().grammar.read_numbers(" ".join(text.lower().split()))
    field, names = _find_names(flat, rows)
    if len({row for _, row in names}) < 2:
        return
    for place, row in names:
        size = len(format_value(rows[row][field]))
        flat = flat[:place] + " " * size + flat[place + size :]
    undated = _TIME.sub(_blank, get_language().answers.dates.sub(_blank, flat))
    places: dict[int, set[int]] = {}
    fields: dict[str, dict[int, Any]] = {}
    for row, cells in enumerate(rows):
        for other, value in cells.items():
            if other == field or not _is_telling(value):
                continue
            for place in _find_places(undated if isinstance(value, int | float) else flat, value):
                places.setdefault(place, set()).add(row)
                if not is_value_mentioned(users, value):
                    fields.setdefault(other, {})[place] = value
    named = {row for _, row in names}
    for values in fields.values():  # a place that suits several rows tells nothing
        mentions = [(place, min(places[place])) for place in sorted(values) if len(places[place]) == 1]
        mentions = [(place, row) for place, row in mentions if row in named]
        exact = all(_IDENTIFIER.fullmatch(str(value)) for value in values.values())
        if not _go_together(names, mentions, exact):
            wrong = (place for place, row in mentions if _find_before(names, place) not in (None, row))
            yield format_value(values[next(wrong)])


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _find_names(flat: str, rows: Sequence[Row]) -> tuple[str, list[Mention]]:
    """Return the field of texts by which most rows are named, and where the text names them."""
    best: tuple[str, list[Mention]] = ("", [])
    for field in rows[0]:
        values = [row.get(field) for row in rows]
        if not all(isinstance(value, str) and len(value) > 2 for value in values) or len(set(values)) < len(values):
            continue
        match = sorted((place, row) for row, value in enumerate(values) for place in find_value_positions(flat, value))
        if len({row for _, row in match}) > len({row for _, row in best[1]}):
            best = field, match
    return best


def _go_together(names: Sequence[Mention], mentions: Sequence[Mention], exact: bool) -> bool:
    """Return True if each value has its own name before it, or behind it, or values and names have one order.

    A value before all names ("prices begin at £3.00") says nothing, nor does a single one. Where values are
    identifiers, `exact`, each mention counts.
    """
    rows = [row for row, _ in groupby(row for _, row in mentions)]
    if not exact:  # "pending", "5" and the like are also said for other reasons
        rows = list(dict.fromkeys(rows))
    if len(set(rows)) < 2:
        return True
    backward = [(-place, row) for place, row in reversed(names)]
    before = all(_find_before(names, place) in (None, row) for place, row in mentions)
    behind = all(_find_before(backward, -place) == row for place, row in mentions)
    return before or behind or rows == list(dict.fromkeys(row for _, row in names if row in rows))


def _find_before(names: Sequence[Mention], place: int) -> int | None:
    """Return the row of the last name before a place."""
    return next((row for at, row in reversed(names) if at < place), None)


def _find_places(text: str, value: Any) -> list[int]:
    """Return where a text states a value: 26 seats are not £26.00, and an amount is no bare number, as of a train."""
    places = find_value_positions(text, value)
    if not isinstance(value, int | float):
        return places
    amount = isinstance(value, float)
    return [at for at in places if bool(_DECIMAL.match(text, at) or _CURRENCY.search(text, 0, at)) == amount]


def _is_telling(value: Any) -> bool:
    """Return True for a value that can be match in a text without doubt: no small number, no flag, no short word."""
    if isinstance(value, bool) or value is None:
        return False
    return abs(value) >= 1 if isinstance(value, int | float) else isinstance(value, str) and len(value) > 3
