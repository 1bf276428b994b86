"""Names and values of rows in a text, and which of them a sentence joins without doubt."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from trajsmith.phrasing import get_language
from trajsmith.phrasing.value_formatting import humanize
from trajsmith.phrasing.words import singularize

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_ITEM_END = re.compile(r";")
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
_POSSESSIVE = re.compile(r"^['’]s\b")
_JOINING_MARKS = frozenset("([,#£€$")
_LABEL_MARKS = _JOINING_MARKS | frozenset(":|=-–—")
"""Marks that may follow a name and come before its value, as in a table."""


@dataclass(frozen=True, slots=True)
class RowMention:
    """Place in a text where a name or a value of a row stands."""

    start: int
    end: int
    row: int
    field: str
    is_name: bool


def list_field_words(field: str) -> set[str]:
    """List the words in the name of a field, in the singular."""
    return {singularize(word) for word in humanize(field).lower().split()}


def drop_inner_mentions(mentions: Sequence[RowMention]) -> list[RowMention]:
    """Drop what stands within a longer mention ("Basic" in "Basic Plus"), and a place that suits several rows."""
    rows: dict[tuple[int, int], set[int]] = defaultdict(set)
    for mention in mentions:
        rows[mention.start, mention.end].add(mention.row)
    outer, reach = set[tuple[int, int]](), -1
    for start, end in sorted(rows, key=lambda span: (span[0], -span[1])):
        if end > reach:
            outer.add((start, end))
            reach = end
    ordered = sorted(mentions, key=lambda mention: mention.start)
    return [one for one in ordered if (one.start, one.end) in outer and len(rows[one.start, one.end]) == 1]


def iter_joined_pairs(
    text: str, mentions: Sequence[RowMention], nouns: Collection[str] = ()
) -> Iterator[tuple[RowMention, RowMention]]:
    """Yield the names and values that a text joins without doubt.

    Args:
        text: The text, in lower case; names and values are masked.
        mentions: Its names, and its values of one field.
        nouns: What the things are called: "the Basic plan costs £5.50".
    """
    for start, end in _split(text, 0, len(text), _SENTENCE_END):
        parts: list[list[RowMention]] = []
        for item in _split(text, start, end, _ITEM_END):
            inside = [one for one in mentions if item[0] <= one.start < item[1]]
            if sum(one.is_name for one in inside) > 1:
                clauses = list(_split(text, *item, get_language().answers.part_end))
                parts += [[one for one in inside if at <= one.start < stop] for at, stop in clauses]
            else:
                parts.append(inside)
        parts = [part for part in parts if part]
        if (
            "?" in text[start:end]
            or get_language().answers.unreal.search(text, start, end)
            or any(
                sum(one.is_name for one in part) != 1 or len({one.row for one in part if not one.is_name}) != 1
                for part in parts
            )
        ):
            continue
        for part in parts:
            name = next(one for one in part if one.is_name)
            value = min((one for one in part if not one.is_name), key=lambda one: abs(one.start - name.start))
            if _is_joined(text, name, value, nouns):
                yield name, value


def _split(text: str, start: int, end: int, boundary: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield where the parts of a stretch of text begin and end."""
    for match in boundary.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


def is_in_brackets(text: str, value: RowMention) -> bool:
    """Return True for a value that opens a bracket behind a name, as the number in "Kettle (W17)"."""
    return text[: value.start].endswith(("(", "["))


def _is_joined(text: str, name: RowMention, value: RowMention, nouns: Collection[str]) -> bool:
    """Return True if nothing stands between a name and a value but words and marks that join them."""
    follows = name.start < value.start
    gap = text[name.end : value.start] if follows else text[value.end : name.start]
    marks = _LABEL_MARKS if follows else _JOINING_MARKS
    words = get_language().answers.links | list_field_words(value.field) | set(nouns)
    tokens = _TOKEN.findall(_POSSESSIVE.sub("", gap))
    return all(token in marks or token in words or singularize(token) in words for token in tokens)
