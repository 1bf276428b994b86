"""Detection of questions, requests and announcements in a text, by plain patterns."""

import re
from collections.abc import Collection

from trajsmith.phrasing.languages import get_language

_PIECE = re.compile(r"[^.!?\n]+[.!?]?|[.!?\n]")


def strip_closing_offers(text: str) -> str:
    """Return a text without the polite offers at its end."""
    return "".join(
        " " if get_language().questions.closing.search(piece) else piece for piece in _PIECE.findall(text)
    ).strip()


def find_questions(text: str) -> list[str]:
    """Return the sentences that expect an answer."""
    return [
        sentence
        for sentence in _sentences(text)
        if sentence.endswith("?") or get_language().questions.request.search(sentence)
    ]


def find_requests(text: str) -> list[str]:
    """Return the sentences that request an action."""
    return [
        sentence
        for sentence in _sentences(text)
        if sentence.endswith("?") or get_language().questions.wish.search(sentence)
    ]


def _sentences(text: str) -> list[str]:
    return [
        part.strip() for part in get_language().questions.sentence_end.split(strip_closing_offers(text)) if part.strip()
    ]


def is_announcement(text: str) -> bool:
    """Return True if a text only announces the next action."""
    return bool(get_language().questions.announcement.search(strip_closing_offers(text))) and not find_questions(text)


def is_yes_or_no(question: str) -> bool:
    """Return True if a question can be answered only by yes or no."""
    return bool(get_language().questions.yes_or_no.search(question)) and not get_language().questions.open.search(
        question
    )


def has_yes_or_no_question(asked: Collection[str]) -> bool:
    """Return True if one of the questions can be answered by yes or no."""
    return any(is_yes_or_no(question) or get_language().questions.confirm.search(question) for question in asked)


def strip_confirmation(question: str) -> str:
    """Return a question without its request for confirmation."""
    return get_language().questions.confirm.sub(" ", get_language().questions.yes_or_no.sub(" ", question))
