"""Key and value states of token sequences, so that a prompt which begins like an earlier one goes on from there.

The prompt of an agent's second message begins with the whole prompt of its first, and conversations about one
environment begin with the same system message. Computing a prompt of 1,000 tokens costs a small model on a CPU as much
as writing a message, so what is known is not computed again. States of sequences of different length are laid out at
the left, with a gap up to the longest that the attention mask leaves out; positions count only what is not left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MIN_SHARED = 32
"""Tokens that must be shared: fewer are computed faster than they are copied."""


@dataclass(frozen=True, eq=False)
class CachedSequence:
    """Token ids and, for every layer, keys and values: (heads, tokens, size)."""

    ids: tuple[int, ...]
    layers: list[tuple[Any, Any]]

    @property
    def bytes(self) -> int:
        return sum(part.numel() * part.element_size() for layer in self.layers for part in layer)


@dataclass(frozen=True)
class PreparedBatch:
    """Arguments of `generate` for prompts of which a part is cached."""

    input_ids: Any
    attention_mask: Any
    past_key_values: Any
    """None if nothing is shared."""


class PrefixCache:
    """Sequences that were computed last, up to a size in bytes; the one that was used longest ago goes first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._sequences: list[CachedSequence] = []
        """In the order of their last use."""

    def find_longest_prefix(self, ids: Sequence[int]) -> "Match":
        """Return the sequence that shares most with the beginning of a prompt, and how many tokens.

        The last token of a prompt is never shared: the model must compute something to go on.
        """
        longest, length = None, 0
        for sequence in self._sequences:
            shared = count_shared_tokens(sequence.ids, ids[:-1])
            if shared > length:
                longest, length = sequence, shared
        if longest is None or length < MIN_SHARED:
            return None, 0
        self._sequences.remove(longest)
        self._sequences.append(longest)
        return longest, length

    def add(self, sequence: CachedSequence) -> None:
        """Keep a sequence in place of those that are a beginning of it."""
        self._sequences = [
            known for known in self._sequences if count_shared_tokens(known.ids, sequence.ids) < len(known.ids)
        ]
        self._sequences.append(sequence)
        total = sum(known.bytes for known in self._sequences)
        while self._sequences and total > self.limit:
            total -= self._sequences.pop(0).bytes


def count_shared_tokens(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common beginning."""
    end = min(len(first), len(second))
    if tuple(first[:end]) == tuple(second[:end]):
        return end
    low, high = 0, end  # first[:low] is shared, first[:high] is not
    while high - low > 1:
        middle = (low + high) // 2
        if tuple(first[low:middle]) == tuple(second[low:middle]):
            low = middle
        else:
            high = middle
    return low


def find_common_stems(prompts: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return beginnings that at least two prompts share and that are at least half of the shorter one."""
    stems: list[list[int]] = []
    members = 0
    stem: list[int] = []
    for prompt in sorted(list(prompt) for prompt in prompts):
        shared = count_shared_tokens(stem, prompt)
        if members and shared >= max(MIN_SHARED, min(len(stem), len(prompt)) // 2):
            stem, members = stem[:shared], members + 1
            continue
        if members > 1:
            stems.append(stem)
        stem, members = prompt, 1
    return [*stems, stem] if members > 1 else stems


Match = tuple[CachedSequence | None, int]
"""Sequence that a prompt begins like, and how many tokens of it."""


def prepare_batch(matches: Sequence[Match], prompts: Sequence[Sequence[int]], pad: int, device: Any) -> PreparedBatch:
    """Lay out prompts with what is cached of them.

    Args:
        matches: What is cached of each prompt.
        prompts: Token ids.
        pad: Token that pads.
        device: Where the tensors lie.
    """
    import torch

    wide = max(length for _, length in matches)
    rest = max(len(prompt) - length for prompt, (_, length) in zip(prompts, matches, strict=True))
    ids = torch.full((len(prompts), wide + rest), pad, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (prompt, (_, length)) in enumerate(zip(prompts, matches, strict=True)):
        ids[row, :length] = torch.tensor(prompt[:length], dtype=torch.long)
        ids[row, wide + rest - (len(prompt) - length) :] = torch.tensor(prompt[length:], dtype=torch.long)
        mask[row, :length] = 1
        mask[row, wide + rest - (len(prompt) - length) :] = 1
    return PreparedBatch(ids.to(device), mask.to(device), _stack(matches, wide))


def _stack(matches: Sequence[Match], wide: int) -> Any:
    """Return a cache of Transformers with the shared states of every row at the left, zeros behind them."""
    from trajsmith.models.growing_cache import build_cache

    known = next((sequence for sequence, _ in matches if sequence is not None), None)
    if known is None:
        return None
    layers = []
    for number, parts in enumerate(known.layers):
        stacked = [part.new_zeros((len(matches), part.shape[0], wide, part.shape[2])) for part in parts]
        for row, (sequence, length) in enumerate(matches):
            if sequence is not None:
                for target, part in zip(stacked, sequence.layers[number], strict=True):
                    target[row, :, :length] = part[:, :length]
        layers.append(tuple(stacked))
    return build_cache(layers)


def extract_sequences(past: Any, mask: Any, ids: Mapping[int, Sequence[int]]) -> list[CachedSequence]:
    """Take the states of rows out of a batch's cache.

    Args:
        past: Cache after a call of the model.
        mask: Attention mask (rows, tokens) of the prompts.
        ids: Rows to the tokens of them that were computed: the prompt and what follows in the cache.
    """
    import torch

    sequences = []
    for row, tokens in ids.items():
        prompt = mask[row].nonzero().squeeze(1)
        written = torch.arange(len(tokens) - len(prompt), device=prompt.device) + mask.shape[1]
        slots = torch.cat([prompt, written])
        layers = [
            (layer.keys[row].index_select(1, slots), layer.values[row].index_select(1, slots)) for layer in past.layers
        ]
        sequences.append(CachedSequence(tuple(tokens), layers))
    return sequences


def select_rows(past: Any, rows: Any, columns: Any) -> None:
    """Leave only some rows and tokens in a batch's cache.

    Args:
        past: Cache after a call of the model.
        rows: Numbers of the rows that stay.
        columns: Places of the tokens that stay.
    """
    for layer in past.layers:
        layer.select(rows, columns)


def can_share_prefixes(model: Any) -> bool:
    """Return True if every layer of a model attends to all earlier tokens: only such states can be cut and moved."""
    config = model.config.get_text_config(decoder=True)
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    rotary = hasattr(config, "rope_parameters")
    return rotary and kinds == {"full_attention"} and not getattr(config, "sliding_window", None)
