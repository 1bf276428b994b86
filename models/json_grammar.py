"""Replies of a model in this process that follow JSON Schemas token by token (package `llguidance`).

Torch and llguidance are imported on first use.
"""

import logging
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import Any

import orjson

from trajsmith.records import InputError, JsonObject, JsonValue, to_one_line

_log = logging.getLogger(__name__)
OPENS, CLOSES = "<tool_call>", "</tool_call>"
"""Around a tool call."""
THINKS = ("<think>", "</think>")
"""Around reasoning."""


def has_grammars() -> bool:
    """Return True if the package is installed."""
    return find_spec("llguidance") is not None


class ReplyGrammars:
    """Grammars of replies over the tokens of one model: JSON by a schema, or text with tool calls by theirs.

    Args:
        tokenizer: Its tokenizer; only fast ones can be used.
        vocabulary: Number of tokens for which the model gives logits.
    """

    def __init__(self, tokenizer: Any, vocabulary: int) -> None:
        from llguidance.hf import from_tokenizer

        self._tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary)
        self._end = tokenizer.eos_token_id
        self._matchers: dict[str, Any] = {}
        self._call_grammars: dict[bytes, str] = {}
        self.tags = frozenset({OPENS, CLOSES, *THINKS} & tokenizer.get_added_vocab().keys())
        """Tags that are tokens of their own."""

    def write_json_grammar(self, schema: JsonObject) -> str:
        """Write the grammar of a reply that is JSON by a schema.

        Raises:
            InputError: No grammar can be made of it.
        """
        grammar = write_json_grammar(schema)
        try:
            self._open(grammar)
        except ValueError as error:
            raise InputError(f"the schema of a reply cannot be followed token by token: {error}") from error
        return grammar

    def write_call_grammar(self, tools: Sequence[JsonObject]) -> str:
        """Write the grammar of a message; what no grammar can be made of is left free, with a warning."""
        key = orjson.dumps(tools)
        if key not in self._call_grammars:
            grammar = write_call_grammar(tools, self.tags)
            if self._find_fault(tools):
                grammar = write_call_grammar([self._loosen(tool) for tool in tools], self.tags)
            self._call_grammars[key] = grammar
        return self._call_grammars[key]

    def _find_fault(self, tools: Sequence[JsonObject]) -> str:
        """Return why no grammar can be made of the schemas of some tools, or nothing."""
        try:
            self._open(write_call_grammar(tools, self.tags))
        except ValueError as error:
            return str(error)
        return ""

    def _loosen(self, tool: JsonObject) -> JsonObject:
        """Return a tool of which a grammar can be made: arguments that prevent it may be anything."""
        reason = self._find_fault([tool])
        if not reason:
            return tool
        function, schema = tool["function"], tool["function"]["parameters"]

        def build(properties: JsonObject, required: Sequence[str]) -> JsonObject:
            parameters = {**schema, "properties": properties, "required": list(required)}
            return {**tool, "function": {**function, "parameters": parameters}}

        properties = {
            name: {} if self._find_fault([build({name: one}, [name])]) else one
            for name, one in (schema.get("properties") or {}).items()
        }
        loose = build(properties, [name for name in schema.get("required") or () if name in properties])
        if self._find_fault([loose]):
            loose = {**tool, "function": {**function, "parameters": {"type": "object", "additionalProperties": True}}}
        _log.warning("%s: calls do not follow all of its schema: %s", function["name"], reason)
        return loose

    def build_processor(self, grammars: Sequence[str | None]) -> "GrammarProcessor":
        """Build the processor of one batch.

        Args:
            grammars: Grammar of each row, or None for free text.
        """
        matchers = [None if grammar is None else self._open(grammar) for grammar in grammars]
        return GrammarProcessor(matchers, self._end)

    def _open(self, grammar: str) -> Any:
        """Return a matcher at the beginning of a reply; compiled once for each grammar.

        Raises:
            ValueError: A schema has keywords of which no grammar can be made.
        """
        from llguidance import LLMatcher

        if grammar not in self._matchers:
            matcher = LLMatcher(self._tokenizer, grammar)
            if matcher.is_error():
                raise ValueError(to_one_line(matcher.get_error(), 200))
            self._matchers[grammar] = matcher
        return self._matchers[grammar].deep_copy()


def write_json_grammar(schema: JsonObject) -> str:
    """Write the grammar of a reply that is JSON by a schema."""
    from llguidance import LLMatcher

    compact: Any = {"whitespace_flexible": False}  # a weak model would fill a reply with line breaks
    grammar: str = LLMatcher.grammar_from_json_schema(orjson.dumps(schema).decode(), overrides=compact)
    return grammar


def write_call_grammar(tools: Sequence[JsonObject], tags: Collection[str]) -> str:
    """Write the grammar of a message: free text, reasoning, and calls of these tools with arguments by their schemas.

    A call has a name that is shown, all required arguments in the order of the schema, and values of their types and
    choices; arguments that the schema does not know only where it says so. Keywords of which no grammar can be made
    are left out.

    Args:
        tools: Tools as they are shown to a model, at least one.
        tags: Tags around calls and reasoning that are tokens of their own, as in models of the Qwen family: text holds
            no token of its own that the grammar does not name.
    """
    style = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
    end = quote_json("}\n")
    opens, closes = f"text {OPENS} ", f"{end} {CLOSES}"
    names = " | ".join(f"call_{number}" for number in range(len(tools)))
    pieces = " | ".join(("TEXT", *(tag for tag in THINKS if tag in tags)))
    rules = ["%llguidance {}", f"start: ({names})* text", f"text: ({pieces})*", "TEXT: /(.|\\n)+/"]
    if OPENS not in tags:
        opens, closes = "text lead ", quote_json(f"}}\n{CLOSES}")
        rules.append(f"lead[lazy]: TEXT? {quote_json(OPENS)}")
    for number, tool in enumerate(tools):
        function = tool["function"]
        schema = {"type": "object", "additionalProperties": False} | (function.get("parameters") or {})
        start = quote_json(f'\n{{"name": {quote_json(function["name"])}, "arguments": ')
        rules.append(f"call_{number}: {opens}{start} %json {quote_json(schema | {'x-guidance': style})} {closes}")
    return "\n".join(rules)


def quote_json(value: JsonValue) -> str:
    """Return a value as JSON text."""
    return orjson.dumps(value).decode()


def check_call_format(tokenizer: Any, name: str) -> None:
    """Check that a model writes tool calls as `write_call_grammar` has them.

    Raises:
        InputError: Its chat template writes them otherwise.
    """
    call = {"type": "function", "function": {"name": "look_up", "arguments": {"word": "a", "times": 2}}}
    rows = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    text = tokenizer.apply_chat_template(rows, tokenize=False)
    expected = f'{OPENS}\n{{"name": "look_up", "arguments": {{"word": "a", "times": 2}}}}\n{CLOSES}'
    if expected not in text:
        raise InputError(
            f"{name}: constrained: true is for models that write calls as JSON between {OPENS} and {CLOSES}, as those "
            "of the Qwen family do; leave it out"
        )


class GrammarProcessor:
    """Logits processor of `generate`: leaves to each row the tokens with which its reply can go on, then its end."""

    def __init__(self, matchers: Sequence[Any], end: int) -> None:
        self._matchers = matchers
        self._end = end
        self._begun = False
        """The first token of the replies was drawn."""

    def select_rows(self, rows: Sequence[int]) -> None:
        """Go on with some of the rows only."""
        self._matchers = [self._matchers[row] for row in rows]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores with all other tokens at minus infinity; shape (rows, vocabulary)."""
        import numpy as np
        import torch

        allowed = np.ones(scores.shape, dtype=bool)
        drawn = input_ids[:, -1].tolist()
        for row, matcher in enumerate(self._matchers):
            if matcher is None:
                continue
            if self._begun and not matcher.is_stopped():
                matcher.consume_token(drawn[row])
            allowed[row] = False
            if matcher.is_stopped():
                allowed[row, self._end] = True
                continue
            bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
            known = bits[: scores.shape[1]]
            allowed[row, : len(known)] = known
        scores.masked_fill_(~torch.from_numpy(allowed).to(scores.device), float("-inf"))
        self._begun = True
        return scores
