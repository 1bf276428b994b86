"""Serialization of requests and replies of OpenAI's Responses API.

Requests are stateless: `store` is false, and what the server said since the user's last message goes back as it came,
with its reasoning, encrypted or not. Older reasoning is left out, as the server would.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from trajsmith.models.failures import FailedAttempt
from trajsmith.models.model import ChatReply, ChatRequest, Usage
from trajsmith.models.serialization import (
    append_schema_instruction,
    build_reply,
    decode_body,
    describe_reply_schema,
    parse_usage,
    set_parameter,
    set_sampling,
    show_body,
)
from trajsmith.models.settings import ModelSettings, Parameter
from trajsmith.records import JsonObject, Message, ModelFaultKind, is_too_deep

ENCRYPTED = "reasoning.encrypted_content"
NAMES: dict[Parameter, str | None] = {"max_tokens": "max_output_tokens", "seed": None}
"""Parameters that this API calls otherwise, or does not have."""
UNFINISHED = frozenset({"queued", "in_progress"})
FAILED: dict[str, tuple[ModelFaultKind, bool]] = {
    "server_error": ("server", True),
    "rate_limit_exceeded": ("rate_limit", True),
    "invalid_prompt": ("bad_request", False),
    "bio_policy": ("content_filter", False),
    "misalignment_policy_violation": ("content_filter", False),
}
"""Code of a failed response to the kind of fault, and whether another attempt may succeed."""


def build_responses_body(request: ChatRequest, settings: ModelSettings, native: bool, encrypted: bool) -> JsonObject:
    """Build the body of a request.

    Args:
        native: Ask for a JSON reply by `text.format`; else by words at the end of the prompt.
        encrypted: Ask for encrypted reasoning, to send it back; only requests with tools are answered by more of them.

    Raises:
        FailedAttempt: The request has stop sequences, which this API does not.
    """
    names = {**NAMES, **settings.wire_names}
    if request.stop and "stop" not in names:
        raise FailedAttempt("bad_request", "the Responses API has no stop sequences", retryable=False)
    items: list[JsonObject] = []
    for number, message in enumerate(request.messages):
        items += request.sent_back.get(number) or serialize_items(message)
    body: JsonObject = {"model": settings.model, "input": items, "store": False, "stream": False}
    if request.tools:
        body["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in request.tools]
        set_parameter(body, names, "tool_choice", request.tool_choice)
        if encrypted:
            body["include"] = [ENCRYPTED]
    if request.reply_schema is not None and not native:
        append_schema_instruction(items, request.reply_schema)
    set_sampling(body, names, request)
    body |= settings.extra_body
    if request.reply_schema is not None and native:
        own = body.get("text")
        described = {"type": "json_schema", **describe_reply_schema(request)}
        body["text"] = {**(own if isinstance(own, dict) else {}), "format": described}
    return body


def serialize_items(message: Message) -> list[JsonObject]:
    """Serialize one message as input items: its text, its calls, or the result of a call."""
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id or "", "output": message.content}]
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.function.name,
            "arguments": orjson.dumps(call.function.arguments).decode(),
        }
        for call in message.tool_calls or ()
    ]
    texts = [{"role": message.role, "content": message.content}] if message.content or not calls else []
    return [*texts, *calls]


def parse_response(data: bytes) -> ChatReply:
    """Parse a response body.

    Raises:
        FailedAttempt: It is no JSON, has no output, failed, is not finished, or was filtered.
    """
    body = decode_body(data)
    usage = _parse_usage(body.get("usage"))
    output, status = body.get("output"), str(body.get("status") or "completed")
    if status in ("failed", "cancelled") or not isinstance(output, list):
        raise _describe_failure(body, status, usage, data)
    if status in UNFINISHED:
        problem = f"the response is not finished ({status})"
        raise FailedAttempt("bad_reply", problem, retryable=True, reply=show_body(data), usage=usage)
    items = [item for item in output if isinstance(item, dict)]
    parts = [part for item in items if item.get("type") == "message" for part in _list_parts(item.get("content"))]
    refusal = next((part["refusal"] for part in parts if part.get("type") == "refusal" and part.get("refusal")), None)
    details = body.get("incomplete_details")
    reason = str(details.get("reason")) if status == "incomplete" and isinstance(details, dict) else ""
    if refusal or reason == "content_filter":
        detail = str(refusal or "incomplete: content_filter")
        raise FailedAttempt("content_filter", detail, retryable=False, reply=show_body(data), usage=usage)
    message = {
        "content": [part for part in parts if part.get("type") == "output_text"],
        "reasoning_content": _read_reasoning(items),
        "tool_calls": [
            {"id": item.get("call_id"), "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
            for item in items
            if item.get("type") == "function_call"
        ],
    }
    finish = "length" if status == "incomplete" else "stop"
    reply = build_reply(message, finish, usage, str(body.get("model") or ""), data)
    return reply.model_copy(update={"items": _choose_items(items)})


def _describe_failure(body: JsonObject, status: str, usage: Usage, data: bytes) -> FailedAttempt:
    error = body.get("error")
    if isinstance(error, dict):
        kind, retryable = FAILED.get(str(error.get("code")), ("bad_reply", True))
        problem = f"the response failed: {error.get('code')}: {error.get('message')}"
    else:
        kind, retryable = "bad_reply", True
        problem = f"the reply has {'an error in place of an answer' if error else 'no output'} ({status})"
    return FailedAttempt(kind, problem, retryable, reply=show_body(data), usage=usage)


def _list_parts(content: Any) -> list[JsonObject]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _read_reasoning(items: Iterable[JsonObject]) -> str:
    """Return the reasoning in plain words: as it was thought where the server shows that, else its summary."""
    texts = []
    for item in items:
        if item.get("type") == "reasoning":
            parts = _list_parts(item.get("content")) or _list_parts(item.get("summary"))
            texts += [text for part in parts if isinstance(text := part.get("text"), str) and text]
    return "\n\n".join(texts)


def _choose_items(items: list[JsonObject]) -> tuple[JsonObject, ...]:
    """Return the output for later requests: none if it has no reasoning, for messages and calls say the same then.

    Reasoning that is neither encrypted nor shown stands at a server that stores it, where this API's `store` is true.
    """
    sent = [
        item
        for item in items
        if item.get("type") in ("message", "function_call")
        or (item.get("type") == "reasoning" and (item.get("encrypted_content") or item.get("content")))
    ]
    if not any(item["type"] == "reasoning" for item in sent) or is_too_deep(sent):
        return ()
    return tuple(sent)


def _parse_usage(counts: Any) -> Usage:
    if not isinstance(counts, dict):
        return parse_usage(None)
    return parse_usage(
        {
            "prompt_tokens": counts.get("input_tokens"),
            "prompt_tokens_details": counts.get("input_tokens_details"),
            "completion_tokens": counts.get("output_tokens"),
            "completion_tokens_details": counts.get("output_tokens_details"),
        }
    )
