"""States of a batch with room for the tokens to come. The module needs torch, so it is imported where a model writes.

Transformers joins the states of all tokens with those of each new one, which copies the whole cache for every token of
a reply: a third of the time in which a small model on a processor writes a batch of long conversations.
"""

from collections.abc import Sequence
from typing import Any

from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

ROOM = 16
"""Tokens for which there is room when states are copied."""


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Layer whose states are the beginning of a larger tensor.

    With `shows_room`, one more token attends to the whole tensor, whose rest the mask of plain attention hides:
    products of a part of a tensor copy it first.
    """

    keys: Any
    values: Any
    shows_room = False

    def __init__(self) -> None:
        super().__init__()
        self._rooms: list[Any] = [None, None]

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append states of shape (rows, heads, tokens, size) and return all, for one token with the room."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        with_room = self._returns_room(key_states.shape[-2])
        self.keys = self._append(0, self.keys, key_states)
        self.values = self._append(1, self.values, value_states)
        return tuple(self._rooms) if with_room else (self.keys, self.values)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return how many places the states have that `update` will return, and where they begin."""
        length = self.get_seq_length()
        end = length + query_length
        if not self._returns_room(query_length):
            return end, 0
        return self._rooms[0].shape[-2] if self._has_room(0, self.keys, end) else end + ROOM, 0

    def select(self, rows: Any, columns: Any) -> None:
        """Leave only some rows and tokens; the others are given free."""
        self._rooms = [None, None]
        self.keys = self.keys.index_select(0, rows).index_select(2, columns)
        self.values = self.values.index_select(0, rows).index_select(2, columns)

    def _append(self, number: int, known: Any, new: Any) -> Any:
        length = known.shape[-2] if known.numel() else 0
        end = length + new.shape[-2]
        if not self._has_room(number, known, end):
            room = new.new_empty((*new.shape[:2], end + ROOM, new.shape[-1]))
            room[:, :, end:] = 0  # hidden by masks, which only finite values are
            if length:
                room[:, :, :length] = known
            self._rooms[number] = room
        self._rooms[number][:, :, length:end] = new
        return self._rooms[number][:, :, :end]

    def _has_room(self, number: int, known: Any, end: int) -> bool:
        room = self._rooms[number]
        return bool(room is not None and known.data_ptr() == room.data_ptr() and end <= room.shape[-2])

    def _returns_room(self, query_length: int) -> bool:
        return self.shows_room and query_length == 1 and self.get_seq_length() > 0


def build_cache(layers: Sequence[tuple[Any, Any]], count: int = 0) -> Any:
    """Build a cache of Transformers with room.

    Args:
        layers: Keys and values of each layer, (rows, heads, tokens, size); none where nothing is known.
        count: Number of layers where nothing is known.
    """
    cache = DynamicCache()
    cache.layers = [GrowingLayer() for _ in range(len(layers) or count)]
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache
