"""The fields of the Hub's session trace format, as https://huggingface.co/docs/hub/session-traces-format lists them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Json, TypeAdapter


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Function(Closed):
    name: str
    arguments: Json[dict[str, Any]]


class ToolCall(Closed):
    id: str
    function: Function


class Message(Closed):
    role: Literal["user", "assistant", "system", "tool"]
    content: str
    reasoningContent: str = ""
    toolCalls: list[ToolCall] = []
    toolCallId: str = ""
    timestamp: int = 0
    model: str = ""


class MessageLine(Closed):
    type: Literal["message"]
    message: Message


class Header(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    type: Literal["session"]
    harness: str
    id: str
    name: str = ""


def check_session(lines):
    """Validate the lines of a session, and return header and messages."""
    header = TypeAdapter(Header).validate_python(lines[0])
    messages = [TypeAdapter(MessageLine).validate_python(line).message for line in lines[1:]]
    open_calls: set[str] = set()
    for message in messages:
        assert bool(message.toolCallId) == (message.role == "tool")
        assert message.role == "assistant" or not (message.toolCalls or message.reasoningContent or message.model)
        open_calls |= {call.id for call in message.toolCalls}
        if message.toolCallId:
            open_calls.remove(message.toolCallId)
    assert messages and not open_calls
    return header, messages
