"""Verification of a structured answer: a number, a label, or a list of labels, in any usual way to write them.

Settings of the check `solution`:

* `value`: a number, a text, or a list of texts.
* `ordered`: True if the texts of a list must be told in this order.
* `others`: texts that a wrong answer would tell; none of them may be told.
"""

import re
from collections.abc import Sequence
from typing import Any

from trajsmith.phrasing import list_value_forms
from trajsmith.records import InstalledCheck
from trajsmith.verify.checks import CHECKS, CheckInput, CheckResult

TOLERANCE = 0.005
"""Half a cent: answers are rounded to two decimal places."""
MOST_NUMBERS = 12
"""Different numbers in an answer from which on it names none as the answer."""
_NUMBER = re.compile(r"(?<![\w.,])[-−]?\s?[£$€]?\s?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w]|[.,]\d)")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
_NONE = re.compile(r"\bnone\b")


@CHECKS.register("solution")
def run_solution_check(check: InstalledCheck, seen: CheckInput) -> CheckResult:
    """Return whether the answer tells the value, and nothing that a wrong answer would tell."""
    return check_solution(seen.answer, **check.settings)


def check_solution(answer: str, value: Any, ordered: bool = False, others: Sequence[str] = ()) -> tuple[bool, str]:
    """Check an answer against a structured value; see the module for the arguments.

    Returns:
        Whether it is right, and why not.
    """
    text = " ".join(answer.lower().split())
    if isinstance(value, int | float):
        return _check_number(text, value)
    wanted = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    places = [find_label(text, label) for label in wanted]
    missing = [label for label, place in zip(wanted, places, strict=True) if place < 0]
    if missing:
        return False, f"not told: {missing[0]}"
    unwanted = [label for label in others if find_label(text, label) >= 0]
    if unwanted:
        return False, f"told, and not meant: {unwanted[0]}"
    if ordered and places != sorted(places):
        return False, "told in another order"
    return True, ""


def read_stated_numbers(text: str) -> set[float]:
    """Return the numbers that a lower-case text states, in digits or in words up to twelve."""
    numbers = {float(whole.replace(",", "") + part) for whole, part in _NUMBER.findall(text)}
    signed = {-float(match.group(1).replace(",", "") + (match.group(2) or "")) for match in _NUMBER.finditer(text)
              if match.group(0)[0] in "-−"}  # fmt: skip
    words = {float(_WORDS.index(word)) for word in _WORD.findall(text)}
    return numbers | signed | words | ({0.0} if _NONE.search(text) else set())


def _check_number(text: str, value: float) -> tuple[bool, str]:
    numbers = read_stated_numbers(text)
    if len(numbers) > MOST_NUMBERS:
        return False, f"{len(numbers)} numbers are told"
    return any(abs(number - value) <= TOLERANCE + 1e-9 for number in numbers), ""


def find_label(text: str, label: str) -> int:
    """Return where a lower-case text first tells a label, or -1."""
    places = [
        match.start()
        for form in list_value_forms(label)
        for match in [re.search(rf"(?<![\w-]){re.escape(form)}(?![\w-])", text)]
        if match
    ]
    return min(places, default=-1)
