"""tau-bench results: one object a dialogue with `traj`, and the task with its actions under `info`."""

from collections.abc import Iterator
from typing import Any

from trajectory import Dropped, JsonObject
from trajectory.outside import Outside, OutsideCall, OutsideTask
from verify.outside.messages import arguments_of, openai_messages

NAME = "taubench"


def fits(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("traj"), list)


def split(document: Any) -> Iterator[Any]:
    """One value per dialogue of a file."""
    yield from [document] if fits(document) else document


def read(value: Any, file: str, number: int) -> Outside:
    """One dialogue.

    Raises:
        Dropped: It is none; the reason says why.
    """
    if not fits(value):
        raise Dropped("no_messages", "")
    found = openai_messages(value["traj"])
    info = value.get("info") if isinstance(value.get("info"), dict) else {}
    reward = value.get("reward")
    return Outside(
        file=file,
        format=NAME,
        dialogue=f"{value.get('task_id', number)}.{value.get('trial', 0)}",
        messages=tuple(found.messages),
        calls=tuple(found.calls),
        task=_task(value, info.get("task")),
        recorded={"reward": reward} if isinstance(reward, int | float) else {},
    )


def _task(value: JsonObject, task: Any) -> OutsideTask:
    name = str(value.get("task_id"))
    if not isinstance(task, dict):
        return OutsideTask(name=name)
    gold = [
        OutsideCall(tool=str(one["name"]), arguments=arguments_of(one.get("kwargs") or {}, str(one["name"])))
        for one in task.get("actions") or ()
    ]
    return OutsideTask(
        name=name, scenario=str(task.get("instruction") or ""), gold=tuple(gold), facts=tuple(task.get("outputs") or ())
    )
