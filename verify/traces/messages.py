"""Messages in the OpenAI form, checked: who speaks, calls that can be made, results that belong to a call."""

from collections.abc import Sequence
from typing import Any

import orjson

from trajsmith.records import (
    DEEPEST_JSON,
    FunctionCall,
    JsonObject,
    Message,
    RecordDropped,
    ToolCall,
    TraceCall,
    is_too_deep,
)

MAX_TEXT_LENGTH = 1_000_000
"""Characters of one message; a longer one is no dialogue that anybody would train on."""
FAULT_WORDS = ("error:", "error executing tool")
"""How recordings without a mark of their own begin the result of a call that failed."""


def parse_arguments(value: Any, tool: str) -> JsonObject:
    """Arguments of a call: an object, or its JSON.

    Raises:
        RecordDropped: They are neither.
    """
    if isinstance(value, str):
        try:
            value = orjson.loads(value or "{}")
        except orjson.JSONDecodeError as error:
            raise RecordDropped("arguments_not_json", f"{tool}: {error.msg}") from error
    if not isinstance(value, dict):
        raise RecordDropped("arguments_not_json", f"{tool}: {type(value).__name__} in place of an object")
    if is_too_deep(value):
        raise RecordDropped("arguments_not_json", f"{tool}: nested deeper than {DEEPEST_JSON} levels")
    return value


def extract_text(content: Any) -> str:
    """Text of a message's content: text, nothing, or a list of text parts.

    Raises:
        RecordDropped: It is something else, or too long.
    """
    if isinstance(content, list):
        parts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise RecordDropped("content_not_text", "a part of a message is no text")
        content = "".join(parts)
    if content is None:
        return ""
    if not isinstance(content, str):
        raise RecordDropped("content_not_text", f"{type(content).__name__} in place of text")
    if len(content) > MAX_TEXT_LENGTH:
        raise RecordDropped("message_too_long", f"{len(content)} characters")
    return content


def is_failed_result(text: str) -> bool:
    """Return True if a result reads like that of a call that failed."""
    return text.strip().lower().startswith(FAULT_WORDS)


class Transcript:
    """Puts messages and calls together, one message at a time."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.calls: list[TraceCall] = []
        self._open: dict[str, int] = {}

    def say(self, role: str, content: Any, calls: Sequence[TraceCall] = (), reasoning: str | None = None) -> None:
        """A message of the system, the user or the agent.

        Raises:
            RecordDropped: The role is none of these, or a call has no name.
        """
        if role not in ("system", "user", "assistant"):
            raise RecordDropped("unknown_role", str(role))
        where = len(self.messages)
        tool_calls = []
        for number, call in enumerate(calls):
            if not call.tool:
                raise RecordDropped("call_without_name", f"message {where}")
            name = call.id or f"call_{len(self.calls)}"
            tool_calls.append(ToolCall(id=name, function=FunctionCall(name=call.tool, arguments=call.arguments)))
            self._open[call.id or f"#{where}.{number}"] = len(self.calls)
            self.calls.append(call.model_copy(update={"message": where, "id": name}))
        text = extract_text(content)
        self.messages.append(
            Message(role=role, content=text, tool_calls=tuple(tool_calls) or None, reasoning_content=reasoning)
        )

    def user_call(self, call: TraceCall) -> None:
        """A call that the user makes on their own device; no message shows it."""
        self._open[call.id] = len(self.calls)
        self.calls.append(call.model_copy(update={"message": max(0, len(self.messages) - 1), "id": ""}))

    def result(self, name: Any, content: Any, broke: bool | None = None) -> None:
        """Add the result of a call; without an id, of the first call that has none yet.

        Raises:
            RecordDropped: It belongs to no call.
        """
        key = str(name) if name else next(iter(self._open), "")
        if key not in self._open:
            raise RecordDropped("orphan_tool_result", str(name))
        at = self._open.pop(key)
        text = extract_text(content if isinstance(content, str | list | None) else orjson.dumps(content).decode())
        lost = is_failed_result(text) if broke is None else broke
        self.calls[at] = self.calls[at].model_copy(update={"output": text, "failed": lost})


def parse_openai_messages(listed: Any) -> Transcript:
    """The messages of a chat-completions dialogue.

    Raises:
        RecordDropped: They are no such messages; the reason says why.
    """
    if not isinstance(listed, list) or not listed:
        raise RecordDropped("no_messages", "")
    transcript = Transcript()
    for message in listed:
        if not isinstance(message, dict):
            raise RecordDropped("not_a_message", type(message).__name__)
        role = message.get("role")
        if role == "tool":
            transcript.result(message.get("tool_call_id") or message.get("id"), message.get("content"))
            continue
        reasoning = message.get("reasoning_content")
        calls = [parse_openai_call(call) for call in message.get("tool_calls") or ()]
        role = "system" if role == "developer" else role
        transcript.say(str(role), message.get("content"), calls, reasoning if isinstance(reasoning, str) else None)
    return transcript


def parse_openai_call(call: Any) -> TraceCall:
    """A tool call of a chat-completions message, or the flat form of it."""
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RecordDropped("call_without_name", str(call)[:80])
    name = function["name"]
    return TraceCall(
        tool=name, arguments=parse_arguments(function.get("arguments"), name), id=str(call.get("id") or "")
    )
