"""Attention over a tree with its gradient. The module needs torch, so it is imported where a model attends."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from trajsmith.train_sft.tree_segments import Segment

BLOCK = 128
"""Tokens whose scores are computed together; keys behind the last of them are left out."""


class TreeAttention(torch.autograd.Function):  # type: ignore[misc]
    """Sums of values (key heads, tokens, size), weighted by queries (key heads, group, tokens, size) and keys.

    Weights are computed again for the gradient: kept, they would be most of a training's memory.
    """

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any, segments: Sequence[Segment]) -> Any:
        attended = query.new_empty(*query.shape[:-1], value.shape[-1])
        for segment in segments:
            keys, values = _gather(key, segment), _gather(value, segment)
            for start, stop, end in _iterate_blocks(segment):
                block = torch.bmm(_compute_weights(query, keys, start, stop, end), values[:, :end])
                attended[:, :, start:stop] = block.view(*query.shape[:2], stop - start, -1)
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
            d_keys, d_values = torch.zeros_like(keys), torch.zeros_like(values)
            for start, stop, end in _iterate_blocks(segment):
                weights = _compute_weights(query, keys, start, stop, end)
                outer = _flatten(gradient, start, stop)
                d_values[:, :end].baddbmm_(weights.transpose(1, 2), outer)
                scores = torch.bmm(outer, values[:, :end].transpose(1, 2))
                scores.sub_(_flatten(products, start, stop)).mul_(weights)
                d_block = torch.bmm(scores, keys[:, :end])
                d_query[:, :, start:stop] = d_block.view(*query.shape[:2], stop - start, -1)
                d_keys[:, :end].baddbmm_(scores.transpose(1, 2), _flatten(query, start, stop))
            _scatter(d_key, d_keys, segment)
            _scatter(d_value, d_values, segment)
        return d_query, d_key.to(key.dtype), d_value.to(value.dtype), None


def _gather(states: Any, segment: Segment) -> Any:
    """Return what a segment sees, itself included; shape (key heads, tokens, size)."""
    ranges = (*segment.before, (segment.start, segment.stop))
    return torch.cat([states[:, start:stop] for start, stop in ranges], dim=1)


def _scatter(target: Any, parts: Any, segment: Segment) -> None:
    """Add to each token what is for it in the order of `_gather`."""
    place = 0
    for start, stop in (*segment.before, (segment.start, segment.stop)):
        target[:, start:stop] += parts[:, place : place + stop - start]
        place += stop - start


def _iterate_blocks(segment: Segment) -> Iterator[tuple[int, int, int]]:
    """Yield start and stop of each block of queries, and the number of keys up to its end."""
    length = sum(stop - start for start, stop in segment.before)
    for start in range(segment.start, segment.stop, BLOCK):
        stop = min(start + BLOCK, segment.stop)
        yield start, stop, length + stop - segment.start


def _flatten(states: Any, start: int, stop: int) -> Any:
    """Return a block's states with the group beside the tokens; shape (key heads, group x block, size)."""
    return states[:, :, start:stop].reshape(states.shape[0], -1, states.shape[-1])


def _compute_weights(query: Any, keys: Any, start: int, stop: int, end: int) -> Any:
    size = stop - start
    scores = torch.bmm(_flatten(query, start, stop), keys[:, :end].transpose(1, 2))
    later = torch.ones(size, size, dtype=torch.bool, device=query.device).triu(1)
    scores.view(*query.shape[:2], size, end)[..., end - size :].masked_fill_(later, float("-inf"))
    return torch.softmax(scores, dim=-1)
