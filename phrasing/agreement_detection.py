"""Detection of requests for a yes and of the answers to them, by plain patterns."""

import re
from collections.abc import Mapping

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.question_detection import is_yes_or_no
from trajsmith.phrasing.value_formatting import is_value_mentioned
from trajsmith.records import JsonValue

_QUOTED = re.compile(r'"[^"\n]*"|„[^“\n]*“')
_STOPS = re.compile(r"[.!?:](?=\s)")


def find_confirmation_requests(text: str) -> list[str]:
    """Return the sentences of a message that ask for a yes, each with the sentence before it, which may say to what."""
    plain = _QUOTED.sub(lambda match: _STOPS.sub("", match[0]), text.replace("’", "'"))  # a title ends no sentence
    sentences = split_sentences(plain)
    return [
        " ".join(sentences[max(0, number - 1) : number + 1])
        for number, sentence in enumerate(sentences)
        if (is_yes_or_no(sentence) or get_language().agreement.asks.search(sentence))
        and (sentence.rstrip(")\"'").endswith("?") or get_language().agreement.asks.search(sentence))
        and not get_language().agreement.value_question.search(sentence)
    ]


def split_sentences(text: str) -> list[str]:
    """Split a message at the ends of its sentences."""
    return [part.strip() for part in get_language().agreement.piece_end.split(text) if part.strip()]


def split_clauses(text: str) -> list[str]:
    """Split a sentence at commas and conjunctions, so that each action in it stands alone."""
    return [part.strip() for part in get_language().agreement.clause_end.split(text) if part.strip()]


def is_refusal(text: str) -> bool:
    """Return True if an answer says no."""
    return get_language().agreement.no.search(text.replace("’", "'")) is not None


def is_agreement(text: str) -> bool:
    """Return True if an answer says yes and not no."""
    return not is_refusal(text) and get_language().agreement.yes.search(text.replace("’", "'")) is not None


def accepts_call(text: str, arguments: Mapping[str, JsonValue]) -> bool:
    """Return True if an answer agrees to a call: a yes, or other wishes that the call fulfils."""
    if is_agreement(text) or grants_permission(text):
        return True
    named = any(is_value_mentioned(text, value) for value in arguments.values())
    return named and (is_correction(text) or not is_refusal(text))


def is_correction(text: str) -> bool:
    """Return True if an answer changes what was proposed: "No, make it £30 instead"."""
    return get_language().agreement.changes.search(text.replace("’", "'")) is not None


def grants_permission(text: str) -> bool:
    """Return True if the user says that nobody has to ask: "just go ahead without asking"."""
    return get_language().agreement.permission.search(text.replace("’", "'")) is not None


def states_consent(text: str) -> bool:
    """Return True if the user consents to what they say: "I confirm that it may be cancelled"."""
    return get_language().agreement.consent.search(text.replace("’", "'")) is not None


def wants_question(text: str) -> bool:
    """Return True if the user wants to be asked before anything is done."""
    return get_language().agreement.wants_question.search(text.replace("’", "'")) is not None and not grants_permission(
        text
    )
