"""Structured output: requests for JSON parsed into Pydantic objects, with or without server-side schemas.

The schema goes along with every request; how it reaches the model (`response_format` or words) is the provider's
matter. What comes back is never trusted: it is found in the text, validated, and if wrong, sent back with its fault.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from trajsmith.models.model import ChatModel, ChatReply, ChatRequest
from trajsmith.records import DEEPEST_JSON, JsonObject, Message, ModelFault, format_first_error, is_too_deep

Answer = TypeVar("Answer", bound=BaseModel)

ROUNDS = 2
"""Repairs that are asked for, after the first answer."""
MOST_CHOICES = 250
"""Values of one field that a schema lists; OpenAI refuses schemas with many more."""
_FENCE = "```"
_DECODED_FROM = ("{", "[")


async def complete_structured(
    model: ChatModel, request: ChatRequest, answer: type[Answer], rounds: int = ROUNDS
) -> Answer:
    """Request an answer and return it as an object of this class.

    Args:
        request: With a schema of its own where that is narrower than the class (only names that exist, for example);
            else the schema of the class is put in. Only the class decides what is accepted.
        rounds: Times that a wrong answer is sent back with its fault.

    Raises:
        ModelFault: "bad_reply" with the last reply, if no answer satisfied the schema; or the request itself failed.
    """
    schema = request.reply_schema or build_strict_schema(answer)
    asked = request.model_copy(update={"reply_schema": schema, "schema_name": answer.__name__})
    fault = reply_text = ""
    for _ in range(rounds + 1):
        reply = await model.complete(asked)
        reply_text = reply.message.content
        try:
            return parse_answer(reply_text, answer)
        except ValueError as error:
            fault = _describe_fault(error, reply)
        previous = Message(role="assistant", content=reply_text)
        mend = Message(role="user", content=_build_correction(fault))
        asked = asked.model_copy(update={"messages": (*asked.messages, previous, mend)})
    raise ModelFault(
        "bad_reply", model.name, f"no valid {answer.__name__} in {rounds + 1} answers: {fault}", reply_text
    )


def parse_answer(text: str, answer: type[Answer]) -> Answer:
    """Parse the object in a text: the whole text, a fenced block, or a part of the prose.

    Raises:
        ValueError: There is no JSON in it, or none that is valid; a `ValidationError` for the likeliest part.
    """
    fault: ValueError | None = None
    for part in _candidates(text):
        try:
            value = orjson.loads(part)
        except orjson.JSONDecodeError as error:
            fault = fault or ValueError(f"this is no JSON: {error}")
            continue
        if is_too_deep(value):
            fault = fault or ValueError(f"it nests deeper than {DEEPEST_JSON} levels")
            continue
        try:
            return answer.model_validate(value)
        except ValidationError as error:
            fault = error if not isinstance(fault, ValidationError) else fault
    raise fault or ValueError("there is no JSON in the answer")


@cache
def build_strict_schema(answer: type[BaseModel]) -> JsonObject:
    """Build the strict JSON Schema that servers accept: all properties required, no others, no defaults.

    Titles and docstrings are left out, and definitions stand where they are used, unless they use themselves: a weak
    model gives back the schema, or the references, that it reads.
    """
    schema = answer.model_json_schema()
    definitions = schema.pop("$defs", {})
    try:
        schema = _inline_definitions(schema, definitions)
    except _RecursiveSchemaError:
        schema["$defs"] = definitions
    closed: JsonObject = _close_schema(schema)
    return closed


def narrow_schema(answer: type[BaseModel], rows: str, choices: Mapping[str, Iterable[str]]) -> JsonObject:
    """Build the strict schema of an answer whose rows can only hold what exists.

    Args:
        answer: Class with a list of rows.
        rows: Field of that list.
        choices: Field of a row to all values that make sense; more than 250 are not listed, as servers refuse them.
    """
    schema = copy.deepcopy(build_strict_schema(answer))
    fields = schema["properties"][rows]["items"]["properties"]
    for field, values in choices.items():
        listed = sorted(set(values))
        if 0 < len(listed) <= MOST_CHOICES:
            fields[field] = {**fields[field], "enum": listed}
    return schema


class _RecursiveSchemaError(Exception):
    """A definition that uses itself cannot stand where it is used."""


def _inline_definitions(schema: Any, definitions: JsonObject, above: tuple[str, ...] = ()) -> Any:
    if isinstance(schema, list):
        return [_inline_definitions(part, definitions, above) for part in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return {key: _inline_definitions(part, definitions, above) for key, part in schema.items()}
    name = reference.rpartition("/")[2]
    if name in above:
        raise _RecursiveSchemaError
    beside = {key: part for key, part in schema.items() if key != "$ref"}
    return _inline_definitions({**definitions[name], **beside}, definitions, (*above, name))


def _close_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_close_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = _list_left_out(schema) if _is_schema(schema) else ()
    closed = {key: _close_schema(part) for key, part in schema.items() if key not in left_out}
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed["required"] = list(closed["properties"])
        closed["additionalProperties"] = False
    return closed


def _list_left_out(schema: JsonObject) -> set[str]:
    """Keywords of a schema that tell a model nothing: defaults, titles made of names, docstrings of classes."""
    docstring = {"description"} if isinstance(schema.get("properties"), dict) else set()
    texts = {key for key in ({"title"} | docstring) if isinstance(schema.get(key), str)}
    return {"default", *texts}


def _is_schema(part: JsonObject) -> bool:
    """A schema itself, not a table of properties one of which happens to be called "default"."""
    return not isinstance(part.get("default"), dict) or bool({"type", "$ref", "anyOf", "enum"} & part.keys())


def _candidates(text: str) -> Iterator[str]:
    """Parts of a text that may be the JSON, the likeliest first."""
    stripped = text.strip()
    if stripped.startswith(_DECODED_FROM):
        yield stripped
    blocks = text.split(_FENCE)[1::2]
    for block in reversed(blocks):
        first, _, rest = block.partition("\n")
        yield (rest if first.strip().isalnum() or not first.strip() else block).strip()
    for opening, ending in (("{", "}"), ("[", "]")):
        start, stop = text.find(opening), text.rfind(ending)
        if 0 <= start < stop:
            yield text[start : stop + 1]


def _describe_fault(error: ValueError, reply: ChatReply) -> str:
    if reply.finish_reason == "length":
        return "the answer was cut off because it was too long"
    return format_first_error(error) if isinstance(error, ValidationError) else str(error)


def _build_correction(fault: str) -> str:
    return f"That answer cannot be used: {fault}. Give the whole answer again as valid JSON that satisfies the schema."
