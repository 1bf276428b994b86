"""Attention over a tree with its gradient. The module needs torch, so it is imported where a model attends."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import pad

from trajsmith.train_sft.tree_segments import Segment

BLOCK = 128
"""Tokens whose scores are computed together; keys behind the last of them are left out."""
QUERY_GRAIN, KEY_GRAIN = 32, 64
"""Tokens to a multiple of which queries of a block and keys before it are filled up. Libraries of processors compile
products for every shape and keep them: with many lengths, what they keep fills the heap with holes."""


@dataclass(frozen=True)
class Block:
    """Queries of a segment whose scores are computed together, and what they see of its keys."""

    start: int
    stop: int
    rows: int
    """Queries, filled up."""
    end: int
    """Keys up to those of the queries, which are the last `rows` of them."""
    hidden: int
    """Keys at the beginning that only fill up."""


class TreeAttention(torch.autograd.Function):  # type: ignore[misc]
    """Sums of values (key heads, tokens, size), weighted by queries (key heads, group, tokens, size) and keys.

    Weights are computed again for the gradient: kept, they would be most of a training's memory.
    """

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any, segments: Sequence[Segment]) -> Any:
        attended = query.new_empty(*query.shape[:-1], value.shape[-1])
        for segment in segments:
            keys, values = _gather(key, segment), _gather(value, segment)
            for block in _iterate_blocks(segment):
                seen = keys[:, : block.end].contiguous()
                products = torch.bmm(_compute_weights(query, seen, block), values[:, : block.end])
                _write(attended, products, block)
        context.save_for_backward(query, key, value, attended)
        context.segments = segments
        return attended

    @staticmethod
    def backward(context: Any, gradient: Any) -> tuple[Any, Any, Any, None]:
        query, key, value, attended = context.saved_tensors
        products = (gradient * attended).sum(-1, keepdim=True)
        d_query = torch.empty_like(query)
        d_key, d_value = (torch.zeros_like(states, dtype=torch.float32) for states in (key, value))
        for segment in context.segments:
            keys, values = _gather(key, segment), _gather(value, segment)
            d_keys, d_values = (torch.zeros_like(states, dtype=torch.float32) for states in (keys, values))
            for block in _iterate_blocks(segment):
                seen, end = keys[:, : block.end].contiguous(), block.end
                weights = _compute_weights(query, seen, block)
                outer = _flatten(gradient, block)
                d_values[:, :end] += torch.bmm(weights.transpose(1, 2), outer)
                scores = torch.bmm(outer, values[:, :end].contiguous().transpose(1, 2))
                scores.sub_(_flatten(products, block)).mul_(weights)
                _write(d_query, torch.bmm(scores, seen), block)
                d_keys[:, :end] += torch.bmm(scores.transpose(1, 2), _flatten(query, block))
            _scatter(d_key, d_keys, segment)
            _scatter(d_value, d_values, segment)
        return d_query, d_key.to(key.dtype), d_value.to(value.dtype), None


def _count_hidden(segment: Segment) -> int:
    return -sum(stop - start for start, stop in segment.before) % KEY_GRAIN


def _gather(states: Any, segment: Segment) -> Any:
    """Return what a segment sees, itself included, filled up at both ends; shape (key heads, tokens, size)."""
    ranges = (*segment.before, (segment.start, segment.stop))
    together = torch.cat([states[:, start:stop] for start, stop in ranges], dim=1)
    return pad(together, (0, 0, _count_hidden(segment), -(segment.stop - segment.start) % QUERY_GRAIN))


def _scatter(target: Any, parts: Any, segment: Segment) -> None:
    """Add to each token what is for it in the order of `_gather`."""
    place = _count_hidden(segment)
    for start, stop in (*segment.before, (segment.start, segment.stop)):
        target[:, start:stop] += parts[:, place : place + stop - start]
        place += stop - start


def _iterate_blocks(segment: Segment) -> Iterator[Block]:
    hidden = _count_hidden(segment)
    before = hidden + sum(stop - start for start, stop in segment.before)
    for start in range(segment.start, segment.stop, BLOCK):
        stop = min(start + BLOCK, segment.stop)
        rows = stop - start + -(stop - start) % QUERY_GRAIN
        yield Block(start, stop, rows, before + start - segment.start + rows, hidden)


def _flatten(states: Any, block: Block) -> Any:
    """Return a block's states with the group beside the tokens; shape (key heads, group x rows, size)."""
    filled = pad(states[:, :, block.start : block.stop], (0, 0, 0, block.rows - (block.stop - block.start)))
    return filled.reshape(states.shape[0], -1, states.shape[-1])


def _write(target: Any, products: Any, block: Block) -> None:
    """Put what was computed for a block in the form of `_flatten` where its tokens are."""
    apart = products.view(*target.shape[:2], block.rows, -1)
    target[:, :, block.start : block.stop] = apart[:, :, : block.stop - block.start]


def _compute_weights(query: Any, keys: Any, block: Block) -> Any:
    scores = torch.bmm(_flatten(query, block), keys.transpose(1, 2))
    scores[..., : block.hidden] = float("-inf")
    later = torch.ones(block.rows, block.rows, dtype=torch.bool, device=query.device).triu(1)
    apart = scores.view(*query.shape[:2], block.rows, block.end)
    apart[..., block.end - block.rows :].masked_fill_(later, float("-inf"))
    return torch.softmax(scores, dim=-1)
