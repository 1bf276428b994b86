"""Support of the agent's statements: each value that it tells was said, shown by a tool, or follows from those.

A right final state does not show that what the user was told is right. The agent may count rows, add or subtract what
it has seen, multiply a price by the quantity that is asked for, apply a rule that it reads ("300 points per passenger",
"half the fare"), count days from a date that was shown, and add up the rows that it names or what was done for one
request; any other number, date, time, address or identifier that nobody gave it is made up.
"""

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeGuard

import orjson

from trajsmith.phrasing import (
    Phrasebook,
    format_value,
    get_language,
    is_value_mentioned,
    parse_datetime,
    shift_date,
    singularize,
)
from trajsmith.phrasing.fact_detection import AllowedContent, find_numbers, find_rates
from trajsmith.records import FrozenModel, JsonValue, Message, Task, Trajectory

CLAIMS = "claim"
"""Kind of these outcomes."""
_DAYS = re.compile(r"\b(\d{1,3}) (?:more |extra |further )?days?\b")
MOST_NUMBERS = 60
"""Numbers of one result among which sums and differences are looked for."""
MOST_QUANTITY = 20
"""Largest whole number by which an amount is multiplied or divided."""


class UnsupportedClaim(FrozenModel):
    """A value that the agent told and nobody gave it."""

    message: int
    """Index of the agent's message."""
    value: str
    """The value as it stands in the text."""


class SupportTracker:
    """Tracker of what has been said and shown so far in one dialogue."""

    def __init__(self, phrasebook: Phrasebook | None = None) -> None:
        """`phrasebook` is that of the environment: numbers in its own sentences ("24 hours") are no claims."""
        phrases = tuple(_iter_phrases(phrasebook)) if phrasebook is not None else ()
        self.allowed = AllowedContent(_allow_phrases(phrases, get_language().code))
        self.results: list[Any] = []
        self.request = 0
        """Place of the first result since the user spoke last."""
        self.quantities: set[int] = set()
        """Small whole numbers in the user's words."""
        self.days: set[int] = set()
        """Numbers of days that a rule, a result or the user named: "7 more days"."""
        self.rates: set[tuple[float, str]] = set()
        """What rules say of each of something: (300, "passenger")."""
        self.halves = False
        """Rules speak of half an amount."""

    def read(self, message: Message) -> None:
        """Take note of a message; the agent's own support nothing."""
        if message.role != "assistant":
            self.days |= {int(days) for days in _DAYS.findall(message.content)}
        if message.shows_data:
            self.results.append(read_content(message.content))
            self.allowed.add(self.results[-1], *count_rows(self.results[-1]))
        elif message.role not in ("assistant", "tool"):
            self.allowed.add(message.content)
            if message.role == "user":
                self.request = len(self.results)
                numbers = (number for number, _ in find_numbers(message.content))
                self.quantities |= {int(number) for number in numbers if number in range(2, MOST_QUANTITY + 1)}
            elif message.role == "system":
                self.rates |= set(find_rates(message.content))
                self.halves = self.halves or bool(get_language().facts.half.search(message.content))

    def find_unsupported(self, text: str) -> list[str]:
        """Return the values in a text that nothing so far supports."""
        strange = self.allowed.find_unsupported_values(text) if text else []
        if strange:
            derived = AllowedContent()
            derived.add(*(number for result in self.results for number in derive_numbers(result)))
            derived.add(*derive_products(self.results, self.quantities))
            derived.add(*derive_from_rules(self.results, self.rates, self.halves))
            derived.add(*derive_totals(self.results[self.request :]), *derive_named_totals(self.results, text))
            derived.add(*(day for result in self.results for day in derive_days(result, self.days)))
            strange = [value for value in strange if derived.find_unsupported_values(value)]
        return strange


def find_unsupported_claims(
    messages: Sequence[Message], phrasebook: Phrasebook | None = None, offered: Sequence[JsonValue] = ()
) -> tuple[UnsupportedClaim, ...]:
    """Return the values in the agent's texts that no message before them supports.

    Args:
        messages: The dialogue, the system prompt included.
        phrasebook: Of the environment, if it has one.
        offered: Values that the agent may propose, and what follows from them as from those that the user says.
    """
    tracker = SupportTracker(phrasebook)
    tracker.allowed.add(*offered)
    counts = {value for value in offered if isinstance(value, int) and not isinstance(value, bool)}
    tracker.days |= counts
    tracker.quantities |= {count for count in counts if count in range(2, MOST_QUANTITY + 1)}
    claims: list[UnsupportedClaim] = []
    for index, message in enumerate(messages):
        if message.role == "assistant":
            claims += [
                UnsupportedClaim(message=index, value=value) for value in tracker.find_unsupported(message.content)
            ]
        else:
            tracker.read(message)
    return tuple(claims)


def find_play_claims(
    task: Task, trajectory: Trajectory, phrasebook: Phrasebook | None = None
) -> tuple[UnsupportedClaim, ...]:
    """Return the unsupported values of a play; none where its record lacks what the tools showed.

    What a variant asks for and offers is proved by execution, also where it follows from "at most 30 days from today".
    """
    shown = sum(message.role == "tool" for message in trajectory.messages)
    if shown < sum(event.actor == "assistant" for event in trajectory.events):
        return ()
    perturbation = task.twist
    if task.solution is not None:
        answer = task.solution.answer
        proved = answer if isinstance(answer, list) else [answer]
        claims = find_unsupported_claims(trajectory.messages, phrasebook)
        return tuple(claim for claim in claims if not any(is_value_mentioned(claim.value, value) for value in proved))
    if perturbation is None or perturbation.act != "offer":
        return find_unsupported_claims(trajectory.messages, phrasebook)
    offered = (*perturbation.told, *perturbation.tempting[-1].arguments.values())
    claims = find_unsupported_claims(trajectory.messages, phrasebook, offered)
    return tuple(claim for claim in claims if not any(is_value_mentioned(claim.value, value) for value in offered))


@functools.lru_cache(maxsize=64)  # every play of an environment begins with the same phrases
def _allow_phrases(phrases: tuple[str, ...], language: str) -> AllowedContent:
    """Allow what stands in the phrases of a language; the result is only copied."""
    allowed = AllowedContent()
    allowed.add(*phrases)
    return allowed


def _iter_phrases(phrasebook: Phrasebook) -> Iterator[str]:
    for phrases in phrasebook.tools.values():
        yield from (*phrases.confirm, *phrases.done, *phrases.brief, *phrases.detailed)


def read_content(text: str) -> Any:
    """Return the JSON of a tool message, or its text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def count_rows(result: Any) -> Iterator[int]:
    """Yield the lengths of all lists in a result: "you have 3 accounts"."""
    if isinstance(result, dict):
        for value in result.values():
            yield from count_rows(value)
    elif isinstance(result, list):
        yield len(result)
        for value in result:
            yield from count_rows(value)


def derive_numbers(result: Any) -> Iterator[float]:
    """Yield what can be added up or subtracted within one result: totals of a column, sums and differences of two."""
    columns: dict[str, list[float]] = {}
    for name, number in iter_numbers(result):
        columns.setdefault(name, []).append(number)
    for numbers in columns.values():
        yield round(sum(numbers), 2)
    distinct = list(dict.fromkeys(number for numbers in columns.values() for number in numbers))[:MOST_NUMBERS]
    for first, second in combinations(distinct, 2):
        yield round(first + second, 2)
        yield round(abs(first - second), 2)


def derive_products(results: Sequence[Any], quantities: Collection[int]) -> Iterator[float]:
    """Yield each amount times a quantity: one that the user said, or one of the same row, which may divide it, too."""
    for row in _iter_rows(results):
        numbers = {name: value for name, value in row.items() if _is_number(value)}
        for name, amount in numbers.items():
            if not isinstance(amount, float):
                continue
            yield from (round(amount * quantity, 2) for quantity in quantities)
            for other, count in numbers.items():
                if other != name and isinstance(count, int) and 1 < count <= MOST_QUANTITY:
                    yield round(amount * count, 2)
                    yield round(amount / count, 2)


def derive_from_rules(results: Sequence[Any], rates: Collection[tuple[float, str]], halves: bool) -> Iterator[float]:
    """Yield what rules make of a row: so much for each of what it counts, and half of its amounts.

    Args:
        results: What tools have shown.
        rates: Numbers with the noun of what is counted; "passenger" is counted by a field `passengers`.
        halves: Rules speak of half an amount.
    """
    for row in _iter_rows(results):
        for name, value in row.items():
            if halves and isinstance(value, float):
                yield round(value / 2, 2)
            if not isinstance(value, bool) and isinstance(value, int) and 1 < value <= MOST_QUANTITY:
                yield from (round(rate * value, 2) for rate, noun in rates if singularize(name) == noun)


def derive_totals(results: Sequence[Any]) -> Iterator[float]:
    """Yield the totals of fields over results of one form: the refunds of all orders that were cancelled."""
    alike: dict[frozenset[str], list[dict[str, Any]]] = {}
    for result in results:
        if isinstance(result, dict) and "error" not in result:
            alike.setdefault(frozenset(result), []).append(result)
    for rows in alike.values():
        yield from _add_columns(rows)


def derive_named_totals(results: Sequence[Any], text: str) -> Iterator[float]:
    """Yield the totals of fields over those rows of one list that a text names, each by a text or date of its own."""
    for rows in (rows for result in results for rows in iter_lists(result)):
        names = [{format_value(value) for value in row.values() if isinstance(value, str)} for row in rows]
        spread = Counter(name for row_names in names for name in row_names)
        named = [
            row
            for row, row_names in zip(rows, names, strict=True)
            if any(spread[name] == 1 and is_value_mentioned(text, name) for name in row_names)
        ]
        if len(named) > 1:
            yield from _add_columns(named)


def _add_columns(rows: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    for name in rows[0] if len(rows) > 1 else ():
        numbers = [row.get(name) for row in rows]
        if all(_is_number(number) for number in numbers):
            yield round(sum(number for number in numbers if _is_number(number)), 2)


def _iter_rows(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in inner:
        yield from _iter_rows(each)


def iter_lists(value: Any) -> Iterator[list[dict[str, Any]]]:
    """Yield the lists of rows in a value."""
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from iter_lists(each)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def derive_days(result: Any, days: Collection[int]) -> Iterator[str]:
    """Yield the days that come so many days after a date of a result: what is due "7 days later"."""
    if isinstance(result, dict | list):
        for value in result.values() if isinstance(result, dict) else result:
            yield from derive_days(value, days)
    else:
        moment = parse_datetime(result)
        shifted = (shift_date(moment, count) for count in days if moment is not None)
        yield from (day.isoformat()[:10] for day in shifted if day is not None)


def iter_numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from iter_numbers(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from iter_numbers(inner, name)
    elif _is_number(value):
        yield name, float(value)
