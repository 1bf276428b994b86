"""Who makes the calls of a tool, as far as its source says: the agent, or only the user on their own device.

Words decide only where a description says who makes the call; docs/envgen.md tells what they find.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any, get_args

from trajsmith.records import Actor, InputError

ACTOR_KEY = "trajsmith/actor"
"""Entry of an MCP tool's `_meta` that says who calls it."""
OPENAPI_ACTOR_KEY = "x-trajsmith-actor"
"""Extension of an OpenAPI operation that says the same."""
_PERSON = r"the (?:end[- ])?(?:user|customer|client|caller|human)"
_CALL = r"(?:call|invoke|run|use|perform|execute)"
_THIS = r"this(?: (?:tool|function|operation|endpoint|method)\b|(?=[.,;:!)]|$))"
"""A tool itself; `this coupon` is a thing of its own."""
_SAYS_USER = re.compile(
    rf"\b{_PERSON} (?:must|has to|needs to) {_CALL} {_THIS}"
    rf"|\bonly {_PERSON} (?:can|may|must|should) {_CALL} {_THIS}",
    re.IGNORECASE,
)


def find_tool_actor(
    name: str, description: str, declared: Mapping[str, Any] | None = None, user_tools: Collection[str] | None = None
) -> Actor:
    """Return who calls a tool: as the settings say, else as its source declares, else as its description says.

    Args:
        name: The tool.
        description: All of it, not only its first line.
        declared: What the source has beside the description: an entry of a tool list, or an OpenAPI operation.
        user_tools: Tools of the user in the settings; None if the settings leave it to the source.

    Raises:
        InputError: The source declares another actor than "assistant" and "user".
    """
    if user_tools is not None:
        return "user" if name in user_tools else "assistant"
    stated = _read_declared(declared or {})
    if stated is not None:
        if stated not in get_args(Actor):
            known = ", ".join(get_args(Actor))
            raise InputError(f"tool {name}: the actor is {str(stated)[:40]!r}; it must be one of {known}")
        return "user" if stated == "user" else "assistant"
    return "user" if _SAYS_USER.search(" ".join(description.split())) else "assistant"


def check_user_tools(where: str, user_tools: Collection[str] | None, actors: Mapping[str, Actor]) -> None:
    """Check that the settings' tools of the user exist, and that the agent has a tool.

    Args:
        where: Where the tools of the user are set, for the error's text.
        user_tools: Tools of the user in the settings; None if the settings leave it to the source.
        actors: Who calls each tool.

    Raises:
        InputError: One of them does not exist, or all tools are the user's.
    """
    unknown = sorted(set(user_tools or ()) - actors.keys())
    if unknown:
        names = ", ".join(sorted(actors)) or "none"
        raise InputError(f"{where}: user tool {unknown[0]!r} does not exist; there are {names}")
    if set(actors.values()) == {"user"}:
        raise InputError(f"{where}: all tools are the user's; leave the agent at least one")


def _read_declared(declared: Mapping[str, Any]) -> Any:
    meta = declared.get("_meta")
    if isinstance(meta, Mapping) and ACTOR_KEY in meta:
        return meta[ACTOR_KEY]
    return declared.get(OPENAPI_ACTOR_KEY, declared.get("actor"))
