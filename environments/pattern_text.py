"""Generate a text that matches a regular expression, from its parse tree."""

import random
import re
from typing import Any

from trajsmith.environments.check_time import count_check_time
from trajsmith.environments.schema_patterns import LONGEST_PATTERN, matches_pattern

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PRINTABLE = _LETTERS + _LETTERS.upper() + "0123456789"
_CATEGORIES = {"CATEGORY_DIGIT": "0123456789", "CATEGORY_WORD": _PRINTABLE + "_", "CATEGORY_SPACE": " "}
_MORE = 4
"""How often an open-ended repetition is repeated more than it must be."""
_TRIES = 8
_LONGEST = 10_000
"""Characters and repetitions in one text; a schema may ask for thousands of thousands of letters."""


def generate_matching_text(pattern: str, rng: random.Random, shortest: int = 0) -> str:
    """Return a text that matches the pattern.

    Args:
        shortest: Length that the text should have at least, as far as the pattern's repetitions allow.

    Raises:
        ValueError: None was found.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"no text for a pattern of {len(pattern)} characters")
    parser: Any = vars(re)["_parser"]
    for attempt in range(_TRIES):
        try:
            more = _MORE if attempt < 2 else max(_MORE, shortest)
            with count_check_time():
                text = _PatternGenerator(rng, more).sequence(parser.parse(pattern))
        except (KeyError, ValueError, OverflowError, RecursionError, re.error) as error:
            raise ValueError(f"no text for the pattern {pattern!r} ({error})") from error
        if len(text) >= shortest and matches_pattern(pattern, text):
            return text
    raise ValueError(f"no text found for the pattern {pattern!r}")


class _PatternGenerator:
    def __init__(self, rng: random.Random, more: int) -> None:
        self._rng = rng
        self._more = more
        self._groups: dict[int, str] = {}
        self._steps = 0

    def sequence(self, items: Any) -> str:
        return "".join(self._item(str(operator), argument) for operator, argument in items)

    def _item(self, operator: str, argument: Any) -> str:
        self._steps += 1
        if self._steps > _LONGEST:
            raise ValueError(f"more than {_LONGEST} steps")
        if operator == "LITERAL":
            return chr(argument)
        if operator == "NOT_LITERAL":
            return self._rng.choice([letter for letter in _PRINTABLE if ord(letter) != argument])
        if operator == "ANY":
            return self._rng.choice(_LETTERS)
        if operator == "IN":
            return self._rng.choice(_find_characters(argument))
        if operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = argument
            return "".join(self.sequence(inner) for _ in range(self._rng.randint(low, min(high, low + self._more))))
        if operator == "BRANCH":
            return self.sequence(self._rng.choice(argument[1]))
        if operator == "SUBPATTERN":
            self._groups[argument[0] or 0] = text = self.sequence(argument[3])
            return text
        if operator == "GROUPREF":
            self._steps += len(self._groups[argument])
            return self._groups[argument]
        if operator in ("AT", "ASSERT", "ASSERT_NOT"):
            return ""
        if operator == "ATOMIC_GROUP":
            return self.sequence(argument)
        raise ValueError(f"{operator.lower()} is not understood")


def _find_characters(items: Any) -> list[str]:
    characters: set[str] = set()
    negated = False
    for operator, argument in items:
        kind = str(operator)
        if kind == "NEGATE":
            negated = True
        elif kind == "LITERAL":
            characters.add(chr(argument))
        elif kind == "RANGE":
            characters.update(map(chr, range(argument[0], min(argument[1], argument[0] + 127) + 1)))
        elif kind == "CATEGORY":
            characters.update(_category_characters(str(argument)))
    letters = (
        [letter for letter in _PRINTABLE + " -_.,;:/" if letter not in characters] if negated else sorted(characters)
    )
    if not letters:
        raise ValueError("an empty set")
    return letters


def _category_characters(name: str) -> str:
    if name in _CATEGORIES:
        return _CATEGORIES[name]
    known = _CATEGORIES[name.replace("_NOT_", "_")]
    return "".join(letter for letter in _PRINTABLE + " -." if letter not in known)
