"""OpenAI messages: one object a dialogue with `messages`, as chat completions and fine-tuning files have it."""

from collections.abc import Iterator
from typing import Any

from trajsmith.records import JsonObject, TraceDialogue, TraceTask
from trajsmith.verify.traces.messages import parse_openai_messages

NAME = "openai"


def fits(value: Any) -> bool:
    """True for a dialogue of this form, or for a list of messages."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], dict) and "role" in value[0]
    return isinstance(value, dict) and isinstance(value.get("messages"), list) and "simulations" not in value


def split(document: Any) -> Iterator[Any]:
    """One value per dialogue of a file."""
    if fits(document) and not (isinstance(document, list) and "messages" in document[0]):
        yield document
    else:
        yield from document


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One dialogue.

    Raises:
        RecordDropped: It is none; the reason says why.
    """
    row: JsonObject = value if isinstance(value, dict) else {"messages": value}
    transcript = parse_openai_messages(row.get("messages"))
    name = row.get("task_id")
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=str(row.get("id", number)),
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=None if name is None else TraceTask(name=str(name)),
    )
