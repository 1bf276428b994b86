"""The state of an episode on the owner's side: updated by changes, shared with the initial state where equal."""

from collections.abc import Iterable
from typing import Any

import orjson

from trajsmith.environments.programs import StateChange
from trajsmith.records import (
    EnvironmentFault,
    JsonObject,
    compute_entry_weight,
    compute_parts_digest,
    compute_table_digest,
    content_hash,
)

_NONE: Any = object()


class _ScalarPart:
    """A part that is no object."""

    __slots__ = ("_digest", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._digest = ""

    @property
    def digest(self) -> str:
        if not self._digest:
            self._digest = content_hash(self.value)
        return self._digest


class _TablePart:
    """A part that is an object: entries that are shared with the tables before it, what lies over them, its weight."""

    __slots__ = ("_base", "_digest", "_entries", "_gone", "_over", "_size", "_weight")

    def __init__(
        self, base: dict[str, Any], gone: dict[str, None], over: dict[str, Any], size: int, weight: int
    ) -> None:
        self._base = base
        self._gone = gone
        """Keys of the base that were taken out, and maybe put in again at the end."""
        self._over = over
        """Entries that are new or changed; those that are not at their place in the base stand in their order."""
        self._size = size
        self._weight = weight
        self._entries: dict[str, Any] | None = None if over or gone else base
        self._digest = ""

    @classmethod
    def of(cls, value: dict[str, Any]) -> "_TablePart":
        return cls(value, {}, {}, len(value), sum(compute_entry_weight(key, entry) for key, entry in value.items()))

    @property
    def value(self) -> dict[str, Any]:
        if self._entries is None:
            base, gone, over = self._base, self._gone, self._over
            self._entries = {key: over.get(key, entry) for key, entry in base.items() if key not in gone}
            self._entries.update((key, entry) for key, entry in over.items() if key not in base or key in gone)
        return self._entries

    @property
    def digest(self) -> str:
        if not self._digest:
            self._digest = compute_table_digest(self._weight, self._size)
        return self._digest

    def with_changes(self, changes: Iterable[tuple[str, bytes | None]]) -> "_TablePart":
        base, gone, over = self._base, dict(self._gone), dict(self._over)
        if len(gone) + len(over) > 16 + len(base) // 4:
            base, gone, over = self.value, {}, {}
        size, weight = self._size, self._weight
        for key, text in changes:
            known = over.get(key, _NONE if key in gone else base.get(key, _NONE))
            if known is not _NONE:
                size, weight = size - 1, weight - compute_entry_weight(key, known)
            if text is not None:
                over[key] = entry = orjson.loads(text)
                size, weight = size + 1, weight + compute_entry_weight(key, entry)
            elif known is not _NONE:
                over.pop(key, None)
                if key in base:
                    gone[key] = None
        return _TablePart(base, gone, over, size, weight)


Part = _ScalarPart | _TablePart
StatePath = tuple[str, str | None]


class Mirror:
    """State as immutable parts. Snapshots share what did not change: read them, never change them.

    Attributes:
        origin: JSON of the initial state that this one comes from.
        delta: What changed since then, by part and key; replaying it on the origin gives this state, in this order.
    """

    __slots__ = ("_delta", "origin", "parts")

    def __init__(
        self, origin: bytes, parts: dict[str, Part], delta: dict[StatePath, tuple[bytes | None, bool]]
    ) -> None:
        self.origin = origin
        self.parts = parts
        self._delta = delta
        """JSON by place, and whether the entry was taken out and put in again: it is at the end then."""

    @classmethod
    def of(cls, state: JsonObject, text: bytes) -> "Mirror":
        """An initial state and its JSON."""
        return cls(text, {name: _part(value) for name, value in state.items()}, {})

    @property
    def delta(self) -> list[StateChange]:
        changes: list[StateChange] = []
        for (name, key), (text, again) in self._delta.items():
            if again and text is not None:
                changes.append((name, key, None))
            changes.append((name, key, text))
        return changes

    def with_changes(self, changes: Iterable[StateChange], environment: str) -> "Mirror":
        """The state after changes; this one stays as it is.

        Raises:
            EnvironmentFault: The changes do not fit the state, or are no JSON.
        """
        try:
            return self._with_changes(changes, environment)
        except orjson.JSONDecodeError as error:
            raise EnvironmentFault("protocol", environment, f"the state changed to no JSON: {error}") from error

    def _with_changes(self, changes: Iterable[StateChange], environment: str) -> "Mirror":
        parts, delta = dict(self.parts), dict(self._delta)
        entries: dict[str, list[tuple[str, bytes | None]]] = {}
        for name, key, text in changes:
            if key is not None:
                entries.setdefault(name, []).append((key, text))
                _note(delta, (name, key), text)
                continue
            entries.pop(name, None)
            delta = {place: known for place, known in delta.items() if place[0] != name}
            delta[name, None] = text, False
            if text is None:
                parts.pop(name, None)
            else:
                parts[name] = _part(orjson.loads(text))
        for name, changed in entries.items():
            part = parts.get(name)
            if not isinstance(part, _TablePart):
                raise EnvironmentFault("protocol", environment, f"an entry of {name!r} changed, which is no object")
            parts[name] = part.with_changes(changed)
        return Mirror(self.origin, parts, delta)

    def snapshot(self) -> JsonObject:
        return {name: part.value for name, part in self.parts.items()}

    def digest(self) -> str:
        """`state_digest` of the snapshot, without reading again what did not change."""
        return compute_parts_digest({name: part.digest for name, part in self.parts.items()})


def _note(delta: dict[StatePath, tuple[bytes | None, bool]], place: StatePath, text: bytes | None) -> None:
    """New entries stand in a delta in the order in which the state has them."""
    known = delta.get(place)
    if known is None or text is None:
        delta[place] = text, False
    elif known[0] is None:
        del delta[place]
        delta[place] = text, True
    else:
        delta[place] = text, known[1]


def _part(value: Any) -> Part:
    return _TablePart.of(value) if isinstance(value, dict) else _ScalarPart(value)
