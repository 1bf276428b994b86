"""Whether a text wants an answer: questions, requests, announcements. Plain patterns, no guessing."""

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
    r"are you sure|sound good)\b",
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


def open_text(text: str) -> str:
    """A text without the polite offers at its end."""
    return "".join(" " if _CLOSING.search(piece) else piece for piece in _PIECE.findall(text)).strip()


def questions(text: str) -> list[str]:
    """The sentences that want an answer."""
    return [sentence for sentence in _sentences(text) if sentence.endswith("?") or _REQUEST.search(sentence)]


def wishes(text: str) -> list[str]:
    """The sentences that want something done."""
    return [sentence for sentence in _sentences(text) if sentence.endswith("?") or _WISH.search(sentence)]


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(open_text(text)) if part.strip()]


def announces(text: str) -> bool:
    """True if a text only says what comes next."""
    return bool(_COMING.search(open_text(text))) and not questions(text)


def is_yes_or_no(question: str) -> bool:
    """True if a question is answered by yes or no, and by nothing else."""
    return bool(_YES_OR_NO.search(question)) and not _OPEN.search(question)


def wants_yes(asked: Collection[str]) -> bool:
    """True if one of the questions can be answered by yes or no."""
    return any(is_yes_or_no(question) or _CONFIRM.search(question) for question in asked)


def without_confirmation(question: str) -> str:
    """A question without the words that make it one about a yes."""
    return _CONFIRM.sub(" ", _YES_OR_NO.sub(" ", question))
