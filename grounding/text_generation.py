"""Texts for parameters that take any text: samples by the words of a name, and texts that a pattern matches."""

import contextlib
import functools
import random

from trajsmith.environments.pattern_text import generate_matching_text
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.names import split_name

LONGEST_SAMPLE = 20_000
"""Characters of a text that is made up: a schema may ask for billions."""
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


def find_generic_texts(name: str) -> tuple[str, ...]:
    """Return plain texts for a parameter by the last word of its name that has any; empty if none has."""
    return next((GENERIC_TEXTS[word] for word in reversed(split_name(name)) if word in GENERIC_TEXTS), ())


def generate_text(field: SchemaField, rng: random.Random) -> str:
    """Return a text that the pattern and the lengths of a parameter's schema allow."""
    if isinstance(field.schema.get("pattern"), str):
        return rng.choice(list_matching_texts(field.schema["pattern"]))
    sentence = rng.choice(find_generic_texts(field.name) or PLAIN_TEXTS)
    low, high = int(field.schema.get("minLength", 0)), int(field.schema.get("maxLength", 200))
    return sentence[:high] if len(sentence) >= low else sentence.ljust(min(low, LONGEST_SAMPLE), "x")


@functools.lru_cache(maxsize=256)
def list_matching_texts(pattern: str) -> tuple[str, ...]:
    """Return texts that a regular expression matches, always the same ones; one empty text if none could be made."""
    texts = dict[str, None]()
    for seed in range(PATTERNS):
        with contextlib.suppress(ValueError):
            texts[generate_matching_text(pattern, random.Random(seed))] = None
    return tuple(texts) or ("",)
