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
FEWEST = 5
"""Words that a statement has at least to be compared."""


@dataclass(frozen=True)
class Contradiction:
    """Sentences of which at most one holds."""

    documents: tuple[str, ...]
    sentences: tuple[str, ...]
    told: str


def contradicted(documents: Sequence[tuple[str, Sequence[str]]]) -> list[Contradiction]:
    """Statements of different documents that are alike but for their numbers, or for a negation.

    Args:
        documents: Name and paragraphs of each. Within one document nothing is compared: lists and tables repeat their
            wording with other numbers.
    """
    alike: dict[str, dict[str, tuple[str, str]]] = {}
    for name, paragraphs in documents:
        for sentence in (part for paragraph in paragraphs for part in _SENTENCE.split(paragraph)):
            frame, facts = _frame(sentence)
            if len(frame.split()) >= FEWEST:
                alike.setdefault(frame, {}).setdefault(facts, (name, sentence))
    found = []
    for said in alike.values():
        names = tuple(dict.fromkeys(name for name, _ in said.values()))
        if len(said) > 1 and len(names) > 1:
            sentences = tuple(sentence for _, sentence in said.values())
            found.append(Contradiction(names, sentences, " / ".join(f'"{one[:120]}"' for one in sentences[:3])))
    return found


def _frame(sentence: str) -> tuple[str, str]:
    """What a sentence is about, and what it claims of that: its numbers, and whether it denies."""
    low = _WORD.sub(lambda found: _SPOKEN[found.group()], sentence.lower())
    facts = " ".join([*_NUMBER.findall(low), *(["not"] if _NOT.search(low) else [])])
    frame = _NUMBER.sub("#", low) if _NUMBER.search(low) or _NOT.search(low) else low
    return " ".join(_BARE.sub(" ", _NOT.sub(" ", frame)).split()), facts
