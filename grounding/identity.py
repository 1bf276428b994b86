"""Who the user of a dialogue is: the first person, of those that users may be, whom a look-up returns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajsmith.records import FromUser, GoldCall, JsonObject


class UserIdentity:
    """Recognizes look-ups of the user, so that a dialogue has one user.

    Args:
        paths: Where the names of people stand in a state who may be the user, such as "customers.*.name".
        state: The initial state.
    """

    def __init__(self, paths: Sequence[str], state: JsonObject) -> None:
        self.names = {name for path in paths for name in _list_names(state, path.split("."))}

    def find_name(self, call: GoldCall) -> str | None:
        """Return the name of the person whom a call looks up by what the user says of themselves, or None."""
        from_user = bool(call.provenance) and all(isinstance(source, FromUser) for source in call.provenance.values())
        if not from_user or call.effect == "write" or not isinstance(call.result, Mapping):
            return None
        texts = (value for value in call.result.values() if isinstance(value, str))
        return next((text for text in texts if text in self.names), None)

    def find_look_up(self, calls: Sequence[GoldCall], tool: str = "") -> GoldCall | None:
        """Return the first call that looks the user up, of one tool or of any."""
        return next((call for call in calls if tool in ("", call.tool) and self.find_name(call) is not None), None)

    def is_another(self, call: GoldCall, calls: Sequence[GoldCall]) -> bool:
        """Return whether a call looks up another person than the calls before it."""
        first, name = self.find_look_up(calls), self.find_name(call)
        return first is not None and name is not None and name != self.find_name(first)


def _list_names(node: Any, parts: Sequence[str]) -> Iterator[str]:
    if not parts:
        if isinstance(node, str):
            yield node
    elif isinstance(node, Mapping):
        children = list(node.values()) if parts[0] == "*" else [node[parts[0]]] if parts[0] in node else []
        for child in children:
            yield from _list_names(child, parts[1:])
