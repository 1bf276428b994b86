"""OpenAI chat-completions messages, with tool-call arguments kept as objects."""

from typing import Literal

from trajsmith.records.canonical import JsonObject
from trajsmith.records.directory_tools import DIRECTORY_TOOLS
from trajsmith.records.record import FrozenModel


class FunctionCall(FrozenModel):
    name: str
    arguments: JsonObject
    """An object here; it becomes a JSON string only on the wire."""


class ToolCall(FrozenModel):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(FrozenModel):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    """Tool name, on tool messages."""

    @property
    def shows_data(self) -> bool:
        """Return True for the result of a call of the environment; a list of tools shows none of its data."""
        return self.role == "tool" and self.name not in DIRECTORY_TOOLS
