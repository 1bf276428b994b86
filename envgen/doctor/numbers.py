"""Numbers that texts state as limits."""

import functools
import re
from dataclasses import dataclass
from typing import Literal

from grounding.names import words

_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_NUMBER = rf"(?P<number>\d[\d,]*(?:\.\d+)?|{'|'.join(_WORDS)})"
_MONEY = r"[£$€]?\s?"
_UPPER = re.compile(
    r"\b(?:only|at most|no more than|not more than|more than|up to|maximum(?: of)?|limit of|max\.?|"
    r"within(?: the next)?)"
    rf" {_MONEY}{_NUMBER}(?P<rest>[^.;:]*)",
    re.IGNORECASE,
)
_BETWEEN = re.compile(rf"\bbetween {_MONEY}(?P<low>\d[\d,.]*) and {_MONEY}{_NUMBER}", re.IGNORECASE)
_AFTER = re.compile(rf"\b{_NUMBER}(?P<rest>[\w ]{{0,24}}?) (?:at most|ahead|left|available)\b", re.IGNORECASE)
_LIST = re.compile(rf"\b(?:at most|up to|maximum of) {_NUMBER}\b", re.IGNORECASE)

_COUNTED = re.compile(rf"(?<![\w.£$€:-]){_NUMBER}[ -](?P<rest>[a-z]+(?: [a-z]+)?)", re.IGNORECASE)
_BETWEEN_WORDS = frozenset({"open", "active", "working", "more", "full", "free"})


@dataclass(frozen=True, slots=True)
class Limit:
    """A number that something may reach and not exceed."""

    number: float
    rest: tuple[str, ...]
    """Words that follow it."""
    side: Literal["upper", "lower"] = "upper"

    @property
    def days(self) -> bool:
        return "day" in self.rest[:2]


def number_of(text: str) -> float:
    return float(_WORDS[text.lower()]) if text.lower() in _WORDS else float(text.replace(",", "").rstrip("."))


@functools.lru_cache(maxsize=4096)
def limits(text: str) -> tuple[Limit, ...]:
    """Upper limits that a text states: "only 3 left", "at most 14 days", "between 12 and 24"."""
    found: dict[tuple[float, tuple[str, ...]], Limit] = {}
    for pattern in (_UPPER, _BETWEEN, _AFTER):
        for match in pattern.finditer(text):
            number = number_of(match["number"])
            rest = tuple(words(match.groupdict().get("rest") or ""))
            found.setdefault((number, rest[:1]), Limit(number, rest))
    for match in _BETWEEN.finditer(text):
        number = number_of(match["low"])
        found.setdefault((number, ("low",)), Limit(number, (), "lower"))
    return tuple(found.values())


@functools.lru_cache(maxsize=4096)
def counted(text: str) -> tuple[tuple[float, str], ...]:
    """Numbers with what they count: (60, "day")."""
    found = []
    for match in _COUNTED.finditer(text):
        parts = words(match["rest"])
        if parts:
            found.append(
                (number_of(match["number"]), parts[-1] if len(parts) > 1 and parts[0] in _BETWEEN_WORDS else parts[0])
            )
    return tuple(dict.fromkeys(found))


def stated_limit(description: str) -> int | None:
    """How many entries a list may have, as its tool's description says."""
    head = description.split("\n\nArgs")[0]
    found = [
        int(number_of(match["number"])) for match in _LIST.finditer(head) if number_of(match["number"]).is_integer()
    ]
    return found[0] if len(found) == 1 else None
