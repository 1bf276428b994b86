"""Detection of facts in a text: whether it states a given fact, and which values in it are unsupported.

Both are mechanical and err on the side of a question: a draft that fails goes back with the reason, a trajectory that
fails is counted, nothing is repaired here.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.value_formatting import humanize, is_value_mentioned, parse_datetime
from trajsmith.phrasing.wording import Wording
from trajsmith.phrasing.words import singularize
from trajsmith.records import UserFact

_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
_SLASHED = re.compile(r"\b(\d{1,2})[/.](\d{1,2})[/.](\d{4})\b")
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2})(?::\d{2})?\s*([ap]\.?m\b)?|\b(\d{1,2})\s*([ap]\.?m)\b", re.I)
_EMAIL = re.compile(r"[\w.+-]{1,80}@[\w-]+(?:\.[\w-]+)+")
_CODE = re.compile(r"(?<![\w£$€])#?(?=[\w-]{0,80}\d)(?=[\w-]{0,80}[A-Za-z_])[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?!\w)")
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,200})[\"”]")
_NAME = re.compile(r"(?<=[a-z0-9,;)'’\"”] )[\"“(]?([A-Z][\w’'-]+)")
_ORDINAL = re.compile(r"\d+(st|nd|rd|th|x|%|k)", re.I)
_UNIT = re.compile(r"(\d+(?:\.\d+)?)(?:[A-Za-z]{1,4}|-[A-Za-z]+)")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


def is_fact_stated(text: str, known: UserFact, wording: Wording) -> bool:
    """Return True if a text states this fact in a form that its reader can use."""
    flat = _normalize_text(text)
    if known.said and is_value_mentioned(flat, known.said):
        return True
    if known.how in ("largest", "smallest"):
        dated = parse_datetime(known.value) is not None
        words = (
            (get_language().facts.latest if dated else get_language().facts.most)
            if known.how == "largest"
            else (get_language().facts.first if dated else get_language().facts.least)
        )
        return any(re.search(rf"\b{word}\b", flat) for word in words)
    return _is_value_stated(flat, known.value, known, wording)


def _is_value_stated(flat: str, value: Any, known: UserFact, wording: Wording) -> bool:
    if isinstance(value, list):
        return all(_is_value_stated(flat, item, known, wording) for item in value)
    if isinstance(value, dict):
        return all(_is_value_stated(flat, item, known, wording) for item in value.values() if item is not None)
    if any(_normalize_text(phrase) in flat for phrase in wording.phrases_for(known, value)):
        return True
    if isinstance(value, bool) or value is None:
        return any(word in flat for word in _content(known.label))
    moment = parse_datetime(value)
    if moment is None:
        return is_value_mentioned(flat, value)
    days = {day[:2] for day in find_days(flat)}
    timed = isinstance(moment, datetime) and bool(find_times(known.said))
    return (moment.month, moment.day) in days and (not timed or find_times(known.said) <= find_times(flat))


def _content(label: str) -> list[str]:
    """The words of a label that mean something."""
    return [word for word in _normalize_text(humanize(label)).split() if len(word) > 3]


@dataclass(frozen=True, slots=True)
class _TextContent:
    """Everything in one text that a speaker may then use."""

    flat: str
    words: frozenset[str]
    numbers: frozenset[float]
    days: frozenset[tuple[int, int]]
    clocks: frozenset[tuple[int, int]]


@functools.lru_cache(maxsize=8192)  # the same names, titles and dates stand in many results
def _read_text(text: str, language: str) -> _TextContent:
    words, numbers, days = {*_words(text), *_words(humanize(text))}, set(), set()
    for day in find_days(text):
        days.add(day[:2])
        words.add(get_language().facts.months[day[0] - 1])
        if day[2]:
            numbers.add(float(day[2]))
            words.add(f"{date(day[2], *day[:2]):%A}".lower())
    numbers |= {number for number, _ in find_numbers(text)}
    clocks = frozenset(find_times(text))
    return _TextContent(_normalize_text(text), frozenset(words), frozenset(numbers), frozenset(days), clocks)


class AllowedContent:
    """Content that a speaker may use: facts they know, and values they were told or have read.

    Args:
        start: What may be said anyway; read once, it serves many.
    """

    def __init__(self, start: "AllowedContent | None" = None) -> None:
        self._texts: list[str] = list(start._texts) if start else []
        self._words: set[str] = set(start._words if start else get_language().facts.plain)
        self._numbers: set[float] = set(start._numbers if start else ())
        self._days: set[tuple[int, int]] = set(start._days if start else ())
        self._clocks: set[tuple[int, int]] = set(start._clocks if start else ())

    def add(self, *values: Any) -> None:
        """Allow texts, numbers, dates, or any JSON that holds them."""
        for value in values:
            if isinstance(value, dict):
                self.add(*value.keys(), *value.values())
            elif isinstance(value, list | tuple):
                self.add(*value)
            elif isinstance(value, bool) or value is None:
                continue
            elif isinstance(value, int | float):
                self._numbers |= {abs(float(value)), round(abs(float(value)), 2)}
                self._texts.append(str(value))
            else:
                self._add_text(str(value))

    def _add_text(self, text: str) -> None:
        parts = _read_text(text, get_language().code)
        self._texts.append(parts.flat)
        self._words |= parts.words
        self._numbers |= parts.numbers
        self._days |= parts.days
        self._clocks |= parts.clocks

    def find_unsupported(self, text: str) -> list[str]:
        """Return dates, times, addresses, identifiers, numbers, quotations and names in a text that are not allowed."""
        return list(
            dict.fromkeys([*self._iter_unsupported_quotes(text), *self._iter_unsupported(_QUOTED.sub(" ", text))])
        )

    def find_unsupported_values(self, text: str) -> list[str]:
        """Return dates, times, addresses, identifiers and numbers in a text that are not allowed."""
        return list(dict.fromkeys(self._iter_unsupported(text, names=False)))

    def _iter_unsupported_quotes(self, text: str) -> Iterator[str]:
        for match in _QUOTED.finditer(text):
            if not self._holds(match.group(1).rstrip(".,!?")):
                yield match.group(1)

    def _iter_unsupported(self, rest: str, names: bool = True) -> Iterator[str]:
        for month, day, year, phrase in _find_dates(rest):
            if (month, day) not in self._days or (
                year and float(year) not in self._numbers and not self._holds(phrase)
            ):
                yield phrase
            rest = rest.replace(phrase, " ")
        for match in _CLOCK.finditer(rest):
            if not find_times(match.group(0)) <= self._clocks:
                yield match.group(0).strip()
        rest = _CLOCK.sub(" ", rest)
        for pattern in (_EMAIL, _CODE):
            for match in pattern.finditer(rest):
                phrase = match.group(0).lstrip("#")
                if not _ORDINAL.fullmatch(phrase) and not self._holds(phrase) and not self._measured(phrase):
                    yield phrase
            rest = pattern.sub(" ", rest)
        for number, phrase in find_numbers(rest):
            if number not in self._numbers and not self._holds(phrase):
                yield phrase
        if names and get_language().facts.marks_names:
            yield from (name for name in _NAME.findall(rest) if not self._named(name))

    def _holds(self, phrase: str) -> bool:
        """Return True if this phrase occurs in the allowed content as a separate token."""
        plain = _normalize_text(phrase)
        texts = [text for text in self._texts if plain in text]
        if not texts:
            return False
        pattern = re.compile(rf"(?<![^\W_]){re.escape(plain)}(?![^\W_])")
        return any(map(pattern.search, texts))

    def _measured(self, phrase: str) -> bool:
        """Return True for a number with a unit (5GB, 3-star) whose number is allowed."""
        match = _UNIT.fullmatch(phrase)
        return match is not None and float(match.group(1)) in self._numbers

    def _named(self, name: str) -> bool:
        word = re.sub(r"['’]s?$", "", name.lower())
        return (
            name.lower() in self._words or word in self._words or any(part in self._words for part in word.split("-"))
        )


def build_shingles(text: str) -> set[str]:
    """Return the lower-case three-word shingles of a text; a shorter text is one shingle."""
    words: list[str] = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))}


def _normalize_text(text: str) -> str:
    return " ".join(text.lower().split())


def _words(text: str) -> Iterable[str]:
    for word in _WORD.findall(text.lower()):
        yield word
        yield from word.split("-")
        if word.endswith(("'s", "’s")):
            yield word[:-2]


def _find_dates(text: str) -> Iterator[tuple[int, int, int, str]]:
    """Return (month, day, year or 0, matched text) of every date."""
    for match in _ISO.finditer(text):
        yield int(match.group(2)), int(match.group(3)), int(match.group(1)), match.group(0)
    for match in get_language().facts.day_month.finditer(text):
        yield _month(match.group(2)), int(match.group(1)), int(match.group(3) or 0), match.group(0)
    for match in get_language().facts.month_day.finditer(get_language().facts.day_month.sub(" ", text)):
        yield _month(match.group(1)), int(match.group(2)), int(match.group(3) or 0), match.group(0)
    for match in _SLASHED.finditer(text):
        first, second = int(match.group(1)), int(match.group(2))
        yield (
            (first, second, int(match.group(3)), match.group(0))
            if second > 12
            else (
                second,
                first,
                int(match.group(3)),
                match.group(0),
            )
        )


def _month(name: str) -> int:
    return next(
        index for index, month in enumerate(get_language().facts.months, 1) if month.startswith(name.lower()[:3])
    )


def find_days(text: str) -> Iterator[tuple[int, int, int]]:
    for month, day, year, _ in _find_dates(text):
        if year and _is_valid_date(year, month, day):
            yield month, day, year
        elif not year:
            yield month, day, 0


def _is_valid_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def find_times(text: str) -> set[tuple[int, int]]:
    """Times of day in a text; 2:30 without "pm" may be either."""
    times: set[tuple[int, int]] = set()
    for match in _CLOCK.finditer(text.replace("T", " ")):
        hour, minute = int(match.group(1) or match.group(4)), int(match.group(2) or 0)
        half = (match.group(3) or match.group(5) or "").lower()[:1]
        times.add((hour % 12 + 12 if half == "p" else hour % 12 if half == "a" else hour, minute))
    return times


def find_numbers(text: str) -> Iterator[tuple[float, str]]:
    for match in _NUMBER.finditer(get_language().grammar.read_numbers(text)):
        yield abs(float(match.group(0).replace(",", ""))), match.group(0).rstrip(",")


def find_rates(text: str) -> Iterator[tuple[float, str]]:
    """Yield each number that a text gives for each of something, with its noun: (300, "passenger")."""
    for match in get_language().facts.rate.finditer(get_language().grammar.read_numbers(text)):
        yield float(match.group(1).replace(",", "")), singularize(match.group(2).lower())
