"""Words of names and sentences: splitting, singular and plural, articles, stems.

Written here and not taken from a library: docs/decisions/0091 has the figures.
"""

import functools
import re

_SPLIT = re.compile(r"[^A-Za-z0-9]+")
CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IRREGULAR = {
    "person": "people",
    "child": "children",
    "man": "men",
    "woman": "women",
    "foot": "feet",
    "index": "indices",
    "criterion": "criteria",
    "phenomenon": "phenomena",
    "alumnus": "alumni",
    "analysis": "analyses",
    "hypothesis": "hypotheses",
    "quiz": "quizzes",
    "cache": "caches",
    "id": "ids",
    "api": "apis",
    "uri": "uris",
    "emoji": "emojis",
    "menu": "menus",
    **{word: f"{word}es" for word in ("alias", "bias", "bonus", "bus", "campus", "echo", "hero", "status", "virus")},
    **{word: f"{word}s" for word in ("calorie", "cookie", "genie", "lie", "movie", "pie", "rookie", "selfie", "tie")},
}
"""Singular to plural where the endings mislead."""
_SINGULAR = {plural: singular for singular, plural in _IRREGULAR.items()}
_UNCOUNTABLE = frozenset({"data", "diabetes", "media", "metadata", "news", "series", "species", "themselves"})
"""Words with one form."""
_LIKE_CONSONANT = re.compile(r"eu|(?:one|once)\b|u(?:ni(?!n|m|d)|r[il]\b|s[aeu]|t(?:il|en)|uid)")
"""Beginnings of words that are written with a vowel and take "a": user, unit, url."""
_LIKE_VOWEL = re.compile(r"hour|hono|heir|honest|(?:html|http|https|mcp|rss|sms|sql|xml)\b")
"""Beginnings of words that are written with a consonant and take "an": hour, sms."""


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that spaces part."""
    return frozenset(words.split())


def split_identifier(name: str) -> tuple[str, ...]:
    """Split a snake_case, kebab-case or camelCase name into lower-case words."""
    return tuple(part.lower() for chunk in _SPLIT.split(name) for part in CAMEL_HUMP.split(chunk) if part)


def to_snake_case(name: str) -> str:
    """Convert any spelling to snake case: "customerID" is "customer_id"."""
    return "_".join(split_identifier(name))


def normalize_name(name: str) -> str:
    """Return a spelling by which names compare: "customerId" and "customer-id" are both "customerid"."""
    return "".join(split_identifier(name))


def singularize(noun: str) -> str:
    """Return the singular of a lower-case noun, in snake case that of its last word: "order_items" is "order_item"."""
    head, mark, word = noun.rpartition("_")
    if word in _SINGULAR:
        word = _SINGULAR[word]
    elif word in _UNCOUNTABLE:
        pass
    elif len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return f"{head}{mark}{word}"


def pluralize(noun: str) -> str:
    """Return the plural of a noun; of several words the last one changes: "phone_box" is "phone_boxes"."""
    at = max(noun.rfind("_"), noun.rfind(" ")) + 1
    head, word = noun[:at], noun[at:]
    if word in _IRREGULAR:
        return head + _IRREGULAR[word]
    if word in _UNCOUNTABLE:
        return noun
    if re.search(r"[^aeiou]y$", word):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if word.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def with_article(noun: str) -> str:
    """Return a noun in snake case as words with "a" or "an" before them, by their sound: "a user", "an hour"."""
    words = noun.replace("_", " ")
    text = words.lower()
    vowel = text[:1] in tuple("aeiou") and not _LIKE_CONSONANT.match(text)
    return f"{'an' if vowel or _LIKE_VOWEL.match(text) else 'a'} {words}"


@functools.lru_cache(maxsize=400_000)
def stem(word: str) -> str:
    """Return a lower-case singular without the commonest endings of verbs: "planned" is "plan"."""
    word = singularize(word.lower())
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            root = word[: -len(ending)]
            if len(root) > 4 and root[-1] == root[-2] and root[-1] not in "sl":
                return root[:-1]
            return root + "e" if root[-1] in "vz" or root.endswith(("at", "ut", "ac", "reas", "rang", "ang")) else root
    return word
