"""Texts for parameters that take any text: samples by the words of a name, and matches of a regular expression."""

import functools
import importlib
import random
import re
from typing import Any

from trajsmith.environments.schema_patterns import matches_pattern
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.names import split_name

PATTERNS = 24
"""Texts that are made for a pattern."""
PLAIN_TEXTS = (
    "Meeting moved to Thursday",
    "Please handle this soon",
    "Blue folder, second shelf",
    "Thanks for the quick answer",
    "a",
)
GENERIC_TEXTS: dict[str, tuple[str, ...]] = {
    "message": (
        "Running ten minutes late, please start without me.",
        "Could you send me the latest version?",
        "Thanks for your help last week.",
    ),
    "note": ("Check this again on Friday.", "Agreed on the phone.", "Waiting for an answer from the supplier."),
    "description": (
        "Collected from the weekly meeting.",
        "First draft, to be reviewed.",
        "Follow-up of last month's talk.",
    ),
    "title": ("Weekly review", "Ideas for the summer", "Shopping list"),
    "text": ("Remember to water the plants.", "The meeting moved to Thursday.", "Draft of the invitation."),
    "comment": ("Looks good to me.", "Please have a second look at this.", "This still happens every morning."),
    "content": (
        "Meeting notes: agreed on the new schedule.\n",
        "- buy paint\n- call the plumber\n",
        "Draft, version two.\n",
    ),
}
"""Word of a name to texts that a person might write there."""
SAMPLE_VALUES: dict[str, tuple[str, ...]] = {
    "email": ("alex.morgan@example.com", "sam.lee@example.org"),
    "mail": ("alex.morgan@example.com",),
    "recipient": ("alex.morgan@example.com",),
    "phone": ("+12025550143",),
    "url": ("https://example.com/page",),
    "uri": ("https://example.com/page",),
    "link": ("https://example.com/page",),
    "path": ("/report.txt", "report.txt", "/", "."),
    "file": ("report.txt", "/report.txt"),
    "folder": ("archive",),
    "directory": ("archive", "/"),
    "dir": ("archive",),
    "currency": ("USD", "EUR"),
    "language": ("en", "English"),
    "country": ("US", "United States"),
    "city": ("London", "New York"),
    "location": ("London",),
    "address": ("12 High Street",),
    "color": ("red", "#336699"),
    "colour": ("red", "#336699"),
    "name": ("Alex Morgan", "Spring review"),
    "username": ("alex",),
    "user": ("alex",),
    "password": ("Str0ng-Passw0rd",),
    "time": ("10:00",),
    "timezone": ("UTC",),
    "branch": ("feature-x",),
    "range": ("A1:B2",),
    "expression": ("2 + 3",),
    "zip": ("10001",),
    "ip": ("192.0.2.10",),
    "domain": ("example.com",),
}
"""Word of a name to values that tools usually accept there."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_CLASSES = {
    "CATEGORY_DIGIT": "0123456789", "CATEGORY_WORD": _LETTERS + "_", "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_DIGIT": _LETTERS[:52], "CATEGORY_NOT_WORD": "-. ", "CATEGORY_NOT_SPACE": _LETTERS,
}  # fmt: skip


def find_generic_texts(name: str) -> tuple[str, ...]:
    """Return plain texts for a parameter by the last word of its name that has any; empty if none has."""
    return next((GENERIC_TEXTS[word] for word in reversed(split_name(name)) if word in GENERIC_TEXTS), ())


def generate_text(field: SchemaField, rng: random.Random) -> str:
    """Return a text that the pattern and the lengths of a parameter's schema allow."""
    if isinstance(field.schema.get("pattern"), str):
        return rng.choice(list_matching_texts(field.schema["pattern"]))
    sentence = rng.choice(find_generic_texts(field.name) or PLAIN_TEXTS)
    low, high = int(field.schema.get("minLength", 0)), int(field.schema.get("maxLength", 200))
    return sentence[:high] if len(sentence) >= low else sentence.ljust(low, "x")


@functools.lru_cache(maxsize=256)
def list_matching_texts(pattern: str) -> tuple[str, ...]:
    """Return texts that a regular expression matches, always the same ones; one empty text if none could be made."""
    parser: Any = importlib.import_module("re._parser")  # private, but the one parser of what `re` accepts
    try:
        tree = parser.parse(pattern)
    except re.error:
        return ("",)
    candidates = (_text_of(tree, random.Random(seed), {}) for seed in range(PATTERNS))
    return tuple(dict.fromkeys(text for text in candidates if matches_pattern(pattern, text))) or ("",)


def _text_of(tree: Any, rng: random.Random, groups: dict[int, str]) -> str:
    """A text for the parsed form of a regular expression; looking around is left out."""
    return "".join(_part(str(name), value, rng, groups) for name, value in tree)


def _part(name: str, value: Any, rng: random.Random, groups: dict[int, str]) -> str:
    match name:
        case "LITERAL":
            return chr(value)
        case "ANY":
            return rng.choice(_LETTERS)
        case "NOT_LITERAL":
            return rng.choice([one for one in _LETTERS if one != chr(value)])
        case "IN":
            return rng.choice(_members(value))
        case "BRANCH":
            return _text_of(rng.choice(value[1]), rng, groups)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = value
            times = rng.randint(int(low), min(int(high), int(low) + 4))
            return "".join(_text_of(inner, rng, groups) for _ in range(times))
        case "SUBPATTERN":
            text = _text_of(value[-1], rng, groups)
            if value[0] is not None:
                groups[value[0]] = text
            return text
        case "ATOMIC_GROUP":
            return _text_of(value, rng, groups)
        case "GROUPREF":
            return groups.get(value, "")
        case _:
            return ""


def _members(items: Any) -> list[str]:
    """Characters of a class, or some that are not in it."""
    members: set[str] = set()
    for name, value in items:
        match str(name):
            case "LITERAL":
                members.add(chr(value))
            case "RANGE":
                members |= {chr(code) for code in range(value[0], min(value[1], value[0] + 200) + 1)}
            case "CATEGORY":
                members |= set(_CLASSES.get(str(value), ""))
    if items and str(items[0][0]) == "NEGATE":
        members = set(_LETTERS + "-. ") - members
    return sorted(members) or ["?"]
