"""Serialization of requests and replies of OpenAI-compatible servers: chat completions."""

from collections.abc import Mapping
from typing import Any

import orjson

from trajsmith.models.failures import FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest, FinishReason, MalformedCall, Usage
from trajsmith.models.settings import ModelSettings, Parameter
from trajsmith.records import DEEPEST_JSON, FunctionCall, JsonObject, Message, ToolCall, is_too_deep

JSON_WORDS = (
    "Answer with one JSON value that satisfies this JSON Schema. Write nothing before it and nothing after it, "
    "and no code fence.\n\n"
)

TOO_DEEP = f"the arguments nest deeper than {DEEPEST_JSON} levels"
MOST_VALUES = 1_000_000
"""Values in the JSON of a reply; each costs some 60 bytes of memory."""
MOST_TOKENS = 10**9
"""Tokens that a server may count for one request; more is no count, and sums of it could not be stored."""


def build_request_body(request: ChatRequest, settings: ModelSettings, native: bool) -> JsonObject:
    """Build the body of a chat completion request.

    Args:
        native: Ask for a JSON reply by `response_format`; else by words at the end of the prompt.
    """
    names = settings.wire_names
    messages = [serialize_message(message, settings.reasoning_key) for message in request.messages]
    body: JsonObject = {"model": settings.model, "messages": messages}
    if request.tools:
        body["tools"] = list(request.tools)
        set_parameter(body, names, "tool_choice", request.tool_choice)
    if request.reply_schema is not None:
        if native:
            body["response_format"] = {"type": "json_schema", "json_schema": describe_reply_schema(request)}
        else:
            append_schema_instruction(messages, request.reply_schema)
    set_sampling(body, names, request)
    return body | settings.extra_body


def serialize_message(message: Message, reasoning_key: str | None = None) -> JsonObject:
    """Serialize one message; arguments become JSON text."""
    serialized: JsonObject = {"role": message.role, "content": message.content}
    if message.tool_calls:
        serialized["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.function.name,
                    "arguments": orjson.dumps(call.function.arguments).decode(),
                },
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        serialized["tool_call_id"] = message.tool_call_id
    if reasoning_key and message.reasoning_content:
        serialized[reasoning_key] = message.reasoning_content
    return serialized


def parse_reply(data: bytes) -> ChatReply:
    """Parse the reply in a response body.

    Raises:
        FailedAttempt: It is no JSON, has too many values, no choices or no message in them, or was filtered.
    """
    body = decode_body(data)
    usage = parse_usage(body.get("usage"))
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        problem = "an error in place of an answer" if "error" in body else "no choices"
        raise FailedAttempt("bad_reply", f"the reply has {problem}", retryable=True, reply=show_body(data), usage=usage)
    finish = str(choice.get("finish_reason") or "stop")
    refusal = message.get("refusal")
    if finish == "content_filter" or refusal:
        detail = str(refusal or "finish_reason content_filter")
        raise FailedAttempt("content_filter", detail, retryable=False, reply=show_body(data), usage=usage)
    return build_reply(message, finish, usage, str(body.get("model") or ""), data)


def decode_body(data: bytes) -> JsonObject:
    """Decode the JSON object of a response.

    Raises:
        FailedAttempt: It is no JSON, no object, or has too many values.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise FailedAttempt("bad_reply", f"more than {MOST_VALUES} values", retryable=True, reply=show_body(data))
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FailedAttempt(
            "bad_reply", f"the body is no JSON: {error}", retryable=True, reply=show_body(data)
        ) from error
    if not isinstance(body, dict):
        raise FailedAttempt("bad_reply", "the body is no JSON object", retryable=True, reply=show_body(data))
    return body


def build_reply(message: JsonObject, finish: str, usage: Usage, model: str, data: bytes) -> ChatReply:
    """Build the reply of a message of chat completions.

    Args:
        finish: Why it ended; "length" for a message that was cut.
        data: The response, for the record of a failure.

    Raises:
        FailedAttempt: The message is empty.
    """
    calls, malformed = parse_tool_calls(message.get("tool_calls"))
    text = _content(message.get("content"))
    if not (text.strip() or calls or malformed):
        cut = finish == "length"
        problem = "the answer was cut at max_tokens before its first word" if cut else "the answer is empty"
        raise FailedAttempt("bad_reply", problem, retryable=not cut, reply=show_body(data), usage=usage)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    ended: FinishReason = "length" if finish == "length" else "tool_calls" if calls or malformed else "stop"
    return ChatReply(
        message=Message(
            role="assistant",
            content=text,
            reasoning_content=reasoning if isinstance(reasoning, str) and reasoning else None,
            tool_calls=tuple(calls) or None,
        ),
        malformed=tuple(malformed),
        finish_reason=ended,
        usage=usage,
        model=model,
    )


def parse_tool_calls(raw_calls: Any) -> tuple[list[ToolCall], list[MalformedCall]]:
    """Parse the calls of a message into well-formed and malformed ones. A call without an id gets its position as
    id.
    """
    calls: list[ToolCall] = []
    malformed: list[MalformedCall] = []
    for number, call in enumerate(raw_calls if isinstance(raw_calls, list) else []):
        function = call.get("function") if isinstance(call, dict) else None
        function = function if isinstance(function, dict) else {}
        identity = str(call.get("id") or "") if isinstance(call, dict) else ""
        parsed = parse_tool_call(identity or f"call_{number}", function.get("name"), function.get("arguments"))
        if isinstance(parsed, ToolCall):
            calls.append(parsed)
        else:
            malformed.append(parsed)
    return calls, malformed


def parse_tool_call(identity: str, name: Any, arguments: Any) -> ToolCall | MalformedCall:
    """Parse one call of a model: its arguments must be a JSON object, as text or as an object."""
    if not isinstance(arguments, str) and is_too_deep(arguments):
        return MalformedCall(id=identity, name=name if isinstance(name, str) else "", text="", error=TOO_DEEP)
    text = arguments if isinstance(arguments, str) else "" if arguments is None else orjson.dumps(arguments).decode()
    if not isinstance(name, str) or not name:
        return MalformedCall(id=identity, name="", text=text, error="the call names no tool")
    try:
        parsed = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError as error:
        return MalformedCall(id=identity, name=name, text=text, error=f"the arguments are no JSON: {error}")
    if not isinstance(parsed, dict):
        return MalformedCall(id=identity, name=name, text=text, error="the arguments are no JSON object")
    if is_too_deep(parsed):
        return MalformedCall(id=identity, name=name, text=text, error=TOO_DEEP)
    return ToolCall(id=identity, function=FunctionCall(name=name, arguments=parsed))


def parse_usage(raw_usage: Any) -> Usage:
    """Parse the server's token counts; missing ones are 0, and no more of a prompt is cached than it has."""
    if not isinstance(raw_usage, dict):
        return Usage(requests=1)
    prompt = _count(raw_usage, "prompt_tokens")
    return Usage(
        requests=1,
        prompt_tokens=prompt,
        cached_tokens=min(prompt, _count(raw_usage.get("prompt_tokens_details"), "cached_tokens")),
        completion_tokens=_count(raw_usage, "completion_tokens"),
        reasoning_tokens=_count(raw_usage.get("completion_tokens_details"), "reasoning_tokens"),
    )


def _count(counts: Any, key: str) -> int:
    value = counts.get(key) if isinstance(counts, dict) else None
    return min(value, MOST_TOKENS) if isinstance(value, int) and value > 0 else 0


def set_parameter(body: JsonObject, names: Mapping[Any, str | None], key: Parameter, value: Any) -> None:
    """Set a parameter under the server's name for it; one that is None or has no name there is left out."""
    name = names.get(key, key)
    if value is not None and name is not None:
        body[name] = value


def set_sampling(body: JsonObject, names: Mapping[Any, str | None], request: ChatRequest) -> None:
    """Set the sampling parameters of a request."""
    set_parameter(body, names, "temperature", request.temperature)
    set_parameter(body, names, "top_p", request.top_p)
    set_parameter(body, names, "max_tokens", request.max_tokens)
    set_parameter(body, names, "seed", request.seed)
    set_parameter(body, names, "stop", list(request.stop) or None)


def describe_reply_schema(request: ChatRequest) -> JsonObject:
    """Describe the schema of a reply as both APIs want it."""
    return {"name": request.schema_name or "reply", "schema": request.reply_schema, "strict": True}


def append_schema_instruction(messages: list[JsonObject], schema: JsonObject) -> None:
    """Ask for JSON in words, at the end of the prompt, so that its beginning stays shared with other requests."""
    words = JSON_WORDS + orjson.dumps(schema).decode()
    if messages and messages[-1].get("role") == "user":
        messages[-1]["content"] = f"{messages[-1]['content']}\n\n{words}"
    else:
        messages.append({"role": "user", "content": words})


def _content(content: Any) -> str:
    """Text of a message, also where it comes in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def show_body(data: bytes) -> str:
    """Return the beginning of a response as text."""
    return data[:4000].decode("utf-8", "replace")
