"""Preview of training rows: tokens, loss mask, and checks for content that rendering would lose.

The rendering is TRL's: with `assistant_only_loss` the trainer swaps in a training template whose `{% generation %}`
markers say what is learnt, if the model's template is one that TRL knows to the byte.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson

from trajsmith.export._templates import create_template_environment
from trajsmith.records import InputError, JsonObject, JsonValue, RecordDropped, install_command

_EMPTY_THINK = re.compile(r"<think>\s*</think>")
_ALWAYS = "{{- '<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}"
"""What TRL's training template of Qwen3 writes for every message of the assistant, with or without reasoning."""
_WHERE_GIVEN = (
    "{%- if message.reasoning_content is string or reasoning_content %}"
    "{{- '<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}"
    "{%- endif %}"
    "{{- content.lstrip('\\n') }}"
)
"""The same, for messages that carry reasoning."""


@dataclass(frozen=True)
class MaskedSpan:
    """A run of tokens that are all in the loss, or all not."""

    text: str
    loss: bool


@dataclass(frozen=True)
class MaskedRow:
    """Row with tokens and loss mask as the trainer sees it."""

    id: str
    tokens: int
    trained: int
    """Tokens in the loss."""
    lost: int
    """Tokens of the loss that are cut off at `max_length`."""
    pieces: tuple[MaskedSpan, ...]
    ids: tuple[int, ...] = ()
    """Its tokens."""
    mask: tuple[int, ...] = ()
    """1 for tokens in the loss."""

    @property
    def empty_think_blocks(self) -> int:
        """Empty `<think></think>` blocks in the loss, which some templates write where a message has no reasoning."""
        return sum(len(_EMPTY_THINK.findall(piece.text)) for piece in self.pieces if piece.loss)


def training_template(tokenizer: Any) -> str:
    """Return the template to train with: TRL's, which writes no empty reasoning where a message carries none.

    TRL's template of Qwen3 opens every message with a `<think>` block. Rows without reasoning would train a model to
    write an empty one first, and a thinking model not to think. A model that is meant to write it needs a template of
    its own with `{% generation %}` markers, which is taken as it is.

    Raises:
        InputError: The model's template has no generation markers, and TRL has no training template for it.
    """
    try:
        from trl.chat_template_utils import get_training_chat_template
    except ImportError as error:
        raise InputError(f"the mask preview needs transformers and trl: {install_command('train')}") from error
    template = tokenizer.chat_template
    try:
        own_template = get_training_chat_template(tokenizer)
    except ValueError as error:
        raise InputError(
            "TRL has no training template for this chat template (it compares byte for byte): take the family's "
            "own template unchanged, or one with {% generation %} markers that renders earlier messages the same "
            "whatever follows"
        ) from error
    return str(template) if own_template is None else str(own_template).replace(_ALWAYS, _WHERE_GIVEN)


class MaskPreview:
    """Renders rows with a model's training template and refuses those that training would damage.

    Args:
        tokenizer: A `transformers` tokenizer with a chat template.
        max_length: Length at which the trainer cuts rows; None cuts nothing.

    Raises:
        InputError: There is no training template.
    """

    def __init__(self, tokenizer: Any, max_length: int | None = None) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.template = training_template(tokenizer)

    def inspect_row(self, row: JsonObject, id: str, unlearnt: Sequence[int] = ()) -> MaskedRow:
        """Return tokens and loss mask of one row.

        Args:
            row: Messages, or prompt and completion, with tools.
            id: Its name, for errors.
            unlearnt: Positions of messages that stay context.

        Raises:
            RecordDropped: Training would damage the row; the reason says how.
            InputError: The row is no conversation.
        """
        messages, learnt_from = extract_conversation(row, id)
        tools = read_tools(row.get("tools"), id)
        check_nulls(messages, tools)
        ids, mask = self._tokens(messages, tools)
        whole = self._text(messages, tools)
        if learnt_from:
            start = len(self._ids(messages[:learnt_from], tools, generation=True))
            mask = [0] * start + mask[start:]
        for index in unlearnt:
            start = len(self._ids(messages[:index], tools, generation=True))
            stop = len(self._ids(messages[: index + 1], tools, generation=False))
            mask[start:stop] = [0] * (stop - start)
        if not any(mask):
            raise RecordDropped("nothing_in_loss", "the template marks no token of the row as the assistant's")
        self._check_prefixes(messages, tools, whole, learnt_from)
        check_content_rendered(messages[learnt_from:], whole)
        trained = sum(mask[: self.max_length])
        if not trained:
            raise RecordDropped("truncated_to_nothing", f"{len(ids)} tokens, none in the loss before {self.max_length}")
        pieces = tuple(self._pieces(ids, mask))
        return MaskedRow(id, len(ids), sum(mask), sum(mask) - trained, pieces, tuple(ids), tuple(mask))

    def _tokens(self, messages: list[JsonObject], tools: Any) -> tuple[list[int], list[int]]:
        rendered = self._render(messages, tools, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        return list(rendered["input_ids"]), list(rendered["assistant_masks"])

    def _ids(self, messages: list[JsonObject], tools: Any, generation: bool) -> list[int]:
        rendered = self._render(messages, tools, tokenize=True, return_dict=True, add_generation_prompt=generation)
        return list(rendered["input_ids"])

    def _text(self, messages: list[JsonObject], tools: Any, generation: bool = False) -> str:
        return str(self._render(messages, tools, tokenize=False, add_generation_prompt=generation))

    def _render(self, messages: list[JsonObject], tools: Any, **options: Any) -> Any:
        from jinja2 import TemplateError

        try:
            return self.tokenizer.apply_chat_template(
                messages, tools=tools or None, chat_template=self.template, **options
            )
        except (TemplateError, TypeError, ValueError, KeyError) as error:
            raise RecordDropped("template_fails", f"{type(error).__name__}: {error}") from error

    def _check_prefixes(self, messages: list[JsonObject], tools: Any, whole: str, start: int) -> None:
        """Check that the text before each assistant message is rendered as at inference time."""
        for index, message in enumerate(messages):
            if message["role"] != "assistant" or index < start:
                continue
            asked = self._text(messages[:index], tools, generation=True)
            rendered = self._text(messages[: index + 1], tools)
            if not whole.startswith(asked) or not whole.startswith(rendered):
                raise RecordDropped("template_not_prefix_preserving", f"message {index} changes what stands before it")

    def _pieces(self, ids: Sequence[int], mask: Sequence[int]) -> Iterator[MaskedSpan]:
        for loss, run in groupby(zip(ids, mask, strict=True), key=lambda pair: pair[1]):
            yield MaskedSpan(self.tokenizer.decode([token for token, _ in run], skip_special_tokens=False), bool(loss))


def render_mask_page(model: str, facts: Sequence[tuple[str, str]], rows: Sequence[MaskedRow]) -> str:
    """Render rows as HTML with the trained tokens marked; `facts` are shown above as label and value."""
    text: str = create_template_environment().get_template("mask.html.j2").render(model=model, facts=facts, rows=rows)
    return text


def extract_conversation(row: JsonObject, id: str) -> tuple[list[JsonObject], int]:
    """Messages of a row, and the position of the first that is learnt (0: all of the assistant's).

    Raises:
        InputError: The row has neither `messages` nor `prompt` and `completion`.
    """
    if is_message_list(row.get("messages")):
        return row["messages"], 0
    if is_message_list(row.get("prompt")) and is_message_list(row.get("completion")):
        return [*row["prompt"], *row["completion"]], len(row["prompt"])
    raise InputError(
        f"row {id} is no conversation (columns {', '.join(row)}): the preview reads `messages`, or `prompt` and "
        "`completion`, as trl, prompt_completion, per_turn and per_step have them"
    )


def is_message_list(value: JsonValue) -> bool:
    """Return True if a column holds messages."""
    return isinstance(value, list) and all(isinstance(one, dict) and "role" in one for one in value)


def read_tools(tools: JsonValue, id: str) -> list[JsonObject]:
    """Tools of a row, which TRL takes as a list or as its JSON text.

    Raises:
        InputError: They are something else.
    """
    try:
        read = orjson.loads(tools) if isinstance(tools, str) else tools or []
    except orjson.JSONDecodeError as error:
        raise InputError(f"row {id}: `tools` is no JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(tool, dict) and "function" in tool for tool in read):
        raise InputError(f"row {id}: `tools` is no list of function schemas")
    return read


def check_nulls(messages: list[JsonObject], tools: list[JsonObject]) -> None:
    """Null keys come from Arrow's merging of different rows; a template prints them and the model learns them.

    A null argument is kept where the tool's schema knows the parameter and lets it be null.
    """
    for index, message in enumerate(messages):
        for key, value in message.items():
            if value is None:
                raise RecordDropped("null_key", f"message {index}: {key}")
    properties = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    for name, schema in properties.items():
        if path := _find_null(schema):
            raise RecordDropped("null_key", f"schema of {name}: {path}")
    for index, message in enumerate(messages):
        for call in message.get("tool_calls", ()):
            function = call["function"]
            known = properties.get(function["name"], {}).get("properties") or {}
            for key, value in function["arguments"].items() if isinstance(function["arguments"], dict) else ():
                if value is None and not _nullable(known.get(key)):
                    raise RecordDropped("null_key", f"message {index}: argument {key} of {function['name']}")


LITERAL = frozenset({"default", "const", "enum", "examples", "example"})
"""Keywords of JSON Schema whose value may be null."""


def _find_null(schema: JsonValue) -> str:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in LITERAL:
                continue
            inner = _find_null(value)
            if value is None or inner:
                return f"{key}.{inner}".rstrip(".")
    if isinstance(schema, list):
        return next((path for path in map(_find_null, schema) if path), "")
    return ""


def _nullable(schema: JsonValue) -> bool:
    if not isinstance(schema, dict):
        return False
    if "type" not in schema:
        choices = schema.get("anyOf") or schema.get("oneOf")
        return any(map(_nullable, choices)) if choices else True
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return "null" in types


def check_content_rendered(messages: list[JsonObject], whole: str) -> None:
    """Check that all content of a row occurs in the rendered text."""
    for index, message in enumerate(messages):
        reasoning = message.get("reasoning_content")
        if reasoning and not _is_rendered(reasoning, whole):
            raise RecordDropped("reasoning_dropped", f"message {index}: the template leaves its reasoning out")
        if not _is_rendered(message.get("content", ""), whole):
            raise RecordDropped(
                "content_dropped", f"message {index} ({message['role']}): the template leaves its text out"
            )
        for call in message.get("tool_calls", ()):
            if call["function"]["name"] not in whole:
                raise RecordDropped(
                    "call_dropped", f"message {index}: the template leaves {call['function']['name']} out"
                )


def _is_rendered(text: JsonValue, whole: str) -> bool:
    """Templates trim texts, and some print them as JSON; what is no text (pictures) is not looked for."""
    if not isinstance(text, str):
        return True
    return text.strip() in whole or orjson.dumps(text.strip()).decode()[1:-1] in whole
