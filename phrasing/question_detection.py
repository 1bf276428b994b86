"""Detection of questions, requests and announcements in a text, by plain patterns."""

import re
from collections.abc import Collection

_PIECE = re.compile(r"[^.!?\n]+[.!?]?|[.!?\n]")
_CLOSING = re.compile(
    r"\b(anything else|what else|something else|else i can|further (help|assistance|questions)|"
    r"other (requests|questions)|(happy|glad|here) to help|feel free|let me know if)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_REQUEST = re.compile(
    r"\b(please (provide|tell|give|share|specify|confirm|enter|send|choose|pick)|let me know|"
    r"(could|can) you (tell|give|provide|confirm|share)|i('ll| will)? (also )?need (your|the|to know)|"
    r"which (one|of)|tell me)\b",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"\b(shall i|should i|would you like me to|do you want me to|may i|can i (go|proceed)|"
    r"(is|does) (that|this|it|everything) (ok|okay|right|correct|all right|fine|look|sound)|proceed|go ahead|"
    r"are you (sure|happy (for me to|with (that|this)|to))|sound good|do you agree|"
    r"do i have your (ok|okay|yes|agreement)|is that what you want|"
    r"is it (all right|okay|ok|fine) (with you )?if|(all right|okay|ok|fine) with you)\b|"
    r"^(ok|okay|all right) to\b",
    re.IGNORECASE,
)
_CONFIRM = re.compile(r"\b(please )?confirm\b", re.IGNORECASE)
_WISH = re.compile(r"\b(please|could you|can you|would you|need you to|i need your help)\b", re.IGNORECASE)
_OPEN = re.compile(
    r"^(and |so |then |now )?((on|at|for|in|by|to|from|until) )?(what|which|when|where|who|how|why)\b", re.I
)
"""A question that wants more than a yes."""
_COMING = re.compile(
    r"\b(let me|i'll|i will|i am going to|i'm going to|one moment|just a (moment|second)|hold on|bear with me)\b",
    re.IGNORECASE,
)


def strip_closing_offers(text: str) -> str:
    """Return a text without the polite offers at its end."""
    return "".join(" " if _CLOSING.search(piece) else piece for piece in _PIECE.findall(text)).strip()


def find_questions(text: str) -> list[str]:
    """Return the sentences that expect an answer."""
    return [sentence for sentence in _sentences(text) if sentence.endswith("?") or _REQUEST.search(sentence)]


def find_requests(text: str) -> list[str]:
    """Return the sentences that request an action."""
    return [sentence for sentence in _sentences(text) if sentence.endswith("?") or _WISH.search(sentence)]


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(strip_closing_offers(text)) if part.strip()]


def is_announcement(text: str) -> bool:
    """Return True if a text only announces the next action."""
    return bool(_COMING.search(strip_closing_offers(text))) and not find_questions(text)


def is_yes_or_no(question: str) -> bool:
    """Return True if a question can be answered only by yes or no."""
    return bool(_YES_OR_NO.search(question)) and not _OPEN.search(question)


def has_yes_or_no_question(asked: Collection[str]) -> bool:
    """Return True if one of the questions can be answered by yes or no."""
    return any(is_yes_or_no(question) or _CONFIRM.search(question) for question in asked)


def strip_confirmation(question: str) -> str:
    """Return a question without its request for confirmation."""
    return _CONFIRM.sub(" ", _YES_OR_NO.sub(" ", question))
