"""Batched generation from token ids, with the states of prompts kept: what begins alike is computed once."""

from collections.abc import Sequence
from typing import Any

from trajsmith.models.prefix_cache import (
    PrefixCache,
    can_share_prefixes,
    extract_sequences,
    find_common_stems,
    prepare_batch,
)
from trajsmith.records import JsonObject

PREFIX_BYTES = 1 << 30
"""Memory for the states of prompts: 45 prompts of 1,000 tokens for a model of 135 million parameters in bfloat16."""


class TokenGenerator:
    """Generates continuations of token ids with a causal language model of Transformers.

    Args:
        model: The model; it is used as it is, so set `eval` before.
        end_tokens: Tokens that end a continuation.
        pad_token: Token that pads.
        prefix_bytes: Memory for the states of prompts; 0 keeps none.
    """

    def __init__(self, model: Any, end_tokens: Sequence[int], pad_token: int, prefix_bytes: int = PREFIX_BYTES) -> None:
        self.model = model
        self.end_tokens = tuple(end_tokens)
        self.pad_token = pad_token
        self.prefixes = PrefixCache(prefix_bytes) if prefix_bytes and can_share_prefixes(model) else None
        self.reused_tokens = 0
        """Tokens of prompts that were not computed, since their states were known."""
        self.computed_tokens = 0
        """Tokens of prompts that were computed."""

    def generate(self, prompts: Sequence[list[int]], arguments: JsonObject) -> list[list[int]]:
        """Return the continuation of each prompt, cut after its end token.

        Args:
            prompts: Token ids.
            arguments: Arguments of Transformers' `generate`, with `return_dict_in_generate`.
        """
        import torch

        with torch.no_grad():
            if self.prefixes is not None:
                self._compute_stems(self.prefixes, prompts)
            batch = prepare_batch(self.prefixes or PrefixCache(0), prompts, self.pad_token, self.model.device)
            past = {} if batch.past_key_values is None else {"past_key_values": batch.past_key_values}
            generated = self.model.generate(
                input_ids=batch.input_ids,
                attention_mask=batch.attention_mask,
                **past,
                **arguments,
            )
        self.reused_tokens += batch.reused
        self.computed_tokens += sum(map(len, prompts)) - batch.reused
        rows = generated.sequences[:, batch.input_ids.shape[1] :].tolist()
        replies = [self._cut_after_end(row) for row in rows]
        if self.prefixes is not None:
            computed = [
                [*prompt, *reply[: len(row) - 1]] for prompt, reply, row in zip(prompts, replies, rows, strict=True)
            ]
            for sequence in extract_sequences(generated.past_key_values, batch.attention_mask, computed):
                self.prefixes.add(sequence)
        return replies

    def _compute_stems(self, prefixes: PrefixCache, prompts: Sequence[list[int]]) -> None:
        """Compute once what several new prompts begin with."""
        import torch

        unknown = [prompt for prompt in prompts if prefixes.find_longest_prefix(prompt)[0] is None]
        for stem in find_common_stems(unknown):
            ids = torch.tensor([stem], device=self.model.device)
            computed = self.model(input_ids=ids, use_cache=True, logits_to_keep=1)
            (sequence,) = extract_sequences(computed.past_key_values, torch.ones_like(ids), [stem])
            prefixes.add(sequence)
            self.computed_tokens += len(stem)

    def _cut_after_end(self, row: list[int]) -> list[int]:
        ends = (*self.end_tokens, self.pad_token)
        stop = next((index for index, token in enumerate(row) if token in ends), None)
        return row if stop is None else row[: stop + 1]
