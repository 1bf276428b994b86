"""Reading what somebody said: is this fact told, and does the text hold anything that nobody could know?

Both are mechanical and err on the side of a question: a draft that fails goes back with the reason, a trajectory that
fails is counted, nothing is repaired here.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

from chatmodel.surface import as_moment, human, mentions
from chatmodel.wording import Wording
from trajectory import Known

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
_DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\.?(?: of)? ({_MONTH})\b\.?(?:,? (\d{{4}}))?", re.I)
_MONTH_DAY = re.compile(rf"\b({_MONTH})\b\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?", re.I)
_SLASHED = re.compile(r"\b(\d{1,2})[/.](\d{1,2})[/.](\d{4})\b")
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2})(?::\d{2})?\s*([ap]\.?m\b)?|\b(\d{1,2})\s*([ap]\.?m)\b", re.I)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_CODE = re.compile(r"(?<![\w£$€])#?(?=[\w-]*\d)(?=[\w-]*[A-Za-z_])[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?!\w)")
_QUOTED = re.compile(r"[\"“]([^\"“”]{2,200})[\"”]")
_NAME = re.compile(r"(?<=[a-z0-9,;)'’\"”] )[\"“(]?([A-Z][\w’'-]+)")
_ORDINAL = re.compile(r"\d+(st|nd|rd|th|x|%|k)", re.I)
_UNIT = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]{1,4})")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PLAIN = frozenset({
    "i", "i'm", "i'd", "i'll", "i've", "ok", "okay", "am", "pm", "id", "tv", "pin", "sim", "wi-fi", "wifi", "pc", "hi",
    "hello", "hey", "thanks", "thank", "dear", "please", "mr", "mrs", "ms", "dr", "yes", "no", "good", "english",
    "could", "can", "would", "also",
})  # fmt: skip
_LATEST = ("latest", "newest", "most recent", "last", "recent")
_FIRST = ("oldest", "earliest", "first")
_MOST = ("most", "highest", "largest", "biggest", "priciest", "dearest", "greatest", "top")
_LEAST = ("cheapest", "lowest", "smallest", "least", "shortest")


def tells(text: str, known: Known, wording: Wording) -> bool:
    """True if a text says this entry in a form that its reader can use."""
    flat = _flat(text)
    if known.said and mentions(flat, known.said):
        return True
    if known.how in ("largest", "smallest"):
        dated = as_moment(known.value) is not None
        words = (_LATEST if dated else _MOST) if known.how == "largest" else (_FIRST if dated else _LEAST)
        return any(re.search(rf"\b{word}\b", flat) for word in words)
    return _tells_value(flat, known.value, known, wording)


def _tells_value(flat: str, value: Any, known: Known, wording: Wording) -> bool:
    if isinstance(value, list):
        return all(_tells_value(flat, item, known, wording) for item in value)
    if isinstance(value, dict):
        return all(_tells_value(flat, item, known, wording) for item in value.values() if item is not None)
    if any(_flat(phrase) in flat for phrase in wording.phrases_for(known, value)):
        return True
    if isinstance(value, bool) or value is None:
        return any(word in flat for word in _content(known.label))
    moment = as_moment(value)
    if moment is None:
        return mentions(flat, value)
    days = {day[:2] for day in _days(flat)}
    timed = isinstance(moment, datetime) and bool(_clocks(known.said))
    return (moment.month, moment.day) in days and (not timed or _clocks(known.said) <= _clocks(flat))


def _content(label: str) -> list[str]:
    """The words of a label that mean something."""
    return [word for word in _flat(human(label)).split() if len(word) > 3]


class Sayable:
    """Everything that somebody may say: what they were told, what they know, what they read.

    Args:
        start: What may be said anyway; read once, it serves many.
    """

    def __init__(self, start: "Sayable | None" = None) -> None:
        self._texts: list[str] = list(start._texts) if start else []
        self._words: set[str] = set(start._words if start else _PLAIN)
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
        flat = _flat(text)
        self._texts.append(flat)
        self._words.update(_words(text))
        self._words.update(_words(human(text)))
        for day in _days(text):
            self._days.add(day[:2])
            self._words.add(_MONTHS[day[0] - 1])
            if day[2]:
                self._numbers.add(float(day[2]))
                self._words.add(f"{date(day[2], *day[:2]):%A}".lower())
        self._clocks |= _clocks(text)
        self._numbers |= {number for number, _ in _numbers(text)}

    def strange(self, text: str) -> list[str]:
        """What a text says that is not among this: dates, times, addresses, identifiers, numbers, quotations, names."""
        return list(dict.fromkeys(self._strange(text)))

    def _strange(self, text: str) -> Iterator[str]:
        for found in _QUOTED.finditer(text):
            if not self._holds(found.group(1).rstrip(".,!?")):
                yield found.group(1)
        rest = _QUOTED.sub(" ", text)
        for month, day, year, said in _dated(rest):
            if (month, day) not in self._days or (year and float(year) not in self._numbers and not self._holds(said)):
                yield said
            rest = rest.replace(said, " ")
        for found in _CLOCK.finditer(rest):
            if not _clocks(found.group(0)) <= self._clocks:
                yield found.group(0).strip()
        rest = _CLOCK.sub(" ", rest)
        for pattern in (_EMAIL, _CODE):
            for found in pattern.finditer(rest):
                said = found.group(0).lstrip("#")
                if not _ORDINAL.fullmatch(said) and not self._holds(said) and not self._measured(said):
                    yield said
            rest = pattern.sub(" ", rest)
        for number, said in _numbers(rest):
            if number not in self._numbers and not self._holds(said):
                yield said
        yield from (name for name in _NAME.findall(rest) if not self._named(name))

    def _holds(self, said: str) -> bool:
        """True if this stands in what may be said, on its own."""
        pattern = re.compile(rf"(?<![^\W_]){re.escape(_flat(said))}(?![^\W_])")
        return any(pattern.search(text) for text in self._texts)

    def _measured(self, said: str) -> bool:
        """True for 5GB where 5 is known."""
        found = _UNIT.fullmatch(said)
        return found is not None and float(found.group(1)) in self._numbers

    def _named(self, name: str) -> bool:
        word = re.sub(r"['’]s?$", "", name.lower())
        return (
            name.lower() in self._words or word in self._words or any(part in self._words for part in word.split("-"))
        )


def shingles(text: str) -> set[str]:
    """Runs of three words, in lower case; a shorter text is one."""
    words: list[str] = re.findall(r"\w+", text.lower())
    return {" ".join(words[at : at + 3]) for at in range(max(1, len(words) - 2))}


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


def _words(text: str) -> Iterable[str]:
    for found in _WORD.findall(text.lower()):
        yield found
        yield from found.split("-")
        if found.endswith(("'s", "’s")):
            yield found[:-2]


def _dated(text: str) -> Iterator[tuple[int, int, int, str]]:
    """(month, day, year or 0, as said) of every date."""
    for found in _ISO.finditer(text):
        yield int(found.group(2)), int(found.group(3)), int(found.group(1)), found.group(0)
    for found in _DAY_MONTH.finditer(text):
        yield _month(found.group(2)), int(found.group(1)), int(found.group(3) or 0), found.group(0)
    for found in _MONTH_DAY.finditer(_DAY_MONTH.sub(" ", text)):
        yield _month(found.group(1)), int(found.group(2)), int(found.group(3) or 0), found.group(0)
    for found in _SLASHED.finditer(text):
        first, second = int(found.group(1)), int(found.group(2))
        yield (
            (first, second, int(found.group(3)), found.group(0))
            if second > 12
            else (
                second,
                first,
                int(found.group(3)),
                found.group(0),
            )
        )


def _month(name: str) -> int:
    return next(index for index, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()[:3]))


def _days(text: str) -> Iterator[tuple[int, int, int]]:
    for month, day, year, _ in _dated(text):
        if year and _real(year, month, day):
            yield month, day, year
        elif not year:
            yield month, day, 0


def _real(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _clocks(text: str) -> set[tuple[int, int]]:
    """Times of day in a text; 2:30 without "pm" may be either."""
    found: set[tuple[int, int]] = set()
    for match in _CLOCK.finditer(text.replace("T", " ")):
        hour, minute = int(match.group(1) or match.group(4)), int(match.group(2) or 0)
        half = (match.group(3) or match.group(5) or "").lower()[:1]
        found.add((hour % 12 + 12 if half == "p" else hour % 12 if half == "a" else hour, minute))
    return found


def _numbers(text: str) -> Iterator[tuple[float, str]]:
    for found in _NUMBER.finditer(text):
        yield abs(float(found.group(0).replace(",", ""))), found.group(0).rstrip(",")
