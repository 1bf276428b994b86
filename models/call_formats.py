"""Tool calls in the text of a model in this process: one format for each way in which families write them.

The format is that of the model's own chat template. Servers of models know these formats themselves.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from trajsmith.models.model import MalformedCall
from trajsmith.models.serialization import parse_tool_call
from trajsmith.records import JsonObject, ToolCall

NamedArguments: TypeAlias = tuple[Any, Any]
"""Name and arguments of a call as they were written; what is no text and no object is malformed."""
ARGUMENT_KEYS = ("arguments", "parameters")

_THINKING = re.compile(r"\A\s*+(?:<think>)?(.*?)</think>\s*", re.DOTALL)
_MISTRAL_CALL = re.compile(r"([^\s\[{]+)(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*(\{.*)", re.DOTALL)
_SEMICOLON = re.compile(r"\s*+;\s*+")
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
"""Says where a value ends; orjson reads it."""
_DEEPSEEK_MARK = "<｜tool▁sep｜>"


@dataclass(frozen=True)
class CallFormat:
    """One way of writing tool calls."""

    name: str
    marks: tuple[str, ...]
    """Texts in a chat template that has calls written so."""
    opening: re.Pattern[str]
    closing: re.Pattern[str]
    """What stands before and behind calls in a message; calls that were cut off have no closing."""
    read: Callable[[str], list[NamedArguments]]
    """Reads the calls between them, none if it is text. Raises ValueError where they are wrong."""
    value: re.Pattern[str] | None = None
    """What stands between the opening and a JSON value, which may have marks in its texts."""
    untyped: bool = False
    """Arguments are texts whose types only the tools' schemas tell."""


def _read_json_call(text: str) -> list[NamedArguments]:
    return [_split_object(orjson.loads(text))]


def _read_json_list(text: str) -> list[NamedArguments]:
    """Read calls of Mistral: a list of objects, or a name with its arguments behind it."""
    if text.startswith("["):
        calls = [_split_object(row) for row in orjson.loads(text)]
        if not calls:
            raise ValueError("the list is empty")
        return calls
    match = _MISTRAL_CALL.fullmatch(text)
    if match is None:
        raise ValueError("there is no name with arguments")
    return [(match[1], match[2])]


def _read_json_sequence(text: str) -> list[NamedArguments]:
    """Read calls of Llama: objects with semicolons between them. Without arguments, they are an answer in JSON."""
    calls = []
    at: int | None = 0
    while at is not None:
        end = _find_json_end(text, at)
        calls.append(_split_object(orjson.loads(text[at:end])))
        between = _SEMICOLON.match(text, end) if end is not None else None
        if end is not None and end < len(text) and between is None:
            raise ValueError("there is text behind a call")
        at = between.end() if between else None
    return calls if any(arguments is not None for _, arguments in calls) else []


def _find_json_end(text: str, start: int) -> int | None:
    """Find where a JSON value ends; None if it is not whole."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _read_function(text: str) -> list[NamedArguments]:
    """Read a call of Qwen3-Coder: one function with its parameters and nothing else."""
    opening, end = "<function=", "</function>"
    if not (text.startswith(opening) and text.endswith(end)) or text.count(opening) > 1:
        raise ValueError("it is not one whole <function=...>")
    head, *parts = text.removeprefix(opening).removesuffix(end).split("<parameter=")
    name, named, between = head.partition(">")
    if not named or between.strip():
        raise ValueError("there is text outside of parameters")
    pairs = []
    for part in parts:
        key, named, rest = part.partition(">")
        value, closed, behind = rest.partition("</parameter>")
        if not (named and closed) or behind.strip():
            raise ValueError("a parameter is not whole")
        pairs.append((key, value.removeprefix("\n").removesuffix("\n")))
    return [(name.strip(), _join_pairs(pairs))]


def _read_keys_and_values(text: str) -> list[NamedArguments]:
    """Read a call of GLM: a name, then keys and values in turn."""
    name, *parts = text.split("<arg_key>")
    pairs = []
    for part in parts:
        key, named, rest = part.partition("</arg_key>")
        between, opened, rest = rest.partition("<arg_value>")
        value, closed, behind = rest.partition("</arg_value>")
        if not (named and opened and closed) or between.strip() or behind.strip():
            raise ValueError("an argument is not whole")
        pairs.append((key, value))
    return [(name.strip(), _join_pairs(pairs))]


def _join_pairs(pairs: list[tuple[str, str]]) -> dict[str, str]:
    arguments = dict(pairs)
    if len(arguments) < len(pairs):
        raise ValueError("an argument stands there twice")
    return arguments


def _read_deepseek(text: str) -> list[NamedArguments]:
    """Read a call of DeepSeek: a name with its arguments behind it, before V3.1 in a block of code after "function"."""
    name, mark, rest = text.partition(_DEEPSEEK_MARK)
    if not mark:
        raise ValueError("there is no name with arguments")
    if name in ("", "function"):
        name, mark, rest = rest.partition("```json")
        rest, end, _ = rest.rpartition("```")
        if not mark or not end:
            raise ValueError("the arguments are no whole block of code")
    return [(name.strip(), rest if rest.strip() else None)]


def _split_object(row: Any) -> NamedArguments:
    if not isinstance(row, dict):
        raise ValueError("it is no object")
    key = next((key for key in ARGUMENT_KEYS if key in row), None)
    return row.get("name"), None if key is None else {} if row[key] in (None, "") else row[key]


_TAGGED = re.compile("<tool_call>"), re.compile("</tool_call>")
FORMATS = (
    CallFormat("glm", ("<arg_key>",), *_TAGGED, _read_keys_and_values, untyped=True),
    CallFormat("qwen3_coder", ("<function=",), *_TAGGED, _read_function, untyped=True),
    CallFormat(
        "deepseek",
        ("<｜tool▁call▁begin｜>",),
        re.compile(r"(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>"),
        re.compile(r"<｜tool▁call▁end｜>(?:\s*<｜tool▁calls▁end｜>)?"),
        _read_deepseek,
    ),
    CallFormat(
        "mistral",
        ("[TOOL_CALLS]",),
        re.compile(r"\[TOOL_CALLS\]"),
        re.compile(r"(?=\[TOOL_CALLS\])"),
        _read_json_list,
        re.compile(r"\s*+(?:[^\s\[{]++(?:\[CALL_ID\][^\[{]*+)?(?:\[ARGS\])?\s*+)?"),
    ),
    CallFormat("hermes", ("<tool_call>",), *_TAGGED, _read_json_call, re.compile(r"\s*+")),
    CallFormat(
        "llama3_json",
        ("<|start_header_id|>", '"parameters"'),
        re.compile(r'\A\s*+(?:<\|python_tag\|>\s*+)?(?=\{\s*+"name"\s*+:)'),
        re.compile(r"\Z"),
        _read_json_sequence,
    ),
)
"""All formats; a chat template has the first whose marks stand in it."""


def find_call_format(chat_template: str) -> CallFormat | None:
    """Return the format in which a chat template has calls written; None if it is not known here."""
    return next((one for one in FORMATS if all(mark in chat_template for mark in one.marks)), None)


def split_reasoning(text: str) -> tuple[str, str]:
    """Reasoning and the rest. The opening mark often stands in the prompt already, so that only the end is written."""
    match = _THINKING.match(text)
    return (match.group(1).strip(), text[match.end() :]) if match else ("", text)


def split_calls(
    text: str, form: CallFormat, tools: Sequence[JsonObject], prefix: str = "call"
) -> tuple[str, list[ToolCall], list[MalformedCall]]:
    """Split a message into its text, its calls and those that cannot be read, such as one that was cut off.

    Args:
        tools: The tools that were shown; their schemas say what type an argument has that is written without one.
        prefix: Beginning of the ids of the calls.
    """
    calls: list[ToolCall] = []
    malformed: list[MalformedCall] = []
    texts: list[str] = []
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    at = 0
    for start, end, written in _find_regions(text, form):
        read = list(_read_region(written, form))
        texts.append(text[at : start if read else end])
        at = end
        for name, arguments, error in read:
            identity = f"{prefix}_{len(calls) + len(malformed)}"
            if error:
                malformed.append(MalformedCall(id=identity, name="", text=written, error=error))
                continue
            if form.untyped:
                properties = schemas.get(name, {}).get("properties") or {}
                arguments = {key: _cast(value, properties.get(key)) for key, value in arguments.items()}
            call = parse_tool_call(identity, name, arguments)
            if isinstance(call, ToolCall):
                calls.append(call)
            else:
                malformed.append(call)
    return "".join((*texts, text[at:])).strip(), calls, malformed


def _find_regions(text: str, form: CallFormat) -> Iterator[tuple[int, int, str]]:
    """Yield beginning and end of what holds calls, and what stands between the marks."""
    at = 0
    while opening := form.opening.search(text, at):
        start = opening.end()
        value = form.value.match(text, start) if form.value else None
        closing = form.closing.search(text, (value and _find_json_end(text, value.end())) or start)
        end, at = closing.span() if closing else (len(text), len(text))
        yield opening.start(), at, text[start:end].strip()


def _read_region(written: str, form: CallFormat) -> Iterator[tuple[Any, Any, str]]:
    """Yield name, arguments and fault of each call."""
    try:
        calls = form.read(written)
    except orjson.JSONDecodeError as error:
        yield None, None, f"the call is no JSON: {error}"
    except ValueError as error:
        yield None, None, f"the call cannot be read: {error}"
    else:
        for name, arguments in calls:
            if isinstance(name, str) and len(name.split()) > 1:
                yield None, None, "the call names no tool: a name is one word"
            elif arguments is None:
                yield None, None, "the call has no arguments"
            else:
                yield name, arguments, ""


def _cast(text: str, schema: Any) -> Any:
    """Return an argument in the type of its schema; a text stays as it is."""
    types = _list_types(schema)
    if text == "null" and "null" in types:
        return None
    if not types or "string" in types:
        return text
    try:
        return orjson.loads(text.lower() if text in ("True", "False") else text)
    except orjson.JSONDecodeError:
        return text


def _list_types(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type")
    types = {named} if isinstance(named, str) else set(named) if isinstance(named, list) else set()
    return types.union(*(_list_types(one) for key in ("anyOf", "oneOf") for one in schema.get(key) or ()))
