"""No regular expression of ours takes time with the square of a text: tools, models and files choose the texts.

A model that repeats itself writes sixty kilobytes of "1,"; a tool may describe itself in megabytes.
"""

import importlib
import pkgutil
import re
import time

import trajsmith

TOKENS = (
    "a", "A ", "1", "1,", "1-", "1.", " ", "\n", "\t ", "_", "a_", "a-", "a.", "a1", "{", "<", "[", "(", '"', "'", "['",
    "the ", "Aa ", "$1", "<v>", "é", ":check", "arguments", "Field", "allowed", "found", "Variables:\n",
)  # fmt: skip
REPEATED = 8000
SECONDS = 0.25
"""CPU time for that; what is linear takes a few milliseconds."""
NOT_SEARCHED = {
    "environment_references._CLASS", "environment_references._ENTRY", "extras._REQUIREMENT",
    "fact_detection._ORDINAL", "fact_detection._UNIT", "known_records._SPEC", "list_limits._NO_ROWS",
    "english_grammar._STATE", "german_grammar._ADJECTIVE",
    "ray_workers.ADDRESS", "value_formatting._SNAKE", "value_types._NUMBER",
    "written_checks._RAISED", "arithmetic._TOKEN", "statefulness._QUOTED", "statefulness._WORD",
    "call_contract._ERROR_TEXT", "call_formats._MISTRAL_CALL", "call_formats._SEMICOLON", "refusals._FIELDS",
}  # fmt: skip
"""Expressions that are matched at one place of a text only, or read command lines, metadata of packages, texts that are
cut before, and (arithmetic) what a worker is given, whose CPU time is limited."""


def find_patterns() -> dict[str, re.Pattern[str]]:
    """Return the expressions that stand in modules, by the last parts of their names."""
    patterns = {}
    for module in pkgutil.walk_packages(trajsmith.__path__, "trajsmith."):
        if ".library." in module.name or ".sandbox." in module.name or module.name.endswith("__main__"):
            continue
        try:
            values = vars(importlib.import_module(module.name))
        except ModuleNotFoundError:  # an extra that is not installed
            continue
        for name, value in values.items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                patterns[f"{module.name.rpartition('.')[2]}.{name}"] = value
    return patterns


def search(pattern: re.Pattern[str], token: str, times: int) -> float:
    """Return the CPU time of a search in a text that repeats a token."""
    text = token * times + "\0"
    began = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - began


def measure(pattern: re.Pattern[str]) -> tuple[float, str]:
    """Return the CPU time of the first text that takes too long, and what it repeats; no time if none does.

    On a slow machine linear searches take as long: then half of the text takes half of the time, and not a quarter.
    """
    for token in TOKENS:
        seconds = search(pattern, token, REPEATED)
        if seconds > SECONDS and seconds > 3 * min(search(pattern, token, REPEATED // 2) for _ in range(2)):
            return seconds, token
    return 0.0, ""


def test_no_expression_takes_time_with_the_square_of_a_text() -> None:
    patterns = find_patterns()
    assert len(patterns) > 200
    slow = {}
    for name, pattern in patterns.items():
        if name not in NOT_SEARCHED:
            seconds, token = measure(pattern)
            if token:
                slow[name] = f"{seconds:.1f} s for {REPEATED} times {token!r}"
    assert not slow


def test_what_is_left_out_is_there() -> None:
    assert NOT_SEARCHED - find_patterns().keys() == set()


def test_the_measure_sees_a_square() -> None:
    assert measure(re.compile(r"(?:\d,?)+€"))[0] > SECONDS
