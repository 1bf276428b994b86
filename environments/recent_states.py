"""What was made of the states that were used last, within a bound of memory."""

from collections import OrderedDict
from typing import Generic, TypeVar

MOST_BYTES = 1 << 19
"""JSON of the states that are remembered: in memory, a state taken apart is about four times as large."""
LEAST_STATES = 4
"""States that are remembered whatever their size."""
T = TypeVar("T")


class RecentStates(Generic[T]):
    """Things made of states, by the JSON of the state. What was used least recently goes first.

    Variants of tasks have initial states of their own, which nobody needs again soon; those that many tasks start from
    stay, since they are used again and again.
    """

    __slots__ = ("_size", "_things")

    def __init__(self) -> None:
        self._things: OrderedDict[bytes, T] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._things)

    def get(self, text: bytes) -> T | None:
        """Return what was made of a state, or None."""
        thing = self._things.get(text)
        if thing is not None:
            self._things.move_to_end(text)
        return thing

    def put(self, text: bytes, thing: T) -> None:
        """Remember what was made of a state that is not there yet."""
        self._things[text] = thing
        self._size += len(text)
        while self._size > MOST_BYTES and len(self._things) > LEAST_STATES:
            self._size -= len(self._things.popitem(last=False)[0])
