"""Attention over a tree of rows in one sequence: rows that begin alike compute their beginning once.

A prefix is followed by its branches, one behind the other, and the positions of each branch go on where the prefix
ends. So the positions say what a token may see: at every lower position the latest token before it. Nothing of
another branch is among them. The attention is a function of Transformers' `AttentionInterface`, in plain matrix
products; torch's own attention is slower on processors, with a mask still more so. Torch is imported on first use.
"""

from typing import Any

from trajsmith.models.prefix_cache import can_share_prefixes
from trajsmith.records import InputError
from trajsmith.train_sft.tree_segments import find_segments

NAME = "trajsmith_tree"
"""Under which Transformers knows it."""
TOLERANCE = 1e-3
"""Largest difference of hidden states between a tree and separate rows, relative to the largest of them."""


def compute_tree_attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_ids: Any = None,
    **_: Any,
) -> tuple[Any, None]:
    """Attend along the branches of one sequence; the form is that of Transformers' attention functions.

    Args:
        module: Attention layer.
        query: Shape (1, heads, tokens, size).
        key: Shape (1, key heads, tokens, size).
        value: As `key`.
        attention_mask: Must be None: the positions say what is seen.
        dropout: Must be 0.
        scaling: Factor of the scores; None is the usual one.
        position_ids: Shape (1, tokens).

    Returns:
        Shape (1, tokens, heads, size), and None for the weights.

    Raises:
        ValueError: More than one sequence, a mask, dropout, or no positions.
    """
    import torch

    from trajsmith.train_sft.tree_function import TreeAttention

    if query.shape[0] != 1 or attention_mask is not None or dropout or position_ids is None:
        raise ValueError("attention over a tree takes one sequence with its positions, without mask and dropout")
    if torch.is_autocast_enabled(query.device.type):
        kind = torch.get_autocast_dtype(query.device.type)
        query, key, value = query.to(kind), key.to(kind), value.to(kind)
    segments = find_segments(position_ids[0].tolist())
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    groups = query.shape[1] // key.shape[1]
    seen = query[0].reshape(key.shape[1], groups, *query.shape[2:]) * scale
    attended = TreeAttention.apply(seen, key[0], value[0], segments)
    return attended.reshape(query.shape[1], query.shape[2], value.shape[-1]).transpose(0, 1)[None].contiguous(), None


def use_tree_attention(model: Any, name: str) -> None:
    """Let a model attend along the branches of a tree, after it was seen to compute what separate rows give.

    Args:
        model: Causal language model.
        name: For errors.

    Raises:
        InputError: It cannot: layers that see only near tokens, dropout, positions that it does not take, other values.
    """
    import torch
    from transformers import AttentionInterface

    advice = "leave share_prefix out"
    if not can_share_prefixes(model):
        raise InputError(f"{name}: share_prefix needs layers that attend to all earlier tokens; {advice}")
    if getattr(model.config.get_text_config(), "attention_dropout", 0.0):
        raise InputError(f"{name}: share_prefix cannot draw attention_dropout; set it to 0 in the model, or {advice}")
    head, tails = list(range(1, 8)), ([8, 9, 10], [11, 12, 13, 14])
    training = model.training
    model.eval()
    with torch.no_grad():
        apart = [model(torch.tensor([[*head, *tail]]), output_hidden_states=True).hidden_states[-1] for tail in tails]
        AttentionInterface.register(NAME, compute_tree_attention)
        try:
            model.set_attn_implementation(NAME)
            positions = [*range(10), *range(7, 11)]
            together = model(
                torch.tensor([[*head, *tails[0], *tails[1]]]),
                position_ids=torch.tensor([positions]),
                use_cache=False,
                output_hidden_states=True,
            ).hidden_states[-1]
        except (ValueError, TypeError, RuntimeError) as error:
            raise InputError(f"{name}: share_prefix does not work ({str(error).splitlines()[0]}); {advice}") from error
    model.train(training)
    expected = torch.cat([apart[0], apart[1][:, len(head) :]], dim=1)
    difference = (together - expected).abs().max() / expected.abs().max().clamp(min=1e-9)
    if not difference < TOLERANCE:
        raise InputError(f"{name}: share_prefix changes what the model computes (by {float(difference):.2g}); {advice}")
