"""Rollouts in the form of the Responses API, as NeMo Gym writes them: items of the input, then of the output."""

from collections.abc import Iterator
from typing import Any

from trajsmith.records import JsonObject, RecordDropped, TraceCall, TraceDialogue, TraceTask
from trajsmith.verify.traces.messages import Transcript, parse_arguments

NAME = "responses"


def fits(value: Any) -> bool:
    """True for a rollout of this form."""
    return isinstance(value, dict) and isinstance(value.get("responses_create_params"), dict) and "response" in value


def split(document: Any) -> Iterator[Any]:
    """One value per rollout of a file."""
    yield from [document] if isinstance(document, dict) else document


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One rollout.

    Raises:
        RecordDropped: It is none; the reason says why.
    """
    if not fits(value):
        raise RecordDropped("no_messages", "")
    before, after = value["responses_create_params"].get("input"), (value["response"] or {}).get("output")
    items = [{"role": "user", "content": before}] if isinstance(before, str) else list(before or ())
    transcript = Transcript()
    for item in [*items, *(after if isinstance(after, list) else ())]:
        _add_item(transcript, item)
    reward = value.get("reward")
    model = (value["response"] or {}).get("model")
    task = value.get("_ng_task_index")
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=f"{value.get('id') or number}.{value.get('_ng_rollout_index', 0)}",
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=None if task is None else TraceTask(name=str(task)),
        recorded={"reward": reward} if isinstance(reward, int | float) else {},
        models={"agent": model} if isinstance(model, str) else {},
    )


def _add_item(transcript: Transcript, item: Any) -> None:
    """Add a message, a call or a result; reasoning and other items are no part of the dialogue."""
    if not isinstance(item, dict):
        raise RecordDropped("not_a_message", type(item).__name__)
    kind = item.get("type") or "message"
    if kind == "function_call":
        name = str(item.get("name") or "")
        call = TraceCall(
            tool=name, arguments=parse_arguments(item.get("arguments"), name), id=str(item.get("call_id") or "")
        )
        transcript.say("assistant", "", [call])
    elif kind == "function_call_output":
        transcript.result(item.get("call_id"), item.get("output"))
    elif kind == "message":
        role = str(item.get("role"))
        transcript.say("system" if role == "developer" else role, _read_content(item))


def _read_content(item: JsonObject) -> Any:
    content = item.get("content")
    if isinstance(content, list):
        return [part.get("text", part.get("refusal", "")) if isinstance(part, dict) else part for part in content]
    return content
