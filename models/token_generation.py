"""Batched generation from token ids, with the states of prompts kept: what begins alike is computed once."""

from collections.abc import Sequence
from copy import copy
from inspect import signature
from typing import Any

from trajsmith.models.prefix_cache import (
    MIN_SHARED,
    CachedSequence,
    Match,
    PrefixCache,
    PreparedBatch,
    can_share_prefixes,
    extract_sequences,
    find_common_stems,
    prepare_batch,
    select_rows,
)
from trajsmith.records import JsonObject

PREFIX_BYTES = 1 << 30
"""Memory for the states of prompts: 45 prompts of 1,000 tokens for a model of 135 million parameters in bfloat16."""
SEGMENT = 16
"""Tokens after which rows that are over leave a batch."""

_FROM_PROMPT = (
    "stop_strings", "min_new_tokens", "begin_suppress_tokens", "forced_eos_token_id", "forced_bos_token_id",
    "exponential_decay_length_penalty", "max_time",
)  # fmt: skip
"""Settings of `generate` that count from the prompt, or say nothing in the tokens where a row ends."""


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
        self._ends = frozenset((*self.end_tokens, pad_token))
        self._splits = can_share_prefixes(model) and hasattr(model.config.get_text_config(), "num_hidden_layers")
        self.prefixes = PrefixCache(prefix_bytes) if prefix_bytes and self._splits else None
        base = model.get_base_model() if hasattr(model, "get_base_model") else model  # of adapters
        # Older versions of Transformers have the second name only, and newer ones warn of it.
        self._cache = "cache" if "cache" in signature(base.forward).parameters else "past_key_values"
        self.reused_tokens = 0
        """Tokens of prompts that were not computed, since their states were known."""
        self.computed_tokens = 0
        """Tokens of prompts that were computed."""

    def generate(self, prompts: Sequence[list[int]], arguments: JsonObject) -> list[list[int]]:
        """Return the continuation of each prompt, cut after its end token.

        Rows that are over leave the batch every few tokens: else all would be computed as long as the longest.

        Args:
            prompts: Token ids.
            arguments: Arguments of Transformers' `generate`, with `return_dict_in_generate`, `use_cache` and a limit of
                new tokens, itself or in a `generation_config`; logits processors have `select_rows`.
        """
        import torch

        from trajsmith.models.plain_attention import use_plain_attention

        with torch.no_grad(), use_plain_attention(self.model) as plain:
            matches = self._find_prefixes(prompts)
            batch = prepare_batch(matches, prompts, self.pad_token, self.model.device)
            return self._write(batch, prompts, arguments, plain)

    def _find_prefixes(self, prompts: Sequence[list[int]]) -> list[Match]:
        """Return what is known of each prompt; on a processor the rest is computed now, prompt by prompt.

        A processor gains nothing from prompts side by side, and computes the padding of the shorter ones.
        """
        matches = list[Match]()
        if self.prefixes is None:
            self.computed_tokens += sum(map(len, prompts))
            return [(None, 0)] * len(prompts)
        apart = self.model.device.type == "cpu"
        if not apart:
            self._compute_stems(self.prefixes, prompts)
        for prompt in prompts:
            known, length = self.prefixes.find_longest_prefix(prompt)
            self.reused_tokens += length
            self.computed_tokens += len(prompt) - length
            if apart and len(prompt) - 1 - length >= MIN_SHARED:
                known, length = self._compute(prompt[:-1], known, length), len(prompt) - 1
                self.prefixes.add(known)
            matches.append((known, length))
        return matches

    def _compute(self, tokens: Sequence[int], known: CachedSequence | None, length: int) -> CachedSequence:
        """Compute the states of tokens, of which some are known."""
        import torch

        from trajsmith.models.growing_cache import build_cache

        states = [] if known is None else known.layers
        layers = [(keys[None, :, :length], values[None, :, :length]) for keys, values in states]
        past = build_cache(layers, self.model.config.get_text_config(decoder=True).num_hidden_layers)
        ids = torch.tensor([tokens[length:]], device=self.model.device)
        self.model(input_ids=ids, **{self._cache: past}, use_cache=True, logits_to_keep=1)
        return CachedSequence(tuple(tokens), [(layer.keys[0], layer.values[0]) for layer in past.layers])

    def _write(
        self, batch: PreparedBatch, prompts: Sequence[list[int]], arguments: JsonObject, plain: bool
    ) -> list[list[int]]:
        """Write on until every row has ended or is as long as it may be."""
        from trajsmith.models.growing_cache import build_cache

        ids, mask, past = batch.input_ids, batch.attention_mask, batch.past_key_values
        if past is None and self._splits:
            past = build_cache((), self.model.config.get_text_config(decoder=True).num_hidden_layers)
        for layer in past.layers if self._splits else ():
            layer.shows_room = plain
        replies, active, left = [list[int]() for _ in prompts], list(range(len(prompts))), _read_limit(arguments)
        splits = self._splits and not any(_read_setting(self.model, arguments, name) for name in _FROM_PROMPT)
        end = _read_setting(self.model, arguments, "eos_token_id")
        stops = self._ends | {*([end] if isinstance(end, int) else end or ())}
        while active:
            size = min(left, SEGMENT) if splits else left
            known = {} if past is None else {self._cache: past}
            limited = _set_limit(arguments, size)
            generated = self.model.generate(input_ids=ids, attention_mask=mask, **known, **limited)
            past, left = getattr(generated, self._cache), left - size
            rows = generated.sequences[:, ids.shape[1] :].tolist()
            over = dict[int, list[int]]()
            for place, (number, row) in enumerate(zip(active, rows, strict=True)):
                drawn = self._cut_after_end(row)
                replies[number] += drawn
                if left <= 0 or len(row) < size or drawn[-1] in stops:
                    computed = replies[number] if len(drawn) < len(row) else replies[number][:-1]
                    over[place] = [*prompts[number], *computed]
            if self.prefixes is not None:
                for sequence in extract_sequences(past, mask, over):
                    self.prefixes.add(sequence)
            going = [place for place in range(len(active)) if place not in over]
            active = [active[place] for place in going]
            if active:
                ids, mask = self._select(generated.sequences, mask, past, going, arguments)
        return replies

    def _select(self, ids: Any, mask: Any, past: Any, going: Sequence[int], arguments: JsonObject) -> tuple[Any, Any]:
        """Return tokens and mask of the rows that go on, without the places that none of them uses."""
        import torch

        mask = torch.cat([mask, mask.new_ones(len(ids), ids.shape[1] - mask.shape[1])], dim=1)
        if len(going) == len(ids):
            return ids, mask
        rows = torch.tensor(going, device=ids.device)
        ids, mask = ids.index_select(0, rows), mask.index_select(0, rows)
        columns = mask.any(0).nonzero().squeeze(1)
        select_rows(past, rows, columns[:-1])
        for processor in arguments.get("logits_processor", ()):
            processor.select_rows(going)
        return ids.index_select(1, columns), mask.index_select(1, columns)

    def _compute_stems(self, prefixes: PrefixCache, prompts: Sequence[list[int]]) -> None:
        """Compute once what several new prompts begin with."""
        unknown = [prompt for prompt in prompts if prefixes.find_longest_prefix(prompt)[0] is None]
        for stem in find_common_stems(unknown):
            prefixes.add(self._compute(stem, None, 0))
            self.computed_tokens += len(stem)

    def _cut_after_end(self, row: list[int]) -> list[int]:
        stop = next((index for index, token in enumerate(row) if token in self._ends), None)
        return row if stop is None else row[: stop + 1]


def _read_setting(model: Any, arguments: JsonObject, name: str) -> Any:
    """Return a setting of `generate`, where nothing names it that of the model."""
    config = arguments.get("generation_config") or model.generation_config
    return arguments.get(name, getattr(config, name, None))


def _read_limit(arguments: JsonObject) -> int:
    """Return how many tokens a reply may have."""
    config = arguments.get("generation_config")
    return int(arguments["max_new_tokens"] if config is None else config.max_new_tokens)


def _set_limit(arguments: JsonObject, limit: int) -> JsonObject:
    """Return arguments of `generate` with another number of new tokens."""
    if "generation_config" not in arguments:
        return arguments | {"max_new_tokens": limit}
    config = copy(arguments["generation_config"])
    config.update(max_new_tokens=limit)
    return arguments | {"generation_config": config}
