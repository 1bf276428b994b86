"""The Hub's session trace format (STS): a file is one session, its first line the header, each other line a message."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from trajsmith.records import JsonObject, RecordDropped, TraceDialogue, TraceTask, to_one_line
from trajsmith.verify.traces.messages import Transcript, parse_openai_call

NAME = "hub_traces"


def fits(value: Any) -> bool:
    """True for the header of a session."""
    return isinstance(value, dict) and value.get("type") == "session" and isinstance(value.get("harness"), str)


def split(document: Any) -> Iterator[Any]:
    """One value per session of a file: its lines."""
    lines = document if isinstance(document, list) else [document]
    starts = [number for number, line in enumerate(lines) if number == 0 or fits(line)]
    for start, stop in pairwise([*starts, len(lines)]):
        yield lines[start:stop]


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One session.

    Raises:
        RecordDropped: It is none; the reason says why.
    """
    header, lines = value[0], value[1:]
    for line in value:
        if isinstance(line, RecordDropped):
            raise line
    if not fits(header):
        raise RecordDropped("no_session_header", to_one_line(header, 80))
    if not lines:
        raise RecordDropped("no_messages", "")
    transcript, models = Transcript(), dict[str, str]()
    for line in lines:
        message = _find_message(line)
        _add_message(transcript, message)
        if message.get("role") == "assistant" and isinstance(message.get("model"), str):
            models["agent"] = message["model"]
    facts = header.get("trajsmith")
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=str(header.get("id") or number),
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=TraceTask(name=str(facts["task_id"])) if isinstance(facts, dict) and "task_id" in facts else None,
        models=models,
    )


def _find_message(line: Any) -> JsonObject:
    """Return the message of a line."""
    kind = line.get("type") if isinstance(line, dict) else None
    if kind != "message":
        raise RecordDropped("unknown_line_type", to_one_line(line if kind is None else kind, 80))
    message = line.get("message")
    if not isinstance(message, dict):
        raise RecordDropped("not_a_message", type(message).__name__)
    return message


def _add_message(transcript: Transcript, message: JsonObject) -> None:
    """Add a message with its calls, or the result of a call."""
    role = message.get("role")
    if role == "tool":
        transcript.result(message.get("toolCallId"), message.get("content"))
        return
    reasoning = message.get("reasoningContent")
    calls = [parse_openai_call(call) for call in message.get("toolCalls") or ()]
    transcript.say(str(role), message.get("content"), calls, reasoning if isinstance(reasoning, str) else None)
