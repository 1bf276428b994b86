"""Interpret the name of a tool: its action and the noun that it acts on."""

from dataclasses import dataclass

from trajsmith.envgen.generate.blueprint import ToolAction
from trajsmith.environments.adapters.openapi.naming import find_outcomes, is_verb, leaves_unchanged
from trajsmith.phrasing import singularize, to_snake_case, word_set

_VERBS: dict[ToolAction, frozenset[str]] = {
    "create": word_set(
        "create add new insert make register post book "
        "schedule open start draft submit place write save log record store"
    ),
    "get": word_set("get read show fetch describe view retrieve load inspect lookup"),
    "list": word_set("list search find query browse all filter"),
    "update": word_set("update edit modify patch change rename set adjust"),
    "delete": word_set("delete remove destroy drop erase forget"),
}
_CUTS = word_set("by for in to from with of on at as using via and or")
_EMPTY = word_set("all my the a an details detail info information data by list available existing recent single one")
_MANY = word_set("batch bulk multiple many")


@dataclass(frozen=True)
class ToolMeaning:
    """Action and noun of a tool, read from its name."""

    action: ToolAction
    noun: str
    outcome: tuple[str, ...] = ()
    """What a move makes of a record, most literal first."""


def interpret_tool_name(name: str, shared: tuple[str, ...]) -> ToolMeaning | str:
    """Return the action and noun in a tool's name, or the reason why it has none.

    Args:
        shared: Words that all tools of the server begin with.
    """
    parts = to_snake_case(name).split("_")
    parts = parts[len(shared) :] if tuple(parts[: len(shared)]) == shared and len(parts) > len(shared) else parts
    if set(parts) & _MANY:
        return "it takes several records at once"
    if parts[-1] in ("list", "search", "get", "create", "update", "delete", "show") and len(parts) > 1:
        parts = [parts[-1], *parts[:-1]]
    verb, rest = parts[0], parts[1:]
    if not rest:
        return "its name has no verb and noun"
    if verb == "mark":
        return ToolMeaning("move", _find_noun(rest[:-1]), (rest[-1],)) if len(rest) > 1 else "it does not say as what"
    action = next((action for action, verbs in _VERBS.items() if verb in verbs), None)
    if action is None:
        if not is_verb(verb) or leaves_unchanged(verb):
            return f"{verb!r} is no verb whose effect on records is known"
        return (
            ToolMeaning("move", _find_noun(rest), find_outcomes(verb)) if _find_noun(rest) else "its name has no noun"
        )
    noun = _find_noun(rest)
    if not noun:
        return "its name has no noun"
    plural = _is_plural(rest)
    if action == "get" and plural:
        action = "list"
    if action in ("create", "delete", "update") and plural:
        return "it takes several records at once"
    return ToolMeaning(action, noun)


_ASKING = word_set("request confirm ask try can should need want")
"""First words of names that ask for something: request_email_change is about no record "request email"."""
_JOINING = word_set("add remove")
_BORN = word_set(
    "comment note item message reply file attachment member row record entry card step line product reaction"
)
"""What is made by adding it to something."""
_NUMBERS = word_set("count stats statistics statistic totals")
_MORE_VERBS: dict[str, ToolAction] = {
    "retrieve": "get", "patch": "update", "edit": "update", "replace": "update", "generate": "create", "new": "create",
    "send": "create", "upload": "create", "compose": "create", "append": "create", "track": "create",
    "report": "create",
    "check": "get", "lookup": "get", "put": "update", "configure": "update", "upsert": "create", "reply": "create",
    "reorder": "update",
}  # fmt: skip


def interpret_service_tool(name: str, shared: tuple[str, ...]) -> ToolMeaning | str:
    """Return the action and noun in a tool's name, also where the name of its server or the noun comes first.

    Args:
        shared: Words that all tools of the server begin with.
    """
    parts = to_snake_case(name).split("_")
    parts = parts[len(shared) :] if tuple(parts[: len(shared)]) == shared and len(parts) > len(shared) else parts
    parts = [part for part in parts if part not in ("api", "tool", "mcp")] or parts
    if set(parts) & (_MANY | {"or", "and", "schema"}):
        return "it does more than one thing, or to several records"
    if set(parts) & _NUMBERS:
        counted = [part for part in parts if part not in _NUMBERS and not _find_action(part)]
        noun = _find_noun(counted)
        return ToolMeaning("summarize", noun) if noun else "its name has no noun"
    first = next((place for place, part in enumerate(parts[:3]) if _find_action(part)), None)
    if first is None:
        return f"{parts[0]!r} is no verb whose effect on records is known"
    after = parts[first + 1 :]
    if after and after[0] in _CUTS:
        after = []
    if parts[first] in _JOINING and {"to", "from"} & set(after[1:-1]) and not _BORN & set(after):
        return "it joins two records that are there"
    if not _find_noun(after) and first:
        if parts[0] in _ASKING:
            return f"{parts[0]!r} asks for a change that is made elsewhere"
        after = parts[:first]
    if not _find_noun(after):
        return "its name has no noun"
    action, outcome = _find_action(parts[first]) or ("get", ())
    plural = _is_plural(after) and "by" not in after
    if action == "get" and plural:
        action = "list"
    if action in ("create", "delete", "update") and plural:
        return "it takes several records at once"
    if action == "move" and parts[first] == "mark":
        return "it does not say as what"
    return ToolMeaning(action, _find_noun(after), outcome)


def _find_action(word: str) -> tuple[ToolAction, tuple[str, ...]] | None:
    if word in _MORE_VERBS:
        return _MORE_VERBS[word], ()
    if word == "book":
        return "move", ("book", "reserve", "reserved", "occupied", "in_use")
    if word in ("start", "open", "submit", "schedule", "set"):
        return ("update", ()) if word == "set" else ("move", (word, *find_outcomes(word)))
    action = next((action for action, verbs in _VERBS.items() if word in verbs), None)
    if action is not None:
        return action, ()
    if is_verb(word) and not leaves_unchanged(word):
        return "move", (word, *find_outcomes(word))
    return None


def find_shared_words(names: list[str]) -> tuple[str, ...]:
    """Return the words that all names begin with, if they are no verbs."""
    split = [to_snake_case(name).split("_") for name in names]
    shared: list[str] = []
    for words in zip(*split, strict=False):
        known = is_verb(words[0]) or any(words[0] in verbs for verbs in _VERBS.values())
        if len(set(words)) > 1 or known or len(names) < 2:
            break
        shared.append(words[0])
    return tuple(shared)


def _strip_modifiers(rest: list[str]) -> list[str]:
    cut = next((place for place, word in enumerate(rest) if word in _CUTS and place), len(rest))
    return [word for word in rest[:cut] if word not in _EMPTY]


def _find_noun(rest: list[str]) -> str:
    return singularize("_".join(_strip_modifiers(rest)))


def _is_plural(rest: list[str]) -> bool:
    core = "_".join(_strip_modifiers(rest))
    return "all" in rest or "list" in rest or singularize(core) != core
