"""Statements that cannot both hold, as far as words show: the same sentence with another number, or with a "not"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"\d[\d.,:]*")
_SPOKEN = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "twenty": "20", "thirty": "30", "fifty": "50", "hundred": "100",
}  # fmt: skip
_WORD = re.compile(rf"\b({'|'.join(_SPOKEN)})\b")
"""Numbers that stand as words; "one" is left out, as it is seldom meant as a number."""
_NOT = re.compile(r"\b(not|never|no|cannot|can't|don't|doesn't|won't|without)\b")
_BARE = re.compile(r"[^a-z0-9# ]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
MIN_WORDS = 5
"""Words that a statement has at least to be compared."""


@dataclass(frozen=True)
class Contradiction:
    """Sentences of which at most one holds."""

    documents: tuple[str, ...]
    sentences: tuple[str, ...]
    explanation: str


def find_contradictions(documents: Sequence[tuple[str, Sequence[str]]]) -> list[Contradiction]:
    """Return statements of different documents that differ only in numbers or a negation.

    Args:
        documents: Name and paragraphs of each. Within one document nothing is compared: lists and tables repeat their
            wording with other numbers.
    """
    alike: dict[str, dict[str, tuple[str, str]]] = {}
    for name, paragraphs in documents:
        for sentence in (part for paragraph in paragraphs for part in _SENTENCE.split(paragraph)):
            frame, facts = _build_frame(sentence)
            if len(frame.split()) >= MIN_WORDS:
                alike.setdefault(frame, {}).setdefault(facts, (name, sentence))
    contradictions = []
    for statements in alike.values():
        names = tuple(dict.fromkeys(name for name, _ in statements.values()))
        if len(statements) > 1 and len(names) > 1:
            sentences = tuple(sentence for _, sentence in statements.values())
            contradictions.append(
                Contradiction(names, sentences, " / ".join(f'"{one[:120]}"' for one in sentences[:3]))
            )
    return contradictions


def _build_frame(sentence: str) -> tuple[str, str]:
    """Return a sentence's topic and its claim: its numbers, and whether it denies."""
    low = _WORD.sub(lambda match: _SPOKEN[match.group()], sentence.lower())
    facts = " ".join([*_NUMBER.findall(low), *(["not"] if _NOT.search(low) else [])])
    frame = _NUMBER.sub("#", low) if _NUMBER.search(low) or _NOT.search(low) else low
    return " ".join(_BARE.sub(" ", _NOT.sub(" ", frame)).split()), facts
