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
    """Layer whose states are the beginning of a larger tensor."""

    keys: Any
    values: Any

    def __init__(self) -> None:
        super().__init__()
        self._rooms: list[Any] = [None, None]

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append states of shape (rows, heads, tokens, size) and return all."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys = self._append(0, self.keys, key_states)
        self.values = self._append(1, self.values, value_states)
        return self.keys, self.values

    def select(self, rows: Any, columns: Any) -> None:
        """Leave only some rows and tokens; the others are given free."""
        self._rooms = [None, None]
        self.keys = self.keys.index_select(0, rows).index_select(2, columns)
        self.values = self.values.index_select(0, rows).index_select(2, columns)

    def _append(self, number: int, known: Any, new: Any) -> Any:
        length, room = known.shape[-2] if known.numel() else 0, self._rooms[number]
        end = length + new.shape[-2]
        if room is None or not length or known.data_ptr() != room.data_ptr() or end > room.shape[-2]:
            room = new.new_empty((*new.shape[:2], end + ROOM, new.shape[-1]))
            if length:
                room[:, :, :length] = known
            self._rooms[number] = room
        room[:, :, length:end] = new
        return room[:, :, :end]


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
