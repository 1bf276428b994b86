"""Values that a text states, indexed once: whether a field's value stands in it costs one look-up."""

import re
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from typing import Any

from trajsmith.phrasing.fact_detection import find_days, find_numbers, find_times
from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.value_formatting import humanize, parse_datetime, shift_date

_COUNT = re.compile(r"^\d+ x ")
"""The "2 x" of an item in a list that is written in one text."""
_DIGIT = re.compile(r"\d")
LEAST_LETTERS = 2
NEAR = 300
"""Days around the clock within which people leave out the year."""


class TextValues:
    """The values of one text."""

    def __init__(self, text: str, now: date | None = None) -> None:
        """`now` is the clock: a day without a year is one within some ten months of it."""
        self.now = now
        self.flat = f" {' '.join(text.lower().split())} "
        self._has_digits = _DIGIT.search(text) is not None

    @cached_property
    def numbers(self) -> set[float]:
        return {number for number, _ in find_numbers(self.flat)} if self._has_digits else set()

    @cached_property
    def days(self) -> dict[tuple[int, int], set[int]]:
        """Month and day to the years that are said; 0 where none is."""
        days: dict[tuple[int, int], set[int]] = {}
        for month, day, year in find_days(self.flat) if self._has_digits else ():
            days.setdefault((month, day), set()).add(year)
        if self.now is not None:
            for by in get_language().grammar.find_near_days(self.flat):
                near = shift_date(self.now, by)
                if near is not None:
                    days.setdefault((near.month, near.day), set()).add(near.year)
        return days

    def _says_day(self, day: date) -> bool:
        years = self.days.get((day.month, day.day), set())
        if day.year in years:
            return True
        if 0 not in years:
            return False
        now = self.now
        return now is None or abs((date(day.year, day.month, day.day) - date(now.year, now.month, now.day)).days) < NEAR

    @cached_property
    def times(self) -> set[tuple[int, int]]:
        return find_times(self.flat) if self._has_digits else set()

    def find(self, phrase: str) -> int:
        """Return where a phrase stands as a separate token, or -1."""
        phrase = " ".join(phrase.lower().split())
        at = self.flat.find(phrase) if len(phrase) >= LEAST_LETTERS else -1
        while at >= 0:
            before, after = self.flat[at - 1], self.flat[at + len(phrase)]
            if not (before.isalnum() or before in "._" or after.isalnum() or after == "_"):
                return at
            at = self.flat.find(phrase, at + 1)
        return -1

    def count_matches(self, value: Any, phrases: Iterable[str] = ()) -> int:
        """Return 0 if the text does not state a value, 1 if it does, 2 for a date with its time, n for n items.

        Args:
            value: A value of a field.
            phrases: How people say it.
        """
        if any(self.find(phrase) >= 0 for phrase in phrases):
            return 1
        if isinstance(value, bool) or value is None:
            return 0
        if isinstance(value, int | float):
            return int(abs(float(value)) in self.numbers)
        moment = parse_datetime(value)
        if moment is not None:
            clock = (getattr(moment, "hour", -1), getattr(moment, "minute", -1))
            if self.days:
                return int(self._says_day(moment)) * (1 + (clock in self.times))
            return int(clock in self.times)
        text = str(value)
        if re.fullmatch(r"\d\d:\d\d(?::\d\d)?", text):
            return int((int(text[:2]), int(text[3:5])) in self.times)
        if self.find(text) >= 0 or ("_" in text and self.find(humanize(text)) >= 0):
            return 1
        items = [_COUNT.sub("", item) for item in text.split(", ")]
        return len(items) if items != [text] and all(self.find(item) >= 0 for item in items) else 0
