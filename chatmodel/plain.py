"""Sentences about fields that nobody wrote phrases for: only the field's name and its value are known.

A name may be a noun (price), a participle (born, created on), an adjective (active): "what is the born?" asks nobody.
"""

import random
import re
from typing import Any

from chatmodel import surface

_PARTICIPLES = frozenset({
    "born", "begun", "bought", "broken", "built", "chosen", "done", "drawn", "driven", "due", "frozen", "given",
    "gone", "held", "hidden", "kept", "known", "left", "lent", "lost", "made", "met", "paid", "read", "run", "seen",
    "sent", "set", "shown", "sold", "spent", "split", "spoken", "stolen", "taken", "told", "understood", "won",
    "worn", "written",
})  # fmt: skip
_ADJECTIVES = frozenset({
    "active", "available", "complete", "empty", "enabled", "free", "full", "hot", "inactive", "internal", "live",
    "new", "old", "open", "optional", "private", "public", "ready", "recurring", "recursive", "remote", "urgent",
    "valid", "visible",
})  # fmt: skip
_LINKS = frozenset({"on", "at", "by", "until", "from", "to", "since", "in", "for", "with", "after", "before"})
_NOUNS_IN_ED = frozenset({"bed", "shed", "sled", "red", "embed", "newlywed"})


def is_noun(label: str) -> bool:
    """False for the name of a field that cannot stand after "the": born, created on, is active."""
    parts = label.lower().split() or [""]
    last = parts[-1]
    participle = re.fullmatch(r"\w+[^e]ed", last) is not None and last not in _NOUNS_IN_ED
    verbal = parts[0] in {"is", "has", "can", "allow", "allows", "include", "includes"} and len(parts) > 1
    return not (participle or verbal or last in _PARTICIPLES | _ADJECTIVES | _LINKS)


def tell_plainly(label: str, value: Any, rng: random.Random) -> str:
    """A sentence in which a user gives a value."""
    said = surface.quoted(value)
    stop = "" if said.endswith(('."', '!"', '?"')) else "."
    if isinstance(value, bool) or not is_noun(label):
        return f"{capital(label)}: {said}{stop}"
    if label in ("limit", "max results", "page size") and isinstance(value, int):
        return rng.choice((f"At most {said}, please.", f"No more than {said}, please."))
    options = [f"The {label} is {said}{stop}", f"{capital(label)}: {said}{stop}"]
    if not said.startswith('"'):
        options.append(f"The {label} should be {said}{stop}")
    return rng.choice(options)


def ask_plainly(label: str, value: Any, rng: random.Random) -> str:
    """A question for a value of this kind."""
    if isinstance(value, bool):
        return rng.choice((f'What about "{label}": yes or no?', f'Should I put yes or no for "{label}"?'))
    if not is_noun(label):
        what = "date" if surface.as_moment(value) is not None else "value"
        return rng.choice((f'What should I put for "{label}"?', f'Which {what} should I enter for "{label}"?'))
    return rng.choice((f"Could you tell me the {label}?", f"What is the {label}?", f"Which {label} should I use?"))


def by_field(noun: str, field: str, label: str, value: Any) -> str:
    """A noun phrase by a field that nobody wrote a phrase for."""
    said = surface.quoted(value)
    if field in ("name", "title", "label", "subject"):
        return f'the {noun} "{surface.say(value)}"'
    if surface.as_moment(value) is not None:
        link = f" {label}" if not is_noun(label) and label.split()[0] not in ("is", "has") else " from"
        return f"the {noun}{link} {surface.long_date(value)}"
    if field in ("status", "state", "type", "kind", "category", "priority") and isinstance(value, str):
        return f"the {surface.say(value)} {noun}"
    if not is_noun(label):
        return f'the {noun} with {said} for "{label}"'
    return f"the {noun} with the {label} {said}"


def extreme(noun: str, field: str, label: str, how: str, value: Any) -> str:
    """A superlative: dates are recent or early, prices high or low."""
    if surface.as_moment(value) is not None:
        return f"{'my most recent' if how == 'largest' else 'my oldest'} {noun}"
    if any(word in field for word in ("price", "fare", "fee", "cost")):
        return f"the {'most expensive' if how == 'largest' else 'cheapest'} {noun}"
    return f"the {noun} with the {'highest' if how == 'largest' else 'lowest'} {label}"


def capital(text: str) -> str:
    """Start with a capital, but leave addresses and file names as they are."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    named = "://" in first or "@" in first or "." in first.rstrip(".,:;!?")
    return text if named else text[:1].upper() + text[1:]
