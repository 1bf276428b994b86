"""Variety of language: distinct n-grams and shared sentence skeletons, with values replaced by slots.

Values make texts look varied that are one template, so names, numbers, dates, codes and everything that a tool showed
or took is masked before counting.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from trajsmith.phrasing.value_formatting import list_value_forms

SLOT = "<v>"
TOKENS = 4000
"""Tokens that are compared: distinct n-grams fall with the length of a text, so texts of one length are compared."""
LONGEST_VALUE = 60
_BORDER = "\n\0\n"
"""Stands between texts that are masked together; no value, date or sentence reaches over it."""
_VALUE = re.compile(
    r"\"[^\"\n]{2,120}\"|[\w.+-]{1,80}@[\w-]+(?:\.[\w-]+)+|"
    r"\b\d{1,2}(?:st|nd|rd|th)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*(?: \d{4})?\b|"
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?\b|"
    r"[£$€]?\+?\d[\d,.:/ -]*\d|[£$€]?\d|#?\b(?=[\w-]{0,80}\d)[\w-]+\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"<v>|[a-z]+(?:['’][a-z]+)*|[?!.,;:]")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_ROW = re.compile(r";|\n")
_ALIKE = re.compile(r"((?:[a-z]{1,40} )?<v>[^,;.!?:\n]{0,200})(?:(?:,| and) \1)+(?![a-z<])")
_CHAIN = re.compile(r"(<v> (?:[a-z]+ ){1,3})\1+")
_REPEATED = re.compile(rf"{SLOT}(?:[\s,;]*(?:and )?{SLOT})+")


def mask_values(text: str, values: Collection[str] = ()) -> str:
    """Return a text in lower case with values replaced by one slot each.

    Args:
        text: What was said.
        values: Texts that are values in this dialogue: names, titles, what tools showed; in lower case.
    """
    return mask_texts([text], values)[0]


def mask_texts(texts: Sequence[str], values: Collection[str] = ()) -> list[str]:
    """Return the texts of one dialogue, masked together, which costs much less than one by one."""
    text = _BORDER.join(texts).lower().replace("’", "'")
    for value in sorted(values, key=len, reverse=True):
        if value in text:
            text = _replace_whole(text, value)
    masked = _REPEATED.sub(SLOT, _VALUE.sub(SLOT, text)).split(_BORDER)
    return [_collapse_rows(part) for part in masked]


def _replace_whole(text: str, value: str) -> str:
    """Return a text with a slot for each occurrence of a value that is no part of a longer word."""
    parts, done, start = [], 0, text.find(value)
    while start >= 0:
        stop = start + len(value)
        if _is_word(text[start - 1 : start]) or _is_word(text[stop : stop + 1]):
            start = text.find(value, start + 1)
        else:
            parts += [text[done:start], SLOT]
            done, start = stop, text.find(value, stop)
    return "".join([*parts, text[done:]])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _collapse_rows(text: str) -> str:
    """Return a masked text in which rows of a list that look alike stand once: a list is data, whatever its length."""
    rows: list[str] = []
    for part in _ROW.split(_CHAIN.sub(r"\1", _ALIKE.sub(r"\1", text))):
        if not part.strip() or rows == [] or _shape(part) != _shape(rows[-1]):
            rows.append(part)
    return ";".join(rows)


def _shape(row: str) -> list[str]:
    """Return the last words of a row: the first one of a list follows the words that introduce it."""
    return _TOKEN.findall(row.strip(" .-*•"))[-4:]


def collect_values(contents: Iterable[Any]) -> set[str]:
    """Return the short texts in arguments and results, in the forms in which people write them."""
    values: set[str] = set()
    for value in _iter_leaves(contents):
        if isinstance(value, str) and 2 < len(value) <= LONGEST_VALUE:
            values.update(_list_forms(value))
    return values


@lru_cache(maxsize=8192)
def _list_forms(value: str) -> tuple[str, ...]:
    return tuple(form for form in list_value_forms(value) if len(form) > 2)


def _iter_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _iter_leaves(inner)
    elif isinstance(value, str) or not isinstance(value, Iterable):
        yield value
    else:
        for inner in value:
            yield from _iter_leaves(inner)


def compute_distinct(texts: Iterable[str], size: int = 3, tokens: int = TOKENS) -> float:
    """Return the share of distinct n-grams among those of the first `tokens` tokens; n-grams stay inside one text."""
    grams: Counter[tuple[str, ...]] = Counter()
    left = tokens
    for text in texts:
        words = _TOKEN.findall(text)[:left]
        left -= len(words)
        grams.update(tuple(words[at : at + size]) for at in range(len(words) - size + 1))
        if left <= 0:
            break
    return len(grams) / grams.total() if grams else 0.0


def compute_shared_skeletons(texts: Iterable[str]) -> float:
    """Return the share of sentences whose skeleton (the masked sentence) occurs more than once."""
    skeletons = Counter(skeleton for text in texts for skeleton in split_skeletons(text))
    return sum(count for count in skeletons.values() if count > 1) / skeletons.total() if skeletons else 0.0


def split_skeletons(text: str) -> list[str]:
    """Return the sentences of a masked text, without what stands around their words."""
    parts = (" ".join(_TOKEN.findall(part)).strip(" .,;:!") for part in _SENTENCE.split(text))
    return [part for part in parts if part]


def list_common_skeletons(texts: Sequence[str], number: int = 10) -> list[tuple[str, int]]:
    """Return the most frequent skeletons with their counts."""
    return Counter(skeleton for text in texts for skeleton in split_skeletons(text)).most_common(number)
