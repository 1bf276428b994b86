"""Derived data of the states that were used last, within a bound of memory."""

from collections import OrderedDict
from typing import Generic, TypeVar

MOST_BYTES = 1 << 19
"""JSON of the states that are remembered: in memory, a state taken apart is about four times as large."""
LEAST_STATES = 4
"""States that are remembered whatever their size."""
T = TypeVar("T")


class RecentStates(Generic[T]):
    """Cache of what is derived from states, by their JSON. What was used least recently goes first.

    Variants of tasks have initial states of their own, which nobody needs again soon; those that many tasks start from
    stay, since they are used again and again.
    """

    __slots__ = ("_entries", "_size")

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, T] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, text: bytes) -> T | None:
        """Return what was made of a state, or None."""
        entry = self._entries.get(text)
        if entry is not None:
            self._entries.move_to_end(text)
        return entry

    def put(self, text: bytes, entry: T) -> None:
        """Remember what was made of a state that is not there yet."""
        self._entries[text] = entry
        self._size += len(text)
        while self._size > MOST_BYTES and len(self._entries) > LEAST_STATES:
            self._size -= len(self._entries.popitem(last=False)[0])
