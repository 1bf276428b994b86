"""Tasks of a run as an OpenEnv server. Imports `openenv`, so import it only where it is used.

`reset(task_id=...)` opens the episode of a task, calls are OpenEnv's own actions for tools, and what is said to the
user is a call of `message_user`. When the conversation is over, the observation is done and has the reward.
"""

import asyncio
from itertools import count
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
from trajsmith.pipeline.task_server import ACCEPTED, TaskEpisode, check_reward, choose_reward, render_prompt
from trajsmith.records import InputError
from trajsmith.train_grpo import EpisodeSource


class TaskEnvironment(Environment[Action, Observation, State]):  # type: ignore[misc]
    """One episode at a time behind OpenEnv's interface."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, source: EpisodeSource, reward: str, order: "count[int]") -> None:
        super().__init__()
        self._source = source
        self._reward = reward
        self._order = order
        self._episode: TaskEpisode | None = None
        self._state = State()

    async def reset_async(
        self, seed: int | None = None, episode_id: str | None = None, task_id: str | None = None, **options: Any
    ) -> Observation:
        """Open an episode: of the task with this id, else of the task with this number, else of the next one.

        Raises:
            InputError: There is no such task, or an option means nothing here.
        """
        if options:
            raise InputError(f"reset takes task_id, seed and episode_id, not {', '.join(sorted(options))}")
        names = list(self._source.tasks)
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
        _, verdict = episode.judge()
        about = {"outcome": verdict.outcome, "reasons": list(verdict.reasons), "rewards": dict(verdict.rewards)}
        return choose_reward(verdict, self._reward), about

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> Observation:
        """The same, for who is not asynchronous."""
        return asyncio.run(self.reset_async(seed, episode_id, **options))

    def step(self, action: Action, timeout_s: float | None = None, **options: Any) -> Observation:
        """The same, for who is not asynchronous."""
        return asyncio.run(self.step_async(action, timeout_s, **options))

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


def build_task_application(source: EpisodeSource, reward: str = ACCEPTED, most: int = 1000) -> FastAPI:
    """Return OpenEnv's server for the tasks of a run, with `most` sessions at a time.

    Raises:
        InputError: The reward is unknown.
    """
    check_reward(reward)
    order = count()
    app: FastAPI = create_fastapi_app(
        lambda: TaskEnvironment(source, reward, order),
        CallToolAction,
        CallToolObservation,
        max_concurrent_envs=most if most > 1 else None,
    )
    return app
