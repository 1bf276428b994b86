"""Matching of a model agent's questions to user facts by patterns, for the scripted user."""

import re
from collections.abc import Collection

from trajsmith.phrasing import Wording, humanize
from trajsmith.phrasing.question_detection import is_yes_or_no, strip_confirmation
from trajsmith.records import GoldCall, Turn, UserFact

_WORD = re.compile(r"[a-z0-9]+")
_EMPTY = frozenset({
    "that", "this", "with", "your", "from", "have", "would", "like", "shall", "should", "could", "please", "want",
    "need", "them", "will", "what", "which", "there", "about", "before", "right", "correct", "confirm", "proceed",
    "going", "ahead", "also", "just", "okay", "sure", "they", "then",
})  # fmt: skip
_OPEN_CHOICE = re.compile(
    r"\bwhich (would (it|that|you)|is it|is meant|of (these|them|those)|shall (we|i)|did you|do you)\b"
)
"""Questions for one of several things that the sentence before has named."""
_SMALL = frozenset(
    {"the", "a", "an", "of", "to", "in", "on", "at", "is", "it", "or", "and", "for", "by", "you", "whether"}
)


def find_requested_facts(asked: Collection[str], entries: Collection[UserFact], wording: Wording) -> list[UserFact]:
    """Return the facts that the questions ask for, by their labels; a yes-or-no question asks for none."""
    asking = [question for question in asked if not is_yes_or_no(question)]
    return [entry for entry in entries if any(_asks_for_fact(question, entry, wording) for question in asking)]


def _asks_for_fact(question: str, known: UserFact, wording: Wording) -> bool:
    identifier, _, field = known.slot.rpartition("|")
    stems = _stem_words(question)
    if any(name and name <= stems for name in (_stem_words(known.label), _stem_words(humanize(field or known.slot)))):
        return True
    tool = known.key.partition(".")[0]
    for own in wording.parameter(tool, known.slot).ask:
        words = extract_content_words(own)
        if own.lower() in question.lower() or (
            len(words) > 1 and len(words & extract_content_words(question)) >= 0.7 * len(words)
        ):
            return True
    if not identifier:
        return False
    entity = wording.entity(identifier.split(".")[-1])
    nouns = {noun.lower() for noun in (entity.noun, entity.plural, "one") if noun}
    text = question.lower()
    if _OPEN_CHOICE.search(text):
        return True
    return "which" in text and any(re.search(rf"\b{re.escape(noun)}s?\b", text) for noun in nouns)


def _stem_words(text: str) -> set[str]:
    """Words cut to five letters, so that "collect" and "collection" are one; short ones that say nothing left out."""
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in _SMALL}


def is_device_request(asked: Collection[str], call: GoldCall, wording: Wording) -> bool:
    """Return True if the agent asks the user to make this call on their own device."""
    phrases = wording.tool(call.tool)
    own = {
        word for text in (*phrases.request, *phrases.ask, humanize(call.tool)) for word in extract_content_words(text)
    }
    return any(len(own & extract_content_words(question)) >= min(2, len(own)) for question in asked)


def is_about_request(question: str, turn: Turn, wording: Wording) -> bool:
    """Return True if a yes-or-no question concerns this turn's request; one without content does."""
    words = extract_content_words(strip_confirmation(question))
    own = extract_content_words(turn.query) | extract_content_words(turn.intent)
    for call in turn.gold_calls:
        phrases = wording.tool(call.tool)
        own |= {
            word
            for text in (*phrases.confirm, *phrases.ask, humanize(call.tool))
            for word in extract_content_words(text)
        }
    own |= {word for entry in turn.known for word in extract_content_words(f"{entry.label} {entry.said}")}
    return not words or bool(words & own)


def extract_content_words(text: str) -> set[str]:
    """Return the content words of a text, roughly stemmed."""
    return {word.rstrip("s") for word in _WORD.findall(text.lower()) if len(word) > 3 and word not in _EMPTY}
