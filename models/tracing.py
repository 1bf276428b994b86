"""What a span of a model call says, by OpenTelemetry's conventions for generative AI."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from trajsmith.models.model import ChatReply, ChatRequest
from trajsmith.models.settings import ModelSettings
from trajsmith.records import JsonObject, Message, SpanAttributes

PORTS = {"http": 80, "https": 443}


def describe_request(request: ChatRequest, settings: ModelSettings) -> SpanAttributes:
    """Describe a request without its texts."""
    attributes: dict[str, Any] = {
        "gen_ai.provider.name": settings.provider,
        "gen_ai.request.model": settings.model,
        "gen_ai.request.temperature": request.temperature,
        "gen_ai.request.top_p": request.top_p,
        "gen_ai.request.max_tokens": request.max_tokens,
        "gen_ai.request.seed": request.seed,
        "gen_ai.request.stop_sequences": list(request.stop) or None,
        "gen_ai.output.type": "text" if request.reply_schema is None else "json",
        "trajsmith.purpose": request.purpose or None,
        "trajsmith.record": request.record or None,
    }
    if not settings.is_in_process:
        address = urlsplit(settings.base_url)
        attributes["server.address"] = address.hostname
        attributes["server.port"] = address.port or PORTS[address.scheme]
    if settings.provider == "openai":
        attributes["openai.api.type"] = settings.api
    return attributes


def describe_reply(reply: ChatReply) -> SpanAttributes:
    """Describe a reply without its texts."""
    usage = reply.usage
    return {
        "gen_ai.response.model": reply.model or None,
        "gen_ai.response.finish_reasons": [reply.finish_reason],
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def describe_texts(request: ChatRequest, reply: ChatReply) -> SpanAttributes:
    """Describe the texts of a request and its reply, as JSON."""
    finish = {"tool_calls": "tool_call"}.get(reply.finish_reason, reply.finish_reason)
    return {
        "gen_ai.input.messages": _write([_describe_message(message) for message in request.messages]),
        "gen_ai.output.messages": _write([{**_describe_message(reply.message), "finish_reason": finish}]),
        "gen_ai.tool.definitions": _write([_describe_tool(tool) for tool in request.tools]) if request.tools else None,
    }


def _describe_message(message: Message) -> JsonObject:
    if message.role == "tool":
        result = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        return {"role": "tool", "parts": [result]}
    parts: list[JsonObject] = []
    parts += [{"type": "reasoning", "content": message.reasoning_content}] if message.reasoning_content else []
    parts += [{"type": "text", "content": message.content}] if message.content else []
    for call in message.tool_calls or ():
        function = call.function
        parts.append({"type": "tool_call", "id": call.id, "name": function.name, "arguments": function.arguments})
    return {"role": message.role, "parts": parts}


def _describe_tool(tool: JsonObject) -> JsonObject:
    return {"type": "function", **tool["function"]}


def _write(value: Sequence[Any]) -> str:
    return orjson.dumps(value).decode()
