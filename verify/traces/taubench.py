"""tau-bench results: one object a dialogue with `traj`, and the task with its actions under `info`."""

from collections.abc import Iterator
from typing import Any

from trajsmith.records import JsonObject, RecordDropped, TraceCall, TraceDialogue, TraceTask
from trajsmith.verify.traces.messages import parse_arguments, parse_openai_messages

NAME = "taubench"


def fits(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("traj"), list)


def split(document: Any) -> Iterator[Any]:
    """One value per dialogue of a file."""
    yield from [document] if fits(document) else document


def read(value: Any, file: str, number: int) -> TraceDialogue:
    """One dialogue.

    Raises:
        RecordDropped: It is none; the reason says why.
    """
    if not fits(value):
        raise RecordDropped("no_messages", "")
    transcript = parse_openai_messages(value["traj"])
    info = value.get("info") if isinstance(value.get("info"), dict) else {}
    reward = value.get("reward")
    return TraceDialogue(
        file=file,
        format=NAME,
        dialogue=f"{value.get('task_id', number)}.{value.get('trial', 0)}",
        messages=tuple(transcript.messages),
        calls=tuple(transcript.calls),
        task=_task(value, info.get("task")),
        recorded={"reward": reward} if isinstance(reward, int | float) else {},
    )


def _task(value: JsonObject, task: Any) -> TraceTask:
    name = str(value.get("task_id"))
    if not isinstance(task, dict):
        return TraceTask(name=name)
    gold = [
        TraceCall(tool=str(one["name"]), arguments=parse_arguments(one.get("kwargs") or {}, str(one["name"])))
        for one in task.get("actions") or ()
    ]
    return TraceTask(
        name=name, scenario=str(task.get("instruction") or ""), gold=tuple(gold), facts=tuple(task.get("outputs") or ())
    )
