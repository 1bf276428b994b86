"""The classes that TRL's `environment_factory` makes episodes of: one per environment and set of shown tools."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.records import Task
from trajsmith.train_grpo.rollouts import Rollout


def build_class_name(task: Task) -> str:
    """Return the class name; tasks of one environment with equal tools share it, since TRL renders tools per class."""
    foreign = {tool.name: f"{tool.server}." for tool in task.distractors}
    names = ",".join(foreign.get(name, "") + name for name in task.shown_tools)
    return f"{task.environments[0]}:{names}"


def build_environment_class(
    name: str,
    tools: Sequence[str],
    tasks: Mapping[str, Task],
    make: Callable[[Task], Rollout],
    background: BackgroundLoop,
) -> type:
    """Build the class for TRL's `environment_factory`: `reset` starts an episode, public methods are the tools.

    Our trainer speaks for the dialogue itself and does not call the methods. TRL's own loop of calls does, on the same
    dialogue: a method makes the call and gives its result as the JSON string that the rows have.

    Args:
        name: Of the class, as in the column `environment`.
        tools: Plain names of the tools that are shown.
        tasks: Tasks by id; a row names its task in the column `task_id`.
        make: Makes the episode of a task.
        background: Where episodes run.
    """

    def reset(self: Any, task_id: str, **_: Any) -> None:
        if self._rollout is not None:
            self._rollout.abandon()
        self._rollout = make(tasks[task_id])
        self._rollout.start(background)

    def method(tool: str) -> Callable[..., str]:
        def call(self: Any, **arguments: Any) -> str:
            rollout: Rollout = self._rollout
            return rollout.call(tool, arguments)

        call.__name__ = tool
        call.__doc__ = "Schemas are given to the trainer as they are."
        return call

    members: dict[str, Any] = {tool: method(tool) for tool in tools}
    return type(name, (), members | {"reset": reset, "_rollout": None})
