"""Personas of the simulated user, and openings of conversations."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from trajsmith.phrasing import Phrasebook, pick_text
from trajsmith.records import JsonObject, Persona

STYLES = ("brisk", "polite", "chatty", "plain")
NAMES = ("Alex", "Sam", "Robin", "Charlie", "Jo", "Kim", "Lee", "Pat", "Noor", "Mika")
GREETINGS: dict[str, tuple[str, ...]] = {
    "brisk": ("", "", "Hi.", "Hello.", "Quick one:"),
    "polite": ("Hello,", "Good morning,", "Good afternoon,", "Hello there,", "Good day,"),
    "chatty": (
        "Hi there!",
        "Hello!",
        "Hey, I hope you're well.",
        "Hi, it's me again.",
        "Hello, me again with a few things.",
    ),
    "plain": ("Hi,", "Hello,", "Hey,", "Hi there,"),
}
INTRODUCTIONS = ("{} here.", "this is {}.", "my name is {}.", "I'm {}.")
LATER = {
    "brisk": ("", "Next:", "Now,", "OK,"),
    "polite": ("Thank you.", "Thanks, that helps.", "Thank you very much.", "Lovely, thanks."),
    "chatty": ("Great, thanks!", "Perfect, thanks!", "Lovely, thank you.", "Great.", "Brilliant."),
    "plain": ("Thanks.", "OK, thanks.", "Great.", "All right.", "Good, thank you."),
}
CLOSINGS = (
    "That's all, thank you.",
    "Great, that was everything.",
    "Thanks, nothing else for today.",
    "Perfect, that's it from me.",
)


def make_persona(
    phrasebook: Phrasebook, state: JsonObject, results: Sequence[Any], rng: random.Random
) -> tuple[Persona, str]:
    """A persona and the scenario in one sentence; the name is the one that the calls are about, where there is one."""
    names = _find_names(phrasebook.name_from, state)
    mentioned = next(filter(set(names).__contains__, _iter_texts(results)), None) if len(names) > 1 else None
    name = mentioned or rng.choice(names or NAMES)
    persona = Persona(name=name, role=rng.choice(phrasebook.roles), style=rng.choice(STYLES))
    scenario = pick_text(phrasebook.scenarios, {"name": name, "role": persona.role}, rng)
    return persona, scenario or f"{name}, {persona.role}, has a few things to get done."


def draw_greeting(persona: Persona, rng: random.Random) -> str:
    """A greeting, with or without a name."""
    greeting = rng.choice(GREETINGS[persona.style])
    if persona.style == "brisk" or rng.random() < 0.5:
        return greeting
    introduction = rng.choice(INTRODUCTIONS).format(persona.name if rng.random() < 0.5 else persona.name.split()[0])
    return f"{greeting} {introduction if greeting.endswith(',') else introduction[:1].upper() + introduction[1:]}"


def draw_turn_opening(persona: Persona, rng: random.Random) -> str:
    """A short reaction before the next request; often none."""
    return rng.choice(LATER[persona.style]) if rng.random() < 0.7 else ""


def _find_names(paths: Sequence[str], state: JsonObject) -> list[str]:
    names: list[str] = []
    for path in paths:
        nodes: list[Any] = [state]
        for part in path.split("."):
            nodes = [child for node in nodes if isinstance(node, dict) for child in _children(node, part)]
        names += [node for node in nodes if isinstance(node, str)]
    return names


def _children(node: JsonObject, part: str) -> list[Any]:
    return list(node.values()) if part == "*" else [node[part]] if part in node else []


def _iter_texts(value: Any) -> Iterator[str]:
    """All texts of a result in their order: the first name in it is whom it is about."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_texts(inner)
