"""Layout of what an agent tells: several long items below each other, and clauses in sentences of their own."""

import re
from collections.abc import Sequence

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.list_words import LIST_WORDS
from trajsmith.phrasing.plain_sentences import capitalize_first

_SENTENCE_END = re.compile(
    r"(?<=[.!?])\s+(?=[A-ZÄÖÜ£€\"„\d])"
    r"(?!(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b)"
)
"""End of a sentence, other than the full stop of "3. Mai"."""
_INNER = re.compile(r"\([^()]*\)|\"[^\"]*\"|„[^“]*“")
"""Brackets and quotations, in which a semicolon separates nothing."""
_RELATIVE = re.compile(r", (?:which|who)\b.*")
"""The end of an item whose only verb is in a relative clause: "the Pass, which is open"."""
LEAST_ITEMS = 3
"""Items that stand below each other at least."""


def join_items(items: Sequence[str]) -> str:
    """Join items that have commas of their own: "a, b; c, d; and e"."""
    if len(items) < 2:
        return "".join(items)
    return f"{'; '.join(items[:-1])}; {get_language().grammar.conjunction} {items[-1]}"


def join_paragraphs(texts: Sequence[str]) -> str:
    """Join texts to one, as paragraphs if one of them has a list of several lines."""
    texts = [text for text in texts if text]
    return ("\n\n" if any("\n" in text for text in texts) else " ").join(texts)


def lay_out_items(text: str, stacked: bool = True) -> str:
    """Return a text in which no semicolon joins clauses, and three or more items that semicolons separate are lines.

    Args:
        text: What is told; a text of several lines stays as it is.
        stacked: Items may stand below each other.
    """
    if "; " not in text or "\n" in text:
        return text
    laid = ""
    for sentence in _SENTENCE_END.split(text):
        laid += ("\n\n" if "\n" in laid else " " if laid else "") + _lay_out_sentence(sentence, stacked)
    return laid


def _lay_out_sentence(sentence: str, stacked: bool) -> str:
    parts = _split_parts(sentence)
    if len(parts) < 2 or sentence.endswith("?"):
        return sentence
    words = LIST_WORDS[get_language().code]
    clauses = [words.clause.search(_RELATIVE.sub("", _mask(part))) is not None for part in parts]
    if len(parts) < LEAST_ITEMS:
        first, second = parts
        if clauses[1]:
            return _join_sentences((first, capitalize_first(second)))
        comma = "," if any("," in _mask(part) for part in parts) else ""
        return f"{first}{comma} {_join_word()} {second}"
    if stacked and all(words.dated_item.match(part) for part in parts):
        days = [words.dated_item.sub(r"\1: ", part.rstrip("."), count=1) for part in parts]
        return "\n".join([words.dated_lead, *(f"- {day}" for day in days)])
    lead, first = _split_lead(parts[0], all(": " in _mask(part) for part in parts))
    if lead and stacked:
        items = (words.item_start.sub("", item.rstrip(".")) for item in (first, *parts[1:]))
        return "\n".join([lead, *(f"- {_open_item(item)}" for item in items)])
    if all(clauses):
        return _join_sentences([*map(capitalize_first, parts)])
    grammar = get_language().grammar
    joined = any(", " in text or f" {grammar.conjunction} " in text for text in map(_mask, parts))
    return join_items(parts) if joined else grammar.join(parts)


def _join_sentences(parts: Sequence[str]) -> str:
    """Join sentences; one that ends with a quoted sentence has its stop."""
    closed = [part if part.endswith(('."', '!"', '?"')) else f"{part}." for part in parts[:-1]]
    return " ".join((*closed, *parts[-1:]))


def _open_item(item: str) -> str:
    """Return an item with a capital, but for names such as e4, orders_2026 and team-west, of which brackets follow."""
    first, _, rest = item.partition(" ")
    is_name = any(mark.isdigit() or mark == "_" for mark in first) or ("-" in first and rest.startswith("("))
    return item if is_name else capitalize_first(item)


def _split_parts(sentence: str) -> list[str]:
    """Return what semicolons separate, the last part without its "and"."""
    places = [match.start() for match in re.finditer("; ", _mask(sentence))]
    starts, ends = [0, *(place + 2 for place in places)], [*places, len(sentence)]
    parts = [sentence[start:end] for start, end in zip(starts, ends, strict=True)]
    return [*parts[:-1], parts[-1].removeprefix(f"{_join_word()} ")]


def _split_lead(text: str, inner: bool) -> tuple[str, str]:
    """Split what opens a list from its first item; the opening is empty where the text has none.

    Args:
        text: The opening with the first item.
        inner: Items have a colon of their own.
    """
    colon = _mask(text).find(": ")
    if colon >= 0 and not inner:
        return text[: colon + 1], text[colon + 2 :]
    words = LIST_WORDS[get_language().code]
    plain = words.lead.match(text)
    if plain is None:
        return "", text
    return f"{words.leads.get(plain.group(), plain.group())}:", text[plain.end() :].lstrip()


def _mask(text: str) -> str:
    return _INNER.sub(lambda match: "_" * len(match.group()), text)


def _join_word() -> str:
    return get_language().grammar.conjunction
