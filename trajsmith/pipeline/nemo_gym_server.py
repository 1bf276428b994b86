"""Tasks of a run as a resources server of NeMo Gym. Imports `nemo_gym`, so import it only where it is used.

A session of the server is an episode of the row's task. Tools are endpoints, and what is said to the user is a call of
`message_user`; the last message of the response is said to the user, too. `/verify` computes the reward from the
response by playing it again, so it needs no session.
"""

# mypy: disable-error-code="misc"

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import orjson
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.server_utils import SESSION_ID_KEY
from pydantic import ConfigDict, PrivateAttr

from trajsmith.pipeline.task_server import TaskEpisode, judge_transcript, keep_tasks_open
from trajsmith.records import EnvironmentFault, JsonObject, JsonValue, Task
from trajsmith.train_grpo import ACCEPTED, MESSAGE_USER, check_exported_reward, choose_reward


class TaskServerConfig(BaseResourcesServerConfig):
    """Settings of the server."""

    reward: str = ACCEPTED
    """1 for a play that the pipeline accepts and 0 otherwise, or a reward by its name."""


class SeedRequest(BaseSeedSessionRequest):
    """The row of a task."""

    task_id: str


class VerifyRequest(BaseVerifyRequest):
    """The row of a task and what the agent did."""

    model_config = ConfigDict(extra="allow")
    task_id: str


class VerifyResponse(BaseVerifyResponse):
    """The reward, and the verdict in words."""

    model_config = ConfigDict(extra="allow")
    outcome: str
    reasons: list[str]
    rewards: dict[str, float | None]


class TaskServer(SimpleResourcesServer):
    """Serves the episodes of the tasks of one run; a subclass says which."""

    RUN: ClassVar[Path]
    config: TaskServerConfig
    _episodes: dict[str, TaskEpisode] = PrivateAttr(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application; every tool of every task is an endpoint."""
        check_exported_reward(self.config.reward)
        app: FastAPI = super().setup_webserver()
        app.post("/{tool}")(self.call_tool)
        app.add_exception_handler(EnvironmentFault, _answer_fault)
        return app

    def _find_task(self, name: str) -> Task:
        tasks = keep_tasks_open(self.RUN).tasks
        if name not in tasks:
            raise HTTPException(404, f"the run has no task {name} that can be played from outside")
        return tasks[name]

    async def seed_session(self, request: Request, body: SeedRequest) -> BaseSeedSessionResponse:
        """Open the episode of a row."""
        self._close_episode(request)
        task = self._find_task(body.task_id)
        self._episodes[request.session[SESSION_ID_KEY]] = TaskEpisode(keep_tasks_open(self.RUN), task)
        return BaseSeedSessionResponse()

    async def call_tool(self, tool: str, request: Request) -> Response:
        """Make one call and return the result as the agent sees it."""
        episode = self._episodes.get(request.session[SESSION_ID_KEY])
        if episode is None:
            raise HTTPException(400, "seed_session comes before the first call")
        arguments = _read_arguments((await request.body()).decode("utf-8", "replace"))
        if not isinstance(arguments, dict):
            raise HTTPException(400, "the arguments are a JSON object")
        result = await asyncio.to_thread(episode.call, tool, arguments)
        return Response(result.text, media_type="application/json")

    async def verify(self, request: Request, body: VerifyRequest) -> VerifyResponse:
        """Return the reward of a response.

        Raises:
            HTTPException: The environment or the user broke: nothing can be said of the model.
        """
        self._close_episode(request)
        lines, task = list_lines(body.response.output), self._find_task(body.task_id)
        played, verdict = await asyncio.to_thread(judge_transcript, keep_tasks_open(self.RUN), task, lines)
        reward = choose_reward(self.config.reward, task, played, verdict)
        if reward is None:
            raise HTTPException(503, f"cannot be scored: {verdict.outcome}")
        about = {"outcome": verdict.outcome, "reasons": verdict.reasons, "rewards": verdict.rewards}
        return VerifyResponse(**body.model_dump() | about, reward=reward)

    def _close_episode(self, request: Request) -> None:
        episode = self._episodes.pop(request.session[SESSION_ID_KEY], None)
        if episode is not None:
            episode.close()


async def _answer_fault(request: Request, fault: Exception) -> Response:
    """Answer a broken environment, which says nothing of the model."""
    return JSONResponse({"detail": f"cannot be scored: {fault}"}, 503)


def list_lines(output: Sequence[Any]) -> list[JsonObject]:
    """Return what the agent called and said, one entry each; text before a call is not said to the user."""
    lines: list[JsonObject] = []
    for item in output:
        if item.type == "function_call":
            lines.append({"tool": item.name, "arguments": _read_arguments(item.arguments)})
    last = output[-1] if output else None
    if last is not None and last.type == "message" and last.role == "assistant":
        text = last.content if isinstance(last.content, str) else "".join(_read_text(part) for part in last.content)
        lines.append({"tool": MESSAGE_USER.name, "arguments": {"text": text}})
    return lines


def _read_text(part: Any) -> str:
    return str(part.text) if part.type == "output_text" else ""


def _read_arguments(text: str) -> JsonValue:
    """Return the arguments as an object, or the text where they are none."""
    try:
        arguments = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return text
    return arguments if isinstance(arguments, dict) else text
