"""Tasks of a run as an environment of the `verifiers` package. Imports `verifiers`, so import it only where it is used.

    eval trajsmith --env.taskset.run runs/quickstart

Tools are those that the task shows, word for word, on a session of each rollout's own; the user is the scripted one. A
rollout is scored by playing the model's messages again on a fresh session: the verdict is the pipeline's.
"""

# mypy: disable-error-code="misc, untyped-decorator"

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import verifiers.v1 as vf
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from pydantic import AfterValidator
from verifiers.v1.types import content_text

from trajsmith.environments.serving.mcp_server import to_mcp_result, to_mcp_tool
from trajsmith.environments.serving.session_manager import ServingSpec, SessionManager
from trajsmith.evals import EvalContext, play_episode
from trajsmith.models import CallableModel, ChatReply, ChatRequest, MalformedCall
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.task_server import is_moved_by_calls, iter_solutions
from trajsmith.records import EnvironmentFault, FunctionCall, JsonObject, Message, Task, ToolCall, Trajectory, Verdict
from trajsmith.train_grpo import ACCEPTED, build_text_reply, check_exported_reward, choose_reward
from trajsmith.usersim import AgentAct, PlaySettings, ToolAccess, build_scripted_user, render_system_prompt
from trajsmith.verify import prune_trajectory

__all__ = ["RunEnv", "RunTaskset"]

STEPS = 10_000
"""Messages of the model per turn when it is scored: the harness has the limit."""


@dataclass(frozen=True)
class _Place:
    task: Task
    ground: EvalContext

    @property
    def state(self) -> JsonObject:
        return self.ground.state(self.task.initial_state)


@lru_cache(maxsize=4)
def _opened(run: str) -> dict[str, _Place]:
    """Tasks of a run by id, with what they stand on."""
    directory = RunDirectory.open(Path(run))
    grounds = _in_a_thread(directory)
    return {task.id: _Place(task, grounds[task.environments[0]]) for task in split_tasks(directory, "all")}


@lru_cache(maxsize=4)
def _find_solutions(run: str) -> dict[str, tuple[Message, ...]]:
    """Messages of an accepted play of each task that has one."""
    solutions = iter_solutions(RunDirectory.open(Path(run)))
    return {judged.task.id: prune_trajectory(judged.trajectory, judged.verdict.pruned).messages for judged in solutions}


def _in_a_thread(directory: RunDirectory) -> Mapping[str, EvalContext]:
    """Opened in a thread of its own, since an event loop runs in this one."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(open_eval_contexts(directory))).result()


class RunData(vf.TaskData):
    """Task data that travels to workers: run directory and task id."""

    run: str
    task_id: str

    @property
    def place(self) -> _Place:
        """The task and its environment."""
        return _opened(self.run)[self.task_id]


class RunToolsConfig(vf.ToolsetConfig):
    """Settings of a rollout's tool server."""


class RunTools(vf.Toolset[RunToolsConfig, vf.State]):
    """The tools that a task shows, on one session: one process per rollout."""

    TOOL_PREFIX = None

    async def setup_task(self, task: Any) -> None:
        """Open the session at the initial state of the task."""
        place: _Place = task.place
        own = tuple(tool for tool in place.ground.spec.tools if tool.name in place.task.exposed_tools)
        spec = place.ground.spec.model_copy(update={"tools": own})
        self.access = ToolAccess(place.task, spec)
        self.tools = [to_mcp_tool(tool) for tool in self.access.shown]
        self.session_manager = SessionManager(ServingSpec(place.ground.source, spec, place.state))
        await self.session_manager.open()

    def register(self, mcp: Any) -> None:
        """The handlers of our own MCP server: schemas and results as they are; a Python signature would change them."""
        server = mcp._lowlevel_server
        server.add_request_handler("tools/list", PaginatedRequestParams, self._list)
        server.add_request_handler("tools/call", CallToolRequestParams, self._call)

    async def _list(self, ctx: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self.tools)

    async def _call(self, ctx: Any, params: CallToolRequestParams) -> CallToolResult:
        function = FunctionCall(name=params.name, arguments=params.arguments or {})
        (call,) = self.access.resolve_message([ToolCall(id="call", function=function)])
        if call.result is not None:
            return to_mcp_result(call.result)
        return to_mcp_result(await self.session_manager.call(call.tool, call.arguments))


class RunTaskConfig(vf.TaskConfig):
    """Settings of rewards and tool servers."""

    reward: Annotated[str, AfterValidator(check_exported_reward)] = ACCEPTED
    """1 for a play that the pipeline accepts and 0 otherwise, or a reward by its name."""
    tools: RunToolsConfig = RunToolsConfig()


class RunTask(vf.Task[RunData, vf.State, RunTaskConfig]):
    """One task of a run."""

    @property
    def key(self) -> str:
        """The id of the task: it does not depend on where the run lies."""
        return str(self.data.task_id)

    async def validate(self, runtime: Any) -> bool | None:
        """Play the accepted play of the run again; None if the run has none."""
        solution = _find_solutions(self.data.run).get(self.data.task_id)
        if solution is None:
            return None
        _, judgement = await judge_rollout(self.data.place, solution)
        return judgement.accepted

    @classmethod
    def toolsets(cls, config: RunTaskConfig) -> list[Any]:
        return [RunTools(config.tools)]

    @vf.reward
    async def verdict(self, trace: Any) -> float:
        """The reward that the settings name, as the pipeline gives it.

        Raises:
            EnvironmentFault: The environment or the user broke: nothing can be said of the model.
        """
        name, task = self.config.reward, self.data.place.task
        played, judgement = await judge_rollout(self.data.place, extract_messages(trace))
        reward = choose_reward(name, task, played, judgement)
        if reward is None:
            raise EnvironmentFault("state", judgement.environment, f"cannot be scored: {judgement.outcome}")
        return reward

    @vf.metric
    async def checks(self, trace: Any) -> dict[str, float]:
        """Every reward by its name, the share of gold calls, and whether the task was done."""
        _, judgement = await judge_rollout(self.data.place, extract_messages(trace))
        return judgement.rewards | {"gold_calls": judgement.trajectory_match, "accepted": float(judgement.accepted)}


class RunTasksetConfig(vf.TasksetConfig):
    """Settings of the tasks."""

    run: Path = Path("runs/quickstart")
    """Run directory."""
    split: Literal["train", "validation", "test", "all"] = "train"
    limit: int | None = None
    """At most this many tasks of each environment."""
    task: RunTaskConfig = RunTaskConfig()


class RunTaskset(vf.Taskset[RunTask, RunTasksetConfig]):
    """Tasks of a run, but for those in which the user has tools of their own, or something is staged to go wrong."""

    def load(self) -> Iterator[RunTask]:
        path = self.config.run.resolve()
        for task in split_tasks(RunDirectory.open(path), self.config.split, self.config.limit):
            if not is_moved_by_calls(task):
                continue
            place = _opened(str(path))[task.id]
            system = render_system_prompt(place.ground.spec, task, place.state)
            data = RunData(id=task.id, prompt=None, system_prompt=system, run=str(path), task_id=task.id)
            yield RunTask(data, self.config.task)


class RunEnvConfig(vf.EnvConfig):
    """The one seat. Its harness runs no code of the model, so it needs no container."""

    agent: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})


class RunEnv(vf.Env[RunEnvConfig]):
    """The user of the task speaks, the model answers, until all turns are over."""

    async def run(self, task: Any, agents: Any) -> None:
        place: _Place = task.data.place
        user = build_scripted_user(place.task, place.ground.spec, place.ground.wording, place.state, 0)
        async with agents.agent.interaction(task) as talk:
            for turn in range(len(place.task.turns)):
                text = await user.open(turn)
                while text:
                    user_message = await talk.turn(text)
                    if user_message.terminated:
                        return
                    act = AgentAct(Message(role="assistant", content=user_message.last_reply), hinted=False)
                    reply = await user.reply(extract_messages(talk.trace), act)
                    text = "" if reply.done else reply.text


def extract_messages(trace: Any) -> list[Message]:
    """The conversation of a trace in our own records."""
    branches = trace.branches
    return [_message(one) for one in branches[-1].messages] if branches else []


def _message(one: Any) -> Message:
    content = content_text(one.content or "")
    if one.role == "assistant":
        calls = tuple(_call(call) for call in one.tool_calls or ())
        return Message(role="assistant", content=content, tool_calls=calls or None)
    if one.role == "tool":
        return Message(role="tool", content=content, tool_call_id=one.tool_call_id, name=one.name)
    return Message(role=one.role, content=content)


def _call(call: Any) -> ToolCall:
    """The call; arguments that are no object stand in it as none, under a name that no tool has."""
    arguments = None
    with contextlib.suppress(orjson.JSONDecodeError):
        arguments = orjson.loads(call.arguments or "{}")
    whole = isinstance(arguments, dict)
    function = FunctionCall(name=call.name if whole else "", arguments=arguments if whole else {})
    return ToolCall(id=call.id, function=function)


async def judge_rollout(place: _Place, messages: Sequence[Message]) -> tuple[Trajectory, Verdict]:
    """Play what the model said and called again, and return the trajectory and the verdict. What is missing is silence.

    Raises:
        EnvironmentFault: The tools gave something else the second time.
    """
    assistant_messages = iter([message for message in messages if message.role == "assistant"])

    async def repeat(request: ChatRequest) -> ChatReply:
        message = next(assistant_messages, None)
        if message is None:
            return build_text_reply("")
        unreadable = [call for call in message.tool_calls or () if not call.function.name]
        malformed = [MalformedCall(id=call.id, name="", text="", error="unreadable") for call in unreadable]
        return ChatReply(message=message, malformed=tuple(malformed))

    play = PlaySettings(max_steps=STEPS)
    _, played, verdict = await play_episode(place.task, place.ground, CallableModel("model", repeat), play, 0)
    mine, theirs = (_list_results(one, place.task) for one in (played.messages, messages))
    if mine != theirs[: len(mine)]:
        raise EnvironmentFault("state", played.environment, "the tools gave other results when the calls were repeated")
    return played, verdict


def _list_results(messages: Sequence[Message], task: Task) -> list[str]:
    """List what tools of the task gave; calls of other tools the harness answers in its own words."""
    names: dict[str, str] = {}
    results = []
    for message in messages:
        names |= {call.id: call.function.name for call in message.tool_calls or ()}
        if message.role == "tool" and names.get(message.tool_call_id or "") in task.shown_tools:
            results.append(message.content)
    return results


if __name__ == "__main__":
    RunTools.run()
