"""Default sentences about fields without phrases, from the field's name and value.

A name may be a noun (price), a participle (born, created on), an adjective (active): "what is the born?" asks nobody.
"""

import random
import re
from typing import Any, Literal

from trajsmith.phrasing import value_formatting
from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.languages.english_grammar import Noun

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


def render_plain_statement(label: str, value: Any, rng: random.Random) -> str:
    """Render a sentence in which a user gives a value."""
    quoted_value = value_formatting.format_quoted(value)
    plain = get_language().plain
    if plain is not None:
        return plain.statement.format(label=capitalize_first(label), value=quoted_value)
    stop = "" if quoted_value.endswith(('."', '!"', '?"')) else "."
    if isinstance(value, bool) or not is_noun(label):
        return f"{capitalize_first(label)}: {quoted_value}{stop}"
    if label in ("limit", "max results", "page size") and isinstance(value, int):
        return rng.choice((f"At most {quoted_value}, please.", f"No more than {quoted_value}, please."))
    options = [f"The {label} is {quoted_value}{stop}", f"{capitalize_first(label)}: {quoted_value}{stop}"]
    if not quoted_value.startswith('"'):
        options.append(f"The {label} should be {quoted_value}{stop}")
    return rng.choice(options)


def render_plain_question(label: str, value: Any, rng: random.Random) -> str:
    """Render a question for a value of this kind."""
    plain = get_language().plain
    if plain is not None:
        return plain.question.format(label=label)
    if isinstance(value, bool):
        return rng.choice((f'What about "{label}": yes or no?', f'Should I put yes or no for "{label}"?'))
    if not is_noun(label):
        noun = "date" if value_formatting.parse_datetime(value) is not None else "value"
        return rng.choice((f'What should I put for "{label}"?', f'Which {noun} should I enter for "{label}"?'))
    return rng.choice((f"Could you tell me the {label}?", f"What is the {label}?", f"Which {label} should I use?"))


def render_field_phrase(entity: Noun, field: str, label: str, value: Any) -> str:
    """Render a noun phrase that identifies an entity by a field without phrases."""
    quoted_value, noun, language = value_formatting.format_quoted(value), entity.noun, get_language()
    if language.plain is not None:
        return language.grammar.with_field(entity, label, quoted_value)
    if field in ("name", "title", "label", "subject"):
        return f'the {noun} "{value_formatting.format_value(value)}"'
    if value_formatting.parse_datetime(value) is not None:
        link = f" {label}" if not is_noun(label) and label.split()[0] not in ("is", "has") else " from"
        return f"the {noun}{link} {value_formatting.format_date(value)}"
    if field in ("status", "state", "type", "kind", "category", "priority") and isinstance(value, str):
        return f"the {value_formatting.format_value(value)} {noun}"
    if not is_noun(label):
        return f'the {noun} with {quoted_value} for "{label}"'
    return language.grammar.with_field(entity, label, quoted_value)


def render_superlative(entity: Noun, field: str, label: str, how: str, value: Any) -> str:
    """Render a superlative: dates are recent or early, prices high or low."""
    dated = value_formatting.parse_datetime(value) is not None
    priced = any(word in field for word in ("price", "fare", "fee", "cost"))
    kind: Literal["date", "price", "value"] = "date" if dated else "price" if priced else "value"
    return get_language().grammar.superlative(entity, label, kind, how == "largest")


def capitalize_first(text: str) -> str:
    """Capitalize the first letter, but leave addresses and file names unchanged."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    named = "://" in first or "@" in first or "." in first.rstrip(".,:;!?")
    return text if named else text[:1].upper() + text[1:]
