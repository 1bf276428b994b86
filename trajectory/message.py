"""OpenAI chat-completions messages, with tool-call arguments kept as objects."""

from typing import Literal

from trajectory.canonical import JsonObject
from trajectory.record import Frozen


class FunctionCall(Frozen):
    name: str
    arguments: JsonObject
    """An object here; it becomes a JSON string only on the wire."""


class ToolCall(Frozen):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(Frozen):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    """Tool name, on tool messages."""
