"""Personas of the simulated user, and openings of conversations."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from trajsmith.grounding import find_user_names
from trajsmith.phrasing import (
    Outcome,
    Phrasebook,
    apply_surface,
    capitalize_first,
    draw_pattern,
    draw_user_voice,
    fill_pattern,
    find_clock_date,
    get_language,
    get_user_voice,
    join_opening,
    pick_text,
    shorten_values,
    split_quoted,
)
from trajsmith.records import GoldCall, JsonObject, Persona, UserFact

REACTING: Mapping[Outcome, float] = {"answered": 0.4, "done": 0.55, "refused": 0.4}
"""Probability of a word about the turn before."""
NAMES = ("Alex", "Sam", "Robin", "Charlie", "Jo", "Kim", "Lee", "Pat", "Noor", "Mika")

_SENTENCE_START = re.compile(r"(?<=[a-z][.!?] )(?:the|that|this|my|our)(?= )")
"""The first word of a sentence that begins with what a thing is called: "There are 4 of us. That train, please."."""


def make_persona(
    phrasebook: Phrasebook, state: JsonObject, results: Sequence[Any], rng: random.Random
) -> tuple[Persona, str]:
    """A persona and the scenario in one sentence; the name is the one that the calls are about, where there is one."""
    names = find_user_names(phrasebook.name_from, state)
    mentioned = next(filter(set(names).__contains__, _iter_texts(results)), None) if len(names) > 1 else None
    name = mentioned or rng.choice(names or NAMES)
    persona = Persona(name=name, role=rng.choice(phrasebook.roles), style=draw_user_voice(rng))
    scenario = pick_text(phrasebook.scenarios, {"name": name, "role": persona.role}, rng)
    return persona, scenario or f"{name}, {persona.role}, has a few things to get done."


def draw_greeting(persona: Persona, state: JsonObject, rng: random.Random, phrasebook: Phrasebook) -> str:
    """A greeting that fits the environment's clock, with or without a name."""
    voice = get_user_voice(persona.style)
    greeting = draw_pattern(voice.greetings, rng).replace("<daypart>", _name_daypart(find_clock_date(state)))
    if rng.random() < 0.6 or not phrasebook.introductions:
        return greeting
    introduction = fill_pattern(
        voice.introductions, persona.name if rng.random() < 0.5 else persona.name.split()[0], rng
    )
    return f"{greeting} {introduction if greeting.endswith(',') else capitalize_first(introduction)}".strip()


def _name_daypart(now: date) -> str:
    """Return what one wishes somebody at a time of day; "day" where there is no clock."""
    if not isinstance(now, datetime):
        return "day"
    return "morning" if now.hour < 12 else "afternoon" if now.hour < 18 else "evening"


def draw_turn_opening(
    persona: Persona, outcome: Outcome, rng: random.Random, used: set[str] | None = None, trouble: bool = False
) -> str:
    """A short reaction before the next request, rather not one of those `used` before; often none.

    Args:
        persona: Who speaks.
        outcome: What the turn before came to.
        rng: Source of randomness.
        used: Patterns that were drawn before.
        trouble: Something has gone wrong, so that nobody cheers.
    """
    if rng.random() >= REACTING[outcome]:
        return ""
    opening = draw_pattern(getattr(get_user_voice(persona.style).reactions, outcome), rng, used)
    return "" if trouble and get_language().user.cheers.search(opening) else opening


def find_outcome(call: GoldCall) -> Outcome:
    """Return what a call comes to for the user: it did something, it answered, or there was nothing to tell.

    What users do on a device themselves is an answer: it may be bad news.
    """
    if call.effect == "write":
        return "done" if call.actor == "assistant" else "answered"
    rows = call.result.get("result", call.result) if isinstance(call.result, dict) else call.result
    return "refused" if rows in (None, [], {}, "") else "answered"


def render_query(
    opening: str,
    text: str,
    persona: Persona,
    known: Iterable[UserFact],
    now: date,
    rng: random.Random,
    slipped: set[str] | None = None,
) -> str:
    """An opening and a request as this user writes them.

    Args:
        opening: What stands before the request; may be empty.
        text: The request.
        persona: Who writes.
        known: Facts of the user: their values stay letter by letter.
        now: The environment's clock: near dates are said without their year.
        rng: Draws slips of the keyboard.
        slipped: Words in which the user made one before; a new one is added.
    """
    facts = list(known)
    names = [fact.value for fact in facts if isinstance(fact.value, str)]
    parts = split_quoted(join_opening(opening, text, names))
    parts[::2] = [_SENTENCE_START.sub(lambda match: match[0].capitalize(), part) for part in parts[::2]]
    return render_message(shorten_values("".join(parts), now), persona, facts, rng, slipped)


def render_message(
    text: str, persona: Persona, known: Iterable[UserFact], rng: random.Random, slipped: set[str] | None = None
) -> str:
    """A message as this user types it: small letters and slips, where their register has them."""
    exact = {str(fact.value) for fact in known if isinstance(fact.value, str)}
    return apply_surface(text, get_user_voice(persona.style), exact, rng, slipped)


def add_sentence(query: str, sentence: str, persona: Persona, rng: random.Random) -> str:
    """Return a message with one more sentence, typed as this user types; the one before it gets its full stop."""
    stop = "" if query.endswith((".", "?", "!")) else "."
    return f"{query}{stop} {render_message(sentence, persona, (), rng)}"


def _iter_texts(value: Any) -> Iterator[str]:
    """All texts of a result in their order: the first name in it is whom it is about."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(inner)
