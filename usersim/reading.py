"""What an agent's text wants from the user, for a scripted user who plays against a model: patterns, no guessing."""

import re
from collections.abc import Collection

from chatmodel import Wording
from chatmodel.asking import is_yes_or_no, without_confirmation
from chatmodel.surface import human
from trajectory import GoldCall, Known, Turn

_WORD = re.compile(r"[a-z0-9]+")
_EMPTY = frozenset({
    "that", "this", "with", "your", "from", "have", "would", "like", "shall", "should", "could", "please", "want",
    "need", "them", "will", "what", "which", "there", "about", "before", "right", "correct", "confirm", "proceed",
    "going", "ahead", "also", "just", "okay", "sure", "they", "then",
})  # fmt: skip
_SMALL = frozenset(
    {"the", "a", "an", "of", "to", "in", "on", "at", "is", "it", "or", "and", "for", "by", "you", "whether"}
)


def asked_for(asked: Collection[str], entries: Collection[Known], wording: Wording) -> list[Known]:
    """The entries that the questions ask for, by the names that people have for them; a yes-or-no asks for none."""
    asking = [question for question in asked if not is_yes_or_no(question)]
    return [entry for entry in entries if any(_asks(question, entry, wording) for question in asking)]


def _asks(question: str, known: Known, wording: Wording) -> bool:
    identifier, _, field = known.slot.rpartition("|")
    stems = _stems(question)
    if any(name and name <= stems for name in (_stems(known.label), _stems(human(field or known.slot)))):
        return True
    tool = known.key.partition(".")[0]
    for own in wording.parameter(tool, known.slot).ask:
        words = content(own)
        if own.lower() in question.lower() or (len(words) > 1 and len(words & content(question)) >= 0.7 * len(words)):
            return True
    if not identifier:
        return False
    entity = wording.entity(identifier.split(".")[-1])
    nouns = {noun.lower() for noun in (entity.noun, entity.plural, "one") if noun}
    text = question.lower()
    return "which" in text and any(re.search(rf"\b{re.escape(noun)}s?\b", text) for noun in nouns)


def _stems(text: str) -> set[str]:
    """Words cut to five letters, so that "collect" and "collection" are one; short ones that say nothing left out."""
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in _SMALL}


def wants_device(asked: Collection[str], call: GoldCall, wording: Wording) -> bool:
    """True if the agent asks the user to do what this call does on their own device."""
    phrases = wording.tool(call.tool)
    own = {word for text in (*phrases.request, *phrases.ask, human(call.tool)) for word in content(text)}
    return any(len(own & content(question)) >= min(2, len(own)) for question in asked)


def about_the_request(question: str, turn: Turn, wording: Wording) -> bool:
    """True if a yes-or-no question is about what this turn asks for; one without any content is."""
    words = content(without_confirmation(question))
    own = content(turn.query) | content(turn.intent)
    for call in turn.gold_calls:
        phrases = wording.tool(call.tool)
        own |= {word for text in (*phrases.confirm, *phrases.ask, human(call.tool)) for word in content(text)}
    own |= {word for entry in turn.known for word in content(f"{entry.label} {entry.said}")}
    return not words or bool(words & own)


def content(text: str) -> set[str]:
    """The words of a text that mean something, roughly stemmed."""
    return {word.rstrip("s") for word in _WORD.findall(text.lower()) if len(word) > 3 and word not in _EMPTY}
