"""Messages in the OpenAI form, checked: who speaks, calls that can be made, results that belong to a call."""

from collections.abc import Sequence
from typing import Any

import orjson

from trajectory import Dropped, FunctionCall, JsonObject, Message, ToolCall
from trajectory.outside import OutsideCall

LONGEST = 1_000_000
"""Characters of one message; a longer one is no dialogue that anybody would train on."""
FAULT_WORDS = ("error:", "error executing tool")
"""How recordings without a mark of their own begin the result of a call that failed."""


def arguments_of(value: Any, tool: str) -> JsonObject:
    """Arguments of a call: an object, or its JSON.

    Raises:
        Dropped: They are neither.
    """
    if isinstance(value, str):
        try:
            value = orjson.loads(value or "{}")
        except orjson.JSONDecodeError as error:
            raise Dropped("arguments_not_json", f"{tool}: {error.msg}") from error
    if not isinstance(value, dict):
        raise Dropped("arguments_not_json", f"{tool}: {type(value).__name__} in place of an object")
    return value


def text_of(content: Any) -> str:
    """Text of a message's content: text, nothing, or a list of text parts.

    Raises:
        Dropped: It is something else, or too long.
    """
    if isinstance(content, list):
        parts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise Dropped("content_not_text", "a part of a message is no text")
        content = "".join(parts)
    if content is None:
        return ""
    if not isinstance(content, str):
        raise Dropped("content_not_text", f"{type(content).__name__} in place of text")
    if len(content) > LONGEST:
        raise Dropped("message_too_long", f"{len(content)} characters")
    return content


def failed(text: str) -> bool:
    """True if a result reads like that of a call that failed."""
    return text.strip().lower().startswith(FAULT_WORDS)


class Transcript:
    """Puts messages and calls together, one message at a time."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.calls: list[OutsideCall] = []
        self._open: dict[str, int] = {}

    def say(self, role: str, content: Any, calls: Sequence[OutsideCall] = (), reasoning: str | None = None) -> None:
        """A message of the system, the user or the agent.

        Raises:
            Dropped: The role is none of these, or a call has no name.
        """
        if role not in ("system", "user", "assistant"):
            raise Dropped("unknown_role", str(role))
        where = len(self.messages)
        made = []
        for number, call in enumerate(calls):
            if not call.tool:
                raise Dropped("call_without_name", f"message {where}")
            name = call.id or f"call_{len(self.calls)}"
            made.append(ToolCall(id=name, function=FunctionCall(name=call.tool, arguments=call.arguments)))
            self._open[call.id or f"#{where}.{number}"] = len(self.calls)
            self.calls.append(call.model_copy(update={"message": where, "id": name}))
        text = text_of(content)
        self.messages.append(
            Message(role=role, content=text, tool_calls=tuple(made) or None, reasoning_content=reasoning)
        )

    def user_call(self, call: OutsideCall) -> None:
        """A call that the user makes on their own device; no message shows it."""
        self._open[call.id] = len(self.calls)
        self.calls.append(call.model_copy(update={"message": max(0, len(self.messages) - 1), "id": ""}))

    def result(self, name: Any, content: Any, broke: bool | None = None) -> None:
        """What came back from a call; without an id, from the first that has nothing yet.

        Raises:
            Dropped: It belongs to no call.
        """
        key = str(name) if name else next(iter(self._open), "")
        if key not in self._open:
            raise Dropped("orphan_tool_result", str(name))
        at = self._open.pop(key)
        text = text_of(content if isinstance(content, str | list | None) else orjson.dumps(content).decode())
        lost = failed(text) if broke is None else broke
        self.calls[at] = self.calls[at].model_copy(update={"output": text, "failed": lost})


def openai_messages(listed: Any) -> Transcript:
    """The messages of a chat-completions dialogue.

    Raises:
        Dropped: They are no such messages; the reason says why.
    """
    if not isinstance(listed, list) or not listed:
        raise Dropped("no_messages", "")
    found = Transcript()
    for message in listed:
        if not isinstance(message, dict):
            raise Dropped("not_a_message", type(message).__name__)
        role = message.get("role")
        if role == "tool":
            found.result(message.get("tool_call_id") or message.get("id"), message.get("content"))
            continue
        reasoning = message.get("reasoning_content")
        calls = [openai_call(call) for call in message.get("tool_calls") or ()]
        role = "system" if role == "developer" else role
        found.say(str(role), message.get("content"), calls, reasoning if isinstance(reasoning, str) else None)
    return found


def openai_call(call: Any) -> OutsideCall:
    """A tool call of a chat-completions message, or the flat form of it."""
    function = call.get("function", call) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Dropped("call_without_name", str(call)[:80])
    name = function["name"]
    return OutsideCall(tool=name, arguments=arguments_of(function.get("arguments"), name), id=str(call.get("id") or ""))
