"""How tools are shown to models: their whole schemas, or a compact form for short prompts.

A model must see in evaluation what it saw in training, so there is this one function. The name of the form is noted
beside a checkpoint (`models.checkpoint_info`), and evaluation takes it from there.
"""

import re
from collections.abc import Iterable
from typing import Literal

from trajsmith.records.canonical import JsonObject, JsonValue

ToolStyle = Literal["full", "compact"]
"""`full`: the schema as the environment gives it. `compact`: without what a caller seldom needs."""

LEFT_OUT = frozenset({"title", "examples", "example", "$schema", "$comment", "minLength", "maxLength", "minItems"})
"""Keywords that `compact` leaves out: values to call with come from the conversation, and refusals tell the rest."""
OBVIOUS_DEFAULTS: tuple[JsonValue, ...] = (None, False, 0, "", [], {})
TOOL_CHARACTERS, PARAMETER_CHARACTERS = 200, 100
"""Length at which descriptions end with the sentence that fits; the first one stays whole."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`'\"(])")


def render_tools(tools: Iterable[JsonObject], style: ToolStyle) -> list[JsonObject]:
    """Render OpenAI functions in a style; rendering twice changes nothing more, and the input stays as it is."""
    return list(tools) if style == "full" else [compact_function(tool) for tool in tools]


def compact_function(tool: JsonObject) -> JsonObject:
    """Return one OpenAI function with a short description and the schema of `compact_schema`."""
    function = tool["function"]
    short = {"name": function["name"], "description": shorten(function.get("description", ""), TOOL_CHARACTERS)}
    if parameters := function.get("parameters"):
        short["parameters"] = compact_schema(parameters)
    return {"type": "function", "function": short}


def compact_schema(schema: JsonObject, name: str = "") -> JsonObject:
    """Return a schema with names, types, choices, limits and short descriptions, and little else.

    Left out are examples, titles, lengths, a refusal of further properties, defaults that say "nothing", the choice of
    null where null is the default, and a description that only repeats the name.
    """
    merged = _without_default_null(schema)
    short: JsonObject = {}
    for key in sorted(merged, key=lambda key: key != "type"):
        value = merged[key]
        if key in LEFT_OUT or (key == "additionalProperties" and value is False):
            continue
        if key == "default" and _is_obvious(value):
            continue
        if key == "description":
            text = shorten(str(value), PARAMETER_CHARACTERS)
            if text and not _repeats(name, text):
                short[key] = text
        elif key in ("properties", "$defs", "definitions") and isinstance(value, dict):
            short[key] = {inner: compact_schema(part, inner) for inner, part in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            short[key] = compact_schema(value)
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
            short[key] = [compact_schema(part) for part in value]
        elif not (key == "required" and not value):
            short[key] = value
    return short


def shorten(text: str, limit: int) -> str:
    """Return the first sentence, and those after it that fit into `limit` characters."""
    sentences = _SENTENCE_END.split(" ".join(text.split()))
    short = sentences[0]
    for sentence in sentences[1:]:
        if len(short) + 1 + len(sentence) > limit:
            break
        short = f"{short} {sentence}"
    return short


def _without_default_null(schema: JsonObject) -> JsonObject:
    """Return the other choice of a schema that may be null, where null is what leaving it out means."""
    choices = schema.get("anyOf")
    if "default" not in schema or schema["default"] is not None or not isinstance(choices, list):
        return schema
    others = [choice for choice in choices if choice != {"type": "null"}]
    if len(others) != 1 or len(choices) != 2 or not isinstance(others[0], dict):
        return schema
    return {key: value for key, value in schema.items() if key not in ("anyOf", "default")} | others[0]


def _is_obvious(value: JsonValue) -> bool:
    return any(value == one and type(value) is type(one) for one in OBVIOUS_DEFAULTS)


def _repeats(name: str, description: str) -> bool:
    """Return True if the description has no word that the name has not: "Order number." of order_number."""
    known = {*re.split(r"[^a-z0-9]+", name.lower()), "the", "a", "an", "of", "its", "id", ""}
    return bool(name) and set(re.split(r"[^a-z0-9]+", description.lower())) <= known
