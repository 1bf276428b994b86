"""OpenTelemetry spans with the conventions for generative AI: executed tools, and the messages of chats."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import orjson

from trajsmith.records import JsonObject, RecordDropped, TraceCall, TraceDialogue
from trajsmith.verify.traces.messages import Transcript, extract_text, parse_arguments

NAME = "otel"
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


def fits(value: Any) -> bool:
    """True for exported spans, or for one span."""
    return isinstance(value, dict) and (isinstance(value.get("resourceSpans"), list) or _is_span(value))


def _is_span(value: Any) -> bool:
    return isinstance(value, dict) and "traceId" in value and "attributes" in value


def split(document: Any) -> Iterator[Any]:
    """One value per conversation of a file: its spans in the order of their start."""
    conversations: dict[str, list[JsonObject]] = defaultdict(list)
    for span in find_spans(document):
        attributes = read_attributes(span)
        name = attributes.get("gen_ai.conversation.id") or span.get("traceId")
        if any(key.startswith("gen_ai.") for key in attributes):
            conversations[str(name)].append({**span, "attributes": attributes})
    for name, spans in conversations.items():
        yield {"conversation": name, "spans": sorted(spans, key=lambda span: int(span.get("startTimeUnixNano") or 0))}


def find_spans(document: Any) -> Iterator[JsonObject]:
    """Yield the spans of a document: an export request, a list of them, or a list of spans."""
    for one in document if isinstance(document, list) else [document]:
        if _is_span(one):
            yield one
        for resource in one.get("resourceSpans") or () if isinstance(one, dict) else ():
            for scope in resource.get("scopeSpans") or ():
                yield from (span for span in scope.get("spans") or () if isinstance(span, dict))


def read_attributes(span: JsonObject) -> JsonObject:
    """Return the attributes of a span by name, from the list of an export or from a mapping."""
    attributes = span.get("attributes")
    if isinstance(attributes, dict):
        return attributes
    return {
        str(one.get("key")): next((one["value"][k] for k in _VALUES if k in one["value"]), None)
        for one in attributes or ()
        if isinstance(one, dict) and isinstance(one.get("value"), dict)
    }


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One conversation.

    Raises:
        RecordDropped: It has neither messages nor executed tools; the reason says why.
    """
    spans = value["spans"]
    tools = [span for span in spans if span["attributes"].get("gen_ai.operation.name") == "execute_tool"]
    chats = [span["attributes"] for span in spans if "gen_ai.output.messages" in span["attributes"]]
    transcript = _read_chat(chats[-1]) if chats else Transcript()
    if not transcript.calls:
        _add_tools(transcript, tools)
    if not transcript.messages:
        raise RecordDropped("no_messages", "neither messages nor executed tools")
    model = next((one.get("gen_ai.request.model") for one in chats if one.get("gen_ai.request.model")), None)
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=value["conversation"],
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        models={"agent": str(model)} if model else {},
    )


def _add_tools(transcript: Transcript, spans: list[JsonObject]) -> None:
    """Add the calls of spans that have arguments and results; they tell nothing of who said what."""
    for place, span in enumerate(spans):
        attributes = span["attributes"]
        name = str(attributes.get("gen_ai.tool.name") or "")
        call_id = str(attributes.get("gen_ai.tool.call.id") or f"span_{place}")
        arguments = parse_arguments(attributes.get("gen_ai.tool.call.arguments"), name)
        transcript.say("assistant", "", [TraceCall(tool=name, arguments=arguments, id=call_id)])
        status = (span.get("status") or {}).get("code")
        broke = True if status in (2, "STATUS_CODE_ERROR") or attributes.get("error.type") else None
        transcript.result(call_id, attributes.get("gen_ai.tool.call.result"), broke)


def _read_chat(attributes: JsonObject) -> Transcript:
    """Return the messages of the last chat: all that it was given, and its answer."""
    transcript = Transcript()
    for part in _load(attributes.get("gen_ai.system_instructions")):
        if isinstance(part, dict) and isinstance(part.get("content"), str):
            transcript.say("system", part["content"])
    for message in (*_load(attributes.get("gen_ai.input.messages")), *_load(attributes["gen_ai.output.messages"])):
        if not isinstance(message, dict):
            raise RecordDropped("not_a_message", type(message).__name__)
        parts = [part for part in message.get("parts") or () if isinstance(part, dict)]
        responses = [part for part in parts if part.get("type") == "tool_call_response"]
        for part in responses:
            transcript.result(part.get("id"), part.get("response", part.get("result")))
        texts = [part.get("content") for part in parts if part.get("type") == "text"]
        calls = [_read_call(part) for part in parts if part.get("type") == "tool_call"]
        if texts or calls or not responses:
            transcript.say(str(message.get("role")), extract_text(texts), calls)
    return transcript


def _read_call(part: JsonObject) -> TraceCall:
    name = str(part.get("name") or "")
    return TraceCall(tool=name, arguments=parse_arguments(part.get("arguments"), name), id=str(part.get("id") or ""))


def _load(value: Any) -> list[Any]:
    """Return a list that stands in an attribute as JSON or as itself."""
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise RecordDropped("not_json", f"messages of a span: {error.msg}") from error
    return value if isinstance(value, list) else []
