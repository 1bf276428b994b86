"""Tasks of a run as an OpenEnv server. Imports `openenv`, so import it only where it is used.

`reset(task_id=...)` opens the episode of a task, calls are OpenEnv's own actions for tools, and what is said to the
user is a call of `message_user`. When the conversation is over, the observation is done and has the reward.
"""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
)
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State

from trajsmith.environments.serving.openenv import build_tool, build_tool_observation
from trajsmith.pipeline.task_server import TaskEpisode, keep_tasks_open, render_prompt
from trajsmith.records import InputError, JsonObject
from trajsmith.train_grpo import ACCEPTED, EpisodeSource, check_exported_reward, choose_reward

SPLIT = "all"
"""Name of the one split of tasks that is served."""


class TaskEnvironment(Environment[Action, Observation, State]):  # type: ignore[misc]
    """One episode at a time behind OpenEnv's interface, and OpenEnv's `TaskProvider` for its tasks."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, open_source: Callable[[], EpisodeSource], reward: str, order: "count[int]") -> None:
        super().__init__()
        self._open_source = open_source
        self._reward = reward
        self._order = order
        self._episode: TaskEpisode | None = None
        self._state = State()

    @property
    def _source(self) -> EpisodeSource:
        return self._open_source()

    async def reset_async(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_id: str | None = None,
        split: str | None = None,
        index: int | None = None,
        **options: Any,
    ) -> Observation:
        """Open an episode: of the task with this id or index, else of the task with this number, else of the next one.

        Raises:
            InputError: There is no such task or split, or an option means nothing here.
        """
        if options:
            known = "task_id, split, index, seed and episode_id"
            raise InputError(f"reset takes {known}, not {', '.join(sorted(options))}")
        names = [task["id"] for task in self.list_tasks(SPLIT if split is None else split)]
        if index is not None:
            try:
                task_id = self.get_task(SPLIT, index)["id"]
            except IndexError as error:
                raise InputError(str(error)) from error
        name = task_id if task_id is not None else names[(next(self._order) if seed is None else seed) % len(names)]
        if name not in self._source.tasks:
            raise InputError(f"the run has no task {name} that can be played from outside")
        self.close()
        task = self._source.tasks[name]
        self._episode = TaskEpisode(self._source, task)
        self._state = State(episode_id=episode_id)
        prompt = [
            {"role": "system", "content": render_prompt(self._source, task)},
            {"role": "user", "content": task.turns[0].query},
        ]
        return Observation(metadata={"task_id": name, "prompt": prompt})

    async def step_async(self, action: Action, timeout_s: float | None = None, **_: Any) -> Observation:
        """List the tools of the task, or call one; the last message to the user ends the episode with the reward."""
        episode = self._episode
        if episode is None:
            raise InputError("reset comes before the first call")
        if isinstance(action, ListToolsAction):
            return ListToolsObservation(tools=[build_tool(tool) for tool in episode.tools])
        if not isinstance(action, CallToolAction):
            raise InputError('an action is {"type": "call_tool", "tool_name": ..., "arguments": {...}} or "list_tools"')
        async with asyncio.timeout(timeout_s):
            result = await asyncio.to_thread(episode.call, action.tool_name, action.arguments)
            self._state.step_count += 1
            observation = build_tool_observation(action.tool_name, result)
            if episode.done:
                observation.done = True
                observation.reward, observation.metadata = await asyncio.to_thread(self._judge, episode)
        return observation

    def _judge(self, episode: TaskEpisode) -> tuple[float | None, dict[str, Any]]:
        """Return the reward, None where execution cannot tell, and the verdict in words."""
        played, verdict = episode.judge()
        about = {"outcome": verdict.outcome, "reasons": list(verdict.reasons), "rewards": dict(verdict.rewards)}
        return choose_reward(self._reward, episode.task, played, verdict), about

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> Observation:
        """The same, for who is not asynchronous."""
        return asyncio.run(self.reset_async(seed, episode_id, **options))

    def step(self, action: Action, timeout_s: float | None = None, **options: Any) -> Observation:
        """The same, for who is not asynchronous."""
        return asyncio.run(self.step_async(action, timeout_s, **options))

    def list_splits(self) -> list[str]:
        """Return the name of the one split."""
        return [SPLIT]

    def num_tasks(self, split: str) -> int:
        """Return the number of tasks."""
        return len(self.list_tasks(split))

    def list_tasks(self, split: str) -> list[JsonObject]:
        """Return id, environment and number of turns of each task.

        Raises:
            InputError: There is no such split.
        """
        if split != SPLIT:
            raise InputError(f"there is no split {split!r}: the tasks are in {SPLIT!r}")
        tasks = self._source.tasks.values()
        return [{"id": task.id, "environment": task.environments[0], "turns": len(task.turns)} for task in tasks]

    def get_task(self, split: str, index: int) -> JsonObject:
        """Return one of `list_tasks`.

        Raises:
            IndexError: There is no such task.
        """
        tasks = self.list_tasks(split)
        if not 0 <= index < len(tasks):
            raise IndexError(f"there is no task {index}: the split {split!r} has {len(tasks)}")
        return tasks[index]

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[JsonObject]:
        """Return some of `list_tasks`, as a slice."""
        return self.list_tasks(split)[start:stop]

    @property
    def state(self) -> State:
        """Episode and number of calls."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Return name and number of tasks."""
        return EnvironmentMetadata(name="trajsmith", description=f"{len(self._source.tasks)} tasks of a run")

    def close(self) -> None:
        """Cancel the episode."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None


def build_task_application(
    source: EpisodeSource | Callable[[], EpisodeSource],
    reward: str = ACCEPTED,
    most: int = 1000,
    name: str = "trajsmith",
) -> FastAPI:
    """Return OpenEnv's server for the tasks of a run, with `most` sessions at a time.

    Args:
        source: The tasks, or what opens them at the first request.
        reward: `accepted` (1 or 0), or a reward by its name.
        most: Sessions at a time.
        name: Of the environment, in the addresses of its tasks.

    Raises:
        InputError: The reward is unknown.
    """
    check_exported_reward(reward)
    order = count()
    open_source = (lambda: source) if isinstance(source, EpisodeSource) else source
    app: FastAPI = create_fastapi_app(
        lambda: TaskEnvironment(open_source, reward, order),
        CallToolAction,
        CallToolObservation,
        max_concurrent_envs=most if most > 1 else None,
        env_name=name,
    )
    return app


def build_package_application(run: Path, name: str) -> FastAPI:
    """Return the server of an exported package; its tasks are opened at the first request."""
    return build_task_application(lambda: keep_tasks_open(run), name=name)
