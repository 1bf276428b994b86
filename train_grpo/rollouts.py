"""Episodes that run beside the trainer: the same dialogue and verdict as in evaluation, asked for one step at a time.

The dialogue waits until the trainer has generated its next message; while the trainer generates, nothing waits, and
the calls of all episodes of a batch are made at the same time.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from arena import Episode, Ground, Reply, play_episode
from environments.blocking import Background
from trajectory import EnvironmentFault, JsonObject, Message, Task, Trajectory, Verdict
from usersim import PlaySettings

Step = list[Message] | None
"""What was said so far when the model is asked, or None when the episode is over."""


class Rollout:
    """One episode in the background; it asks by `steps` and is answered by `answers`."""

    def __init__(self, task: Task, ground: Ground, play: PlaySettings) -> None:
        self.task = task
        self.ground = ground
        self.play = play
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self.answers: asyncio.Queue[Reply] = asyncio.Queue()
        self.done: tuple[Episode, Trajectory, Verdict] | None = None
        """Result, None until it is over or if the environment did not start."""

    def start(self, background: Background) -> None:
        background.run(self._start())

    async def _start(self) -> None:
        self.running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            self.done = await play_episode(self.task, self.ground, "policy", self._complete, self.play, 0)
        except EnvironmentFault:
            self.done = None
        finally:
            await self.steps.put(None)

    async def _complete(self, messages: list[Message], tools: list[JsonObject]) -> Reply:
        await self.steps.put(list(messages))
        return await self.answers.get()


def next_steps(background: Background, rollouts: Sequence[Rollout]) -> list[Step]:
    """The next question of every episode; they reach it together."""

    async def gather() -> list[Step]:
        return list(await asyncio.gather(*(rollout.steps.get() for rollout in rollouts)))

    return background.run(gather())


def answer(background: Background, pairs: Sequence[tuple[Rollout, Reply]]) -> None:
    """Give the episodes what the model said."""

    async def put() -> None:
        for rollout, reply in pairs:
            rollout.answers.put_nowait(reply)

    background.run(put())


def environment_class(
    name: str, tools: Sequence[str], tasks: Mapping[str, Task], make: Callable[[Task], Rollout]
) -> type:
    """The class that TRL's `environment_factory` expects: `reset` starts an episode, public methods name the tools.

    Calls do not go through the methods: the dialogue makes them, with the session's own checks.
    """

    def reset(self: Any, task_id: str, **_: Any) -> None:
        self._rollout = make(tasks[task_id])

    def method(tool: str) -> Callable[..., str]:
        def call(self: Any, **arguments: Any) -> str:
            raise NotImplementedError("calls are made by the dialogue")

        call.__name__ = tool
        call.__doc__ = "Schemas are given to the trainer as they are."
        return call

    members: dict[str, Any] = {tool: method(tool) for tool in tools}
    return type(name, (), members | {"reset": reset, "_rollout": None})
