"""What the name of a tool says: what is done, to what."""

from dataclasses import dataclass

from envgen.generate.blueprint import Action
from environments.openapi.words import acts_elsewhere, is_verb, kinds_of, outcomes, singular, snake

_VERBS: dict[Action, frozenset[str]] = {
    "create": kinds_of(
        "create add new insert make register post book "
        "schedule open start draft submit place write save log record store"
    ),
    "get": kinds_of("get read show fetch describe view retrieve load inspect lookup"),
    "list": kinds_of("list search find query browse all filter"),
    "update": kinds_of("update edit modify patch change rename set adjust"),
    "delete": kinds_of("delete remove destroy drop erase forget"),
}
_CUTS = kinds_of("by for in to from with of on at as using via and or")
_EMPTY = kinds_of("all my the a an details detail info information data by list available existing recent single one")
_MANY = kinds_of("batch bulk multiple many")


@dataclass(frozen=True)
class Meaning:
    """What a tool does, as its name says."""

    action: Action
    noun: str
    outcome: tuple[str, ...] = ()
    """What a move makes of a record, most literal first."""


def meaning(name: str, shared: tuple[str, ...]) -> Meaning | str:
    """What a tool's name says, or why it says nothing.

    Args:
        shared: Words that all tools of the server begin with.
    """
    parts = snake(name).split("_")
    parts = parts[len(shared) :] if tuple(parts[: len(shared)]) == shared and len(parts) > len(shared) else parts
    if set(parts) & _MANY:
        return "it takes several records at once"
    if parts[-1] in ("list", "search", "get", "create", "update", "delete", "show") and len(parts) > 1:
        parts = [parts[-1], *parts[:-1]]
    verb, rest = parts[0], parts[1:]
    if not rest:
        return "its name has no verb and noun"
    if verb == "mark":
        return Meaning("move", _noun(rest[:-1]), (rest[-1],)) if len(rest) > 1 else "it does not say as what"
    action = next((action for action, verbs in _VERBS.items() if verb in verbs), None)
    if action is None:
        if not is_verb(verb) or acts_elsewhere(verb):
            return f"{verb!r} is no verb whose effect on records is known"
        return Meaning("move", _noun(rest), outcomes(verb)) if _noun(rest) else "its name has no noun"
    noun = _noun(rest)
    if not noun:
        return "its name has no noun"
    plural = _is_plural(rest)
    if action == "get" and plural:
        action = "list"
    if action in ("create", "delete", "update") and plural:
        return "it takes several records at once"
    return Meaning(action, noun)


def shared_words(names: list[str]) -> tuple[str, ...]:
    """Words that all names begin with, if they are no verbs."""
    split = [snake(name).split("_") for name in names]
    shared: list[str] = []
    for words in zip(*split, strict=False):
        known = is_verb(words[0]) or any(words[0] in verbs for verbs in _VERBS.values())
        if len(set(words)) > 1 or known or len(names) < 2:
            break
        shared.append(words[0])
    return tuple(shared)


def _core(rest: list[str]) -> list[str]:
    cut = next((place for place, word in enumerate(rest) if word in _CUTS and place), len(rest))
    return [word for word in rest[:cut] if word not in _EMPTY]


def _noun(rest: list[str]) -> str:
    return singular("_".join(_core(rest)))


def _is_plural(rest: list[str]) -> bool:
    core = "_".join(_core(rest))
    return "all" in rest or "list" in rest or singular(core) != core
