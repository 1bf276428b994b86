"""Numbers that texts state as limits."""

import functools
import re
from dataclasses import dataclass
from typing import Literal

from trajsmith.grounding import split_name

_WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30,
}  # fmt: skip
_NUMBER = rf"(?P<number>\d[\d,]{{0,30}}(?:\.\d{{1,30}})?|{'|'.join(_WORDS)})"
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
class StatedNumber:
    """A number that something may reach and not exceed."""

    number: float
    rest: tuple[str, ...]
    """Words that follow it."""
    side: Literal["upper", "lower"] = "upper"

    @property
    def days(self) -> bool:
        return "day" in self.rest[:2]


def parse_number(text: str) -> float:
    return float(_WORDS[text.lower()]) if text.lower() in _WORDS else float(text.replace(",", "").rstrip("."))


@functools.lru_cache(maxsize=4096)
def find_upper_limits(text: str) -> tuple[StatedNumber, ...]:
    """Upper limits that a text states: "only 3 left", "at most 14 days", "between 12 and 24"."""
    unique_limits: dict[tuple[float, tuple[str, ...]], StatedNumber] = {}
    for pattern in (_UPPER, _BETWEEN, _AFTER):
        for match in pattern.finditer(text):
            number = parse_number(match["number"])
            rest = tuple(split_name(match.groupdict().get("rest") or ""))
            unique_limits.setdefault((number, rest[:1]), StatedNumber(number, rest))
    for match in _BETWEEN.finditer(text):
        number = parse_number(match["low"])
        unique_limits.setdefault((number, ("low",)), StatedNumber(number, (), "lower"))
    return tuple(unique_limits.values())


@functools.lru_cache(maxsize=4096)
def find_counted_numbers(text: str) -> tuple[tuple[float, str], ...]:
    """Numbers with what they count: (60, "day")."""
    counts = []
    for match in _COUNTED.finditer(text):
        parts = split_name(match["rest"])
        if parts:
            counts.append(
                (
                    parse_number(match["number"]),
                    parts[-1] if len(parts) > 1 and parts[0] in _BETWEEN_WORDS else parts[0],
                )
            )
    return tuple(dict.fromkeys(counts))


def find_list_limit(description: str) -> int | None:
    """Return the maximum length of a list that a tool's description states."""
    head = description.split("\n\nArgs")[0]
    sizes = [
        int(parse_number(match["number"]))
        for match in _LIST.finditer(head)
        if parse_number(match["number"]).is_integer()
    ]
    return sizes[0] if len(sizes) == 1 else None
