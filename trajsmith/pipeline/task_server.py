"""One task of a run as an MCP server: its tools, and `message_user` for what the agent says; and the verdict.

The dialogue and the verdict are those of evaluation. What is called and said is written down line by line, so that the
verdict can be computed elsewhere, from the transcript alone.
"""

import asyncio
import atexit
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path

import orjson

from trajsmith.environments import ToolResult
from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.environments.serving import ServingSpec
from trajsmith.models import ChatReply, MalformedCall
from trajsmith.pipeline.dataset_selection import iter_accepted
from trajsmith.pipeline.eval_contexts import list_training_tasks, open_eval_contexts
from trajsmith.pipeline.record_joins import JudgedTrajectory
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    FunctionCall,
    InputError,
    JsonObject,
    Message,
    Task,
    ToolCall,
    Trajectory,
    Verdict,
)
from trajsmith.train_grpo import (
    MESSAGE_USER,
    EpisodeSource,
    Rollout,
    build_text_reply,
)
from trajsmith.usersim import PlaySettings, render_system_prompt
from trajsmith.verify import prune_trajectory

OVER = "the conversation is over"
MAX_STEPS = 1000
"""Messages of the agent per turn: the harness has limits of its own."""


@contextmanager
def open_tasks(run: RunDirectory) -> Iterator[EpisodeSource]:
    """Open the tasks of a run that an agent outside can play, by id in `tasks`.

    Raises:
        InputError: The run has no tasks, or a tool has the name of `message_user`.
    """
    background = BackgroundLoop()
    try:
        grounds = background.run(open_eval_contexts(run))
        tasks = list_training_tasks(run, "all")
        for task in tasks:
            if MESSAGE_USER.name in task.shown_tools:
                raise InputError(f"{task.environments[0]} has a tool {MESSAGE_USER.name} of its own")
        yield EpisodeSource(tasks, grounds, background, PlaySettings(max_steps=MAX_STEPS))
    finally:
        background.close()


@lru_cache(maxsize=4)
def keep_tasks_open(run: Path) -> EpisodeSource:
    """Open the tasks of a run until the process ends, for frameworks that load a module and never close it.

    Raises:
        InputError: As `open_tasks`.
    """
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(open_tasks(RunDirectory.open(run)))


class TaskEpisode:
    """One episode of a task, driven from outside by calls; what is said to the user is a call, too."""

    def __init__(self, source: EpisodeSource, task: Task) -> None:
        self.task = task
        self.tools = (*source.list_shown_tools(task), MESSAGE_USER)
        self.done = False
        """The conversation is over."""
        self._rollout: Rollout = source.open_episode(task.id)
        self._rollout.start(source.background)

    def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        """Make one call; a text for the user gives what they say next."""
        if self.done:
            return ToolResult.refusal("refused", OVER)
        if tool != MESSAGE_USER.name:
            text = self._rollout.call(tool, arguments)
            self.done = self._rollout.asked is None
            return parse_result(text)
        message = arguments.get("text")
        if not isinstance(message, str) or len(arguments) != 1:
            return ToolResult.refusal("invalid_arguments", "give `text`, a string, and nothing else")
        reply = self._rollout.say(message)
        self.done = reply is None
        return ToolResult({"user": OVER if reply is None else reply})

    def judge(self) -> tuple[Trajectory, Verdict]:
        """End the episode and return the trajectory and the verdict.

        Raises:
            EnvironmentFault: The environment did not start.
        """
        result = self._rollout.finish("")
        if result is None:
            raise EnvironmentFault("state", self.task.environments[0], "the environment did not start")
        return result[1], result[2]

    def close(self) -> None:
        """Cancel the episode."""
        self._rollout.abandon()


def parse_result(text: str) -> ToolResult:
    """Return a result as the agent sees it; an object that has only an error is a refusal."""
    content = orjson.loads(text)
    if isinstance(content, dict) and content.keys() == {"error"} and isinstance(content["error"], str):
        return ToolResult.refusal("refused", content["error"])
    return ToolResult(content)


class EpisodeSession:
    """An episode as a session of the server; every connection shares it, and what is called is written down."""

    def __init__(self, spec: EnvironmentSpec, episode: TaskEpisode, transcript: Path | None) -> None:
        self.spec = spec
        self.episode = episode
        self._transcript = transcript

    async def reset(self, state: JsonObject) -> None:
        """Do nothing: the episode goes on with every connection."""

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Make one call and write it down before it is answered."""
        if self._transcript is not None and not self.episode.done:
            line = orjson.dumps({"tool": tool, "arguments": arguments}) + b"\n"
            with self._transcript.open("ab") as file:
                file.write(line)
        return await asyncio.to_thread(self.episode.call, tool, arguments)

    async def snapshot(self) -> JsonObject:
        """Return nothing: the state of a task is not shown."""
        return {}

    async def state_hash(self) -> str:
        """Return nothing: the state of a task is not shown."""
        return ""

    async def close(self) -> None:
        """Do nothing: the episode goes on with the next connection."""


class EpisodeServer:
    """Gives the sessions of `ServingSpec` for one episode."""

    def __init__(self, session: EpisodeSession) -> None:
        self._session = session

    async def open(self) -> EpisodeSession:
        """Return the session of the episode."""
        return self._session


def build_serving(source: EpisodeSource, task: Task, transcript: Path | None) -> ServingSpec:
    """Return what a server offers for one episode of a task."""
    ground = source.grounds[task.environments[0]]
    episode = TaskEpisode(source, task)
    spec = ground.spec.model_copy(update={"tools": episode.tools, "policy": render_prompt(source, task)})
    session = EpisodeSession(spec, episode, transcript)
    return ServingSpec(EpisodeServer(session), spec, {})  # type: ignore[arg-type]  # nothing but `open` is asked


def render_prompt(source: EpisodeSource, task: Task) -> str:
    """Return the system prompt of a task."""
    ground = source.grounds[task.environments[0]]
    return render_system_prompt(ground.spec, task, ground.state(task.initial_state))


def build_transcript(messages: Sequence[Message]) -> list[JsonObject]:
    """Return what the agent called and said, one entry each."""
    lines: list[JsonObject] = []
    for message in messages:
        if message.role != "assistant":
            continue
        for call in message.tool_calls or ():
            lines.append({"tool": call.function.name, "arguments": call.function.arguments})
        if not message.tool_calls:
            lines.append({"tool": MESSAGE_USER.name, "arguments": {"text": message.content}})
    return lines


def judge_transcript(source: EpisodeSource, task: Task, lines: Sequence[JsonObject]) -> tuple[Trajectory, Verdict]:
    """Play what was called and said again, and return the trajectory and the verdict. What is missing is silence.

    Arguments that are no object, but the text of a call that nobody could read, end the play as a broken format.

    Raises:
        EnvironmentFault: The environment did not start.
    """
    replies = [_build_reply(line, number) for number, line in enumerate(lines, 1)]
    rollout = source.open_episode(task.id)
    rollout.start(source.background)
    result = rollout.replay([*replies, build_text_reply("")])
    if result is None:
        raise EnvironmentFault("state", task.environments[0], "the environment did not start")
    return result[1], result[2]


def iter_solutions(run: RunDirectory) -> Iterator[JudgedTrajectory]:
    """Iterate over the tasks that have an accepted play in the run's selection, with their first one."""
    last = ""
    for judged in iter_accepted(run):
        if judged.task.id != last:
            last = judged.task.id
            yield judged


def build_solution(judged: JudgedTrajectory) -> list[JsonObject]:
    """Return the transcript of an accepted play, without the calls that its verdict takes out."""
    return build_transcript(prune_trajectory(judged.trajectory, judged.verdict.pruned).messages)


def find_reason_against(source: EpisodeSource, task: Task, solution: Sequence[JsonObject]) -> str:
    """Return why a task cannot stand alone, or nothing: its solution must pass, and silence must fail."""
    if task.id not in source.tasks:
        return "tools_change_during_play"
    if not judge_transcript(source, task, solution)[1].accepted:
        return "solution_fails"
    return "silence_passes" if judge_transcript(source, task, [])[1].accepted else ""


def is_moved_by_calls(task: Task) -> bool:
    """Return True if nothing but the agent's calls changes the state and the tools of a session."""
    return not task.user_tools and not (task.twist and (task.twist.hidden or task.twist.refusal))


def _build_reply(line: JsonObject, number: int) -> ChatReply:
    tool, arguments = str(line["tool"]), line["arguments"]
    if not isinstance(arguments, dict):
        error = "the arguments of the call cannot be read"
        malformed = MalformedCall(id=f"call_{number}", name=tool, text=str(arguments), error=error)
        return ChatReply(message=Message(role="assistant"), malformed=(malformed,))
    if tool == MESSAGE_USER.name and isinstance(arguments.get("text"), str):
        return build_text_reply(arguments["text"])
    call = ToolCall(id=f"call_{number}", function=FunctionCall(name=tool, arguments=arguments))
    return ChatReply(message=Message(role="assistant", tool_calls=(call,)))
