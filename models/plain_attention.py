"""Attention in plain matrix products: torch's own takes several times as long on a processor. Needs torch.

It is a function of Transformers' `AttentionInterface` with a mask of its own, for computing without gradients.
Key heads are not repeated for the heads that share them, and prompts are computed in blocks that see no later keys.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from trajsmith.models.prefix_cache import can_share_prefixes

NAME = "trajsmith_plain"
"""Under which Transformers knows it."""
BLOCK = 128
"""Tokens of a prompt whose scores are computed together; keys behind the last of them are left out."""
_OTHER_SCORES = ("softcap", "position_bias", "s_aux")
"""Arguments of attentions that are more than a softmax of products."""


def compute_plain_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    **others: Any,
) -> tuple[Any, None]:
    """Attend to the keys that a mask shows; the form is that of Transformers' attention functions.

    Args:
        module: Attention layer.
        query: Shape (rows, heads, tokens, size).
        key: Shape (rows, key heads, places, size). Of several tokens the last one is at the last place.
        value: As `key`.
        attention_mask: Of `build_mask`: shape (rows or 1, 1, tokens, places), True where a token sees a place.
        dropout: For torch's attention, where the function is not enough.
        scaling: Factor of the scores; None is the usual one.
        others: Further arguments; what changes scores is left to torch's attention.

    Returns:
        Shape (rows, tokens, heads, size), and None for the weights.
    """
    if dropout or any(others.get(name) is not None for name in _OTHER_SCORES):
        attended: tuple[Any, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **others
        )
        return attended
    rows, heads, tokens, size = query.shape
    query = query * (size**-0.5 if scaling is None else scaling)
    query = query.reshape(rows, key.shape[1], heads // key.shape[1], tokens, size)
    parts = []
    for start in range(0, tokens, BLOCK):
        stop = min(start + BLOCK, tokens)
        end = key.shape[2] - tokens + stop
        hidden = attention_mask[:, :, None, start:stop, :end].logical_not()
        block = query[:, :, :, start:stop]
        scores = torch.matmul(block.flatten(2, 3), key[:, :, :end].transpose(2, 3))
        weights = scores.view(*block.shape[:4], end).masked_fill_(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        parts.append(torch.matmul(weights.view_as(scores), value[:, :, :end]).view(*block.shape[:4], -1))
    sums = torch.cat(parts, dim=3) if len(parts) > 1 else parts[0]
    return sums.flatten(1, 2).transpose(1, 2).contiguous(), None


def build_mask(*sizes: Any, **settings: Any) -> Any:
    """Build the mask of torch's attention, also where that would need none."""
    return sdpa_mask(*sizes, **settings | {"allow_is_causal_skip": False})


@contextmanager
def use_plain_attention(model: Any) -> Iterator[bool]:
    """Let a model on a processor attend in plain products, and yield True.

    Torch's attention stays on a GPU, and for models with layers that do not attend to all earlier tokens.
    """
    own = model.config.get_text_config(decoder=True)._attn_implementation
    if model.device.type != "cpu" or own != "sdpa" or not can_share_prefixes(model):
        yield False
        return
    AttentionInterface.register(NAME, compute_plain_attention)
    AttentionMaskInterface.register(NAME, build_mask)
    model.set_attn_implementation(NAME)
    try:
        yield True
    finally:
        model.set_attn_implementation(own)
