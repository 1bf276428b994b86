"""Replies of a model in this process that follow a JSON Schema token by token (package `llguidance`).

Torch and llguidance are imported on first use.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import orjson

from trajsmith.records import JsonObject


def has_grammars() -> bool:
    """Return True if the package is installed."""
    return find_spec("llguidance") is not None


class JsonGrammars:
    """Grammars of JSON Schemas over the tokens of one model.

    Args:
        tokenizer: Its tokenizer; only fast ones can be used.
        vocabulary: Number of tokens for which the model gives logits.
    """

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        from llguidance.hf import from_tokenizer

        self._tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary)
        self._end = tokenizer.eos_token_id
        self._matchers: dict[bytes, Any] = {}

    def build_processor(self, schemas: Sequence[JsonObject | None]) -> "GrammarProcessor":
        """Build the processor of one batch.

        Args:
            schemas: Schema of each row, or None for free text.
        """
        matchers = [None if schema is None else self._open(schema) for schema in schemas]
        return GrammarProcessor(matchers, self._end)

    def _open(self, schema: JsonObject) -> Any:
        """Return a matcher at the beginning of a reply; compiled once for each schema.

        Raises:
            ValueError: The schema has keywords of which no grammar can be made.
        """
        from llguidance import LLMatcher

        text = orjson.dumps(schema)
        if text not in self._matchers:
            compact: Any = {"whitespace_flexible": False}  # a weak model would fill a reply with line breaks
            grammar = LLMatcher.grammar_from_json_schema(text.decode(), overrides=compact)
            matcher = LLMatcher(self._tokenizer, grammar)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            self._matchers[text] = matcher
        return self._matchers[text].deep_copy()


class GrammarProcessor:
    """Logits processor of `generate`: leaves to each row the tokens with which its reply can go on, then its end."""

    def __init__(self, matchers: Sequence[Any], end: int) -> None:
        self._matchers = matchers
        self._end = end
        self._begun = False
        """The first token of the replies was drawn."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores with all other tokens at minus infinity; shape (rows, vocabulary)."""
        import numpy as np
        import torch

        for row, matcher in enumerate(self._matchers):
            if matcher is None:
                continue
            if self._begun and not matcher.is_stopped():
                matcher.consume_token(int(input_ids[row, -1]))
            if matcher.is_stopped():
                end_score = scores[row, self._end].clone()
                scores[row] = float("-inf")
                scores[row, self._end] = end_score
                continue
            bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
            allowed = torch.from_numpy(bits[: scores.shape[1]].astype(bool)).to(scores.device)
            scores[row, : allowed.shape[0]].masked_fill_(~allowed, float("-inf"))
            scores[row, allowed.shape[0] :] = float("-inf")
        self._begun = True
        return scores
