"""Records of a discourse model: entities, lists, and what is talked about."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class DiscourseEntity:
    """One thing of the dialogue."""

    kind: str
    """Name of the parameter that identifies it, for example "order_id"."""
    id: str
    seen: int
    """Call that showed it first."""
    fields: dict[str, list[Any]] = field(default_factory=dict)
    """Field to its values, the latest last."""
    shown: dict[str, list[int]] = field(default_factory=dict)
    """Field to the calls that showed its values, one for each."""
    owners: set[tuple[str, str]] = field(default_factory=set)
    """(kind, id) of what it belongs to: the account of a payment."""
    created: int = -1
    """Call that created it; -1 if it was there before."""
    changed: int = -1
    active: int = 0
    """When it was last talked about, created or changed; 0 if never."""
    active_turn: int = -1
    turns: set[int] = field(default_factory=set)
    """Turns in which it was talked about, created or changed."""

    def latest(self, name: str) -> Any:
        """The current value of a field, or None."""
        values = self.fields.get(name)
        return values[-1] if values else None

    def find_before(self, name: str, call: int) -> Any:
        """Return the value that a field had before a call, or None if no earlier call showed it."""
        values = zip(self.fields.get(name, ()), self.shown.get(name, ()), strict=True)
        return next((value for value, index in reversed([*values]) if index < call), None)


@dataclass(frozen=True, slots=True)
class ShownList:
    """Rows of one kind that a call returned."""

    call: int
    tool: str
    path: str
    kind: str
    ids: tuple[str, ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class Focus:
    """Snapshot of what a dialogue talks about."""

    clock: int
    active: dict[tuple[str, str], tuple[int, int, frozenset[int]]]
    blurred: dict[str, int]
