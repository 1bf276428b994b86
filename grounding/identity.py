"""Who the user of a dialogue is: the first person, of those that users may be, whom a look-up returns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajsmith.records import FromUser, GoldCall, JsonObject


class UserIdentity:
    """Recognizes look-ups of the user, so that a dialogue has one user.

    Args:
        paths: Where the names of people stand in a state who may be the user, such as "customers.*.name". Of several
            paths only people count that stand at all of them, if there are any: those who are known everywhere.
        state: The initial state.
    """

    def __init__(self, paths: Sequence[str], state: JsonObject) -> None:
        self.names = set(find_user_names(paths, state))
        self._shared = len(paths) > 1 and _list_shared_names(paths, state) != []
        self._people = [person for path in paths for person in _list_people(state, path.split("."))]

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

    def list_foreign_values(self, calls: Sequence[GoldCall]) -> frozenset[str]:
        """Return what only people say of themselves who cannot be the user, where several environments share them."""
        if not self._shared:
            return frozenset()
        first = self.find_look_up(calls)
        users = self.names if first is None else {self.find_name(first)}
        own: set[str] = set()
        others: set[str] = set()
        for name, texts in self._people:
            (own if name in users else others).update(texts)
        return frozenset(others - own)


def find_user_names(paths: Sequence[str], state: JsonObject) -> list[str]:
    """Return the names of the people in a state who may be the user, in the state's order; see `UserIdentity`."""
    every = (name for path in paths for name, _ in _list_people(state, path.split(".")))
    return _list_shared_names(paths, state) or list(every)


def _list_shared_names(paths: Sequence[str], state: JsonObject) -> list[str]:
    """Return the names that stand at every path."""
    first, *others = [[name for name, _ in _list_people(state, path.split("."))] for path in paths] or [[]]
    return [name for name in first if all(name in names for names in others)]


def _list_people(node: Any, parts: Sequence[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each person at a path, with all texts of the row that it stands in."""
    row = node if isinstance(node, Mapping) else {}
    if len(parts) == 1 and isinstance(row.get(parts[0]), str):
        yield row[parts[0]], {text for text in row.values() if isinstance(text, str)}
    elif len(parts) > 1:
        children = list(row.values()) if parts[0] == "*" else [row[parts[0]]] if parts[0] in row else []
        for child in children:
            yield from _list_people(child, parts[1:])
