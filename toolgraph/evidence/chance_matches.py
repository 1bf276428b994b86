"""Whole numbers that fit by chance.

Tables that count their rows from 1 share their keys: number 3 of a doctor is also the number of some patient, so a
doctor's number makes `get_patient` work and proves nothing. First, names say what a number counts (`same_thing`): where
both sides count the same thing, a number that works is evidence like any other value. Where they do not, a number is
only evidence if it is not `SMALL`, is not the very one for which the output was chosen, and if numbers picked between
those that work (`guesses`) do not: they work where keys lie close together, and hardly ever where they are given out at
random. What fits by chance speaks neither for a link nor against it; its schemas decide.
"""

import random
from collections.abc import Iterable
from typing import Any

from trajsmith.grounding import split_path
from trajsmith.grounding.names import CODE_WORDS, GENERIC, ID_WORDS, get_tool_noun, split_name

SMALL = 100
"""Numbers below it are keys of nearly every table, and of a small one that shows few rows even without gaps."""
REACH = 2
"""How far below the smallest and above the largest number that works is guessed, so that one number gives a range."""
_ROWS = frozenset({"record", "detail", "info", "information", "row", "entry", "list", "table"})
"""Words of tools' names that say how much is told, not of what."""


def parse_whole_number(value: Any) -> int | None:
    """The number that an integer, or a text of digits as a program would write it, stands for; None for all else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    plain = isinstance(value, str) and value.isascii() and value.isdigit() and str(int(value[:20])) == value
    return int(value) if plain else None


def guess_numbers(value: Any, working: Iterable[str], count: int, rng: random.Random) -> list[Any]:
    """Whole numbers between those that work, whoever gives them; none for a value that is no whole number.

    Args:
        value: The argument that works; it is not guessed again, and guesses have its type.
        working: Other values that work, as texts.
        count: Most guesses.
        rng: Which numbers.
    """
    number = parse_whole_number(value)
    if number is None:
        return []
    numbers = [number, *(other for text in working if (other := parse_whole_number(text)) is not None)]
    low, high = min(numbers), max(numbers)
    start = max(low - REACH, 1) if low > 0 else low - REACH
    span = high + REACH - start + 1
    picked: set[int] = set()
    for _ in range(4 * count):
        if len(picked) < count:
            picked.add(start + rng.randrange(span))
    return [str(one) if isinstance(value, str) else one for one in sorted(picked - {number})]


def is_same_entity(giver: str, output: str, taker: str, parameter: str) -> bool:
    """Return True if the names say that an output and a parameter number the same entity.

    The word that counts is the last one that is no mere "id": customer_id and billing_customer are of customers,
    order_line_id is not of orders. A bare id is of what the object around it, or else its tool, is named after.

    Args:
        giver: Plain name of the tool with the output.
        output: Its path.
        taker: Plain name of the tool with the parameter.
        parameter: Its path.
    """
    entity = _entity_name(giver, output)
    return entity is not None and entity == _entity_name(taker, parameter)


def _entity_name(tool: str, path: str) -> str | None:
    names = [split_name(part) for part in reversed(split_path(path)) if part not in ("$", "*")]
    for parts in (*names, get_tool_noun(tool)):
        telling = [word for word in parts if word not in ID_WORDS | CODE_WORDS | GENERIC | _ROWS]
        if telling:
            return telling[-1]
    return None
