"""Serialization of requests and replies of OpenAI-compatible servers."""

from typing import Any

import orjson

from trajsmith.models.failures import FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest, FinishReason, MalformedCall, Usage
from trajsmith.models.settings import ModelSettings
from trajsmith.records import FunctionCall, JsonObject, Message, ToolCall

JSON_WORDS = (
    "Answer with one JSON value that satisfies this JSON Schema. Write nothing before it and nothing after it, "
    "and no code fence.\n\n"
)

MOST_VALUES = 1_000_000
"""Values in the JSON of a reply; each costs some 60 bytes of memory."""
MOST_TOKENS = 10**9
"""Tokens that a server may count for one request; more is no count, and sums of it could not be stored."""


def build_request_body(request: ChatRequest, settings: ModelSettings, native: bool) -> JsonObject:
    """Build the body of a chat completion request.

    Args:
        native: Ask for a JSON reply by `response_format`; else by words at the end of the prompt.
    """
    messages = [serialize_message(message, settings.reasoning_key) for message in request.messages]
    body: JsonObject = {"model": settings.model, "messages": messages}
    if request.tools:
        body["tools"] = list(request.tools)
        _set_parameter(body, settings, "tool_choice", request.tool_choice)
    if request.reply_schema is not None:
        if native:
            body["response_format"] = _response_format(request)
        else:
            _append_schema_instruction(messages, request.reply_schema)
    _set_parameter(body, settings, "temperature", request.temperature)
    _set_parameter(body, settings, "top_p", request.top_p)
    _set_parameter(body, settings, "max_tokens", request.max_tokens)
    _set_parameter(body, settings, "seed", request.seed)
    _set_parameter(body, settings, "stop", list(request.stop) or None)
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
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise FailedAttempt("bad_reply", f"more than {MOST_VALUES} values", retryable=True, reply=_text(data))
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise FailedAttempt("bad_reply", f"the body is no JSON: {error}", retryable=True, reply=_text(data)) from error
    if not isinstance(body, dict):
        raise FailedAttempt("bad_reply", "the body is no JSON object", retryable=True, reply=_text(data))
    usage = parse_usage(body.get("usage"))
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        problem = "an error in place of an answer" if "error" in body else "no choices"
        raise FailedAttempt("bad_reply", f"the reply has {problem}", retryable=True, reply=_text(data), usage=usage)
    finish = str(choice.get("finish_reason") or "stop")
    refusal = message.get("refusal")
    if finish == "content_filter" or refusal:
        detail = str(refusal or "finish_reason content_filter")
        raise FailedAttempt("content_filter", detail, retryable=False, reply=_text(data), usage=usage)
    return _reply(message, finish, usage, str(body.get("model") or ""), data)


def _reply(message: JsonObject, finish: str, usage: Usage, model: str, data: bytes) -> ChatReply:
    calls, malformed = parse_tool_calls(message.get("tool_calls"))
    text = _content(message.get("content"))
    if not (text.strip() or calls or malformed):
        cut = finish == "length"
        problem = "the answer was cut at max_tokens before its first word" if cut else "the answer is empty"
        raise FailedAttempt("bad_reply", problem, retryable=not cut, reply=_text(data), usage=usage)
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
    text = arguments if isinstance(arguments, str) else "" if arguments is None else orjson.dumps(arguments).decode()
    if not isinstance(name, str) or not name:
        return MalformedCall(id=identity, name="", text=text, error="the call names no tool")
    try:
        parsed = orjson.loads(text) if text.strip() else {}
    except orjson.JSONDecodeError as error:
        return MalformedCall(id=identity, name=name, text=text, error=f"the arguments are no JSON: {error}")
    if not isinstance(parsed, dict):
        return MalformedCall(id=identity, name=name, text=text, error="the arguments are no JSON object")
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


def _set_parameter(body: JsonObject, settings: ModelSettings, key: Any, value: Any) -> None:
    name = settings.wire_names.get(key, key)
    if value is not None and name is not None:
        body[name] = value


def _response_format(request: ChatRequest) -> JsonObject:
    schema = {"name": request.schema_name or "reply", "schema": request.reply_schema, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def _append_schema_instruction(messages: list[JsonObject], schema: JsonObject) -> None:
    """The schema goes to the end of the prompt, so that its beginning stays shared with other requests."""
    words = JSON_WORDS + orjson.dumps(schema).decode()
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"] = f"{messages[-1]['content']}\n\n{words}"
    else:
        messages.append({"role": "user", "content": words})


def _content(content: Any) -> str:
    """Text of a message, also where it comes in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _text(data: bytes) -> str:
    return data[:4000].decode("utf-8", "replace")
