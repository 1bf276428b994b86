"""Tasks of a run as a task of Inspect. Imports `inspect_ai`, so import it only where it is used.

The model talks with the simulated user and calls the tools of the task on a session of its own. The score is computed
from the conversation by playing it again, so that a stored log can be scored once more (`inspect score`).
"""

# mypy: disable-error-code="untyped-decorator"

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task as InspectTask
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser, execute_tools
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef, ToolParams

from trajsmith.pipeline.task_server import TaskEpisode, judge_transcript, keep_tasks_open, render_prompt
from trajsmith.records import JsonObject, JsonValue, Task, ToolSpec
from trajsmith.train_grpo import ACCEPTED, MESSAGE_USER, EpisodeSource, check_exported_reward, choose_reward


def build_inspect_task(run: Path, scorer: Scorer, message_limit: int = 200) -> InspectTask:
    """Build the task: a sample per task of the run, and a solver that plays it.

    Args:
        run: Run directory, or the `run` folder of an exported package.
        scorer: Scores a conversation, as `score_by_verdict` does.
        message_limit: Messages of a conversation.

    Raises:
        InputError: The run has no tasks.
    """
    source = keep_tasks_open(run)
    samples = [_build_sample(source, task) for task in source.tasks.values()]
    return InspectTask(
        dataset=MemoryDataset(samples, name=run.resolve().name),
        solver=play_dialogue(str(run)),
        scorer=scorer,
        message_limit=message_limit,
    )


def _build_sample(source: EpisodeSource, task: Task) -> Sample:
    prompt: list[ChatMessage] = [
        ChatMessageSystem(content=render_prompt(source, task)),
        ChatMessageUser(content=task.turns[0].query),
    ]
    about = {
        "task_id": task.id, "environment": task.environments[0], "variant": task.variant, "turns": len(task.turns),
    }  # fmt: skip
    return Sample(id=task.id, input=prompt, metadata=about)


@solver
def play_dialogue(run: str) -> Solver:
    """Let the model answer the simulated user of a run's tasks until the conversation is over."""
    source = keep_tasks_open(Path(run))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        episode = TaskEpisode(source, source.tasks[state.metadata["task_id"]])
        state.tools = [
            build_tool(tool, _bind_call(episode, tool.name)).as_tool() for tool in episode.tools if tool != MESSAGE_USER
        ]
        try:
            while not episode.done and not state.completed:
                state = await generate(state, tool_calls="none")
                if state.output.message.tool_calls:
                    results = await execute_tools(state.messages, state.tools)
                    state.messages.extend(results.messages)
                    continue
                arguments = {"text": state.output.message.text}
                reply = (await asyncio.to_thread(episode.call, MESSAGE_USER.name, arguments)).content
                if not episode.done and isinstance(reply, dict):
                    state.messages.append(ChatMessageUser(content=str(reply["user"])))
        finally:
            episode.close()
        return state

    return solve


def _bind_call(episode: TaskEpisode, name: str) -> Callable[..., Awaitable[str]]:
    async def execute(**arguments: JsonValue) -> str:
        return (await asyncio.to_thread(episode.call, name, arguments)).text

    return execute


def build_tool(tool: ToolSpec, call: Callable[..., Awaitable[str]]) -> ToolDef:
    """Return a tool as Inspect shows it to models."""
    parameters = ToolParams.model_validate(tool.input_schema)
    return ToolDef(call, name=tool.name, description=tool.description, parameters=parameters)


def score_by_verdict(run: str, reward: str = ACCEPTED) -> Scorer:
    """Score a conversation by the pipeline's verdict; it is unscored where environment or user broke.

    `inspect score` finds a scorer by its name in the file of the task, with the arguments that the log has as text. So
    the file registers the scorer, and a run is named by its path.

    Args:
        run: Run directory of the tasks.
        reward: `accepted` (1 or 0), or a reward of `trajsmith.verify.rewards` by its name.

    Raises:
        InputError: The run has no tasks, or the reward is unknown.
    """
    check_exported_reward(reward)
    source = keep_tasks_open(Path(run))

    async def score(state: TaskState, target: Target) -> Score:
        task = source.tasks[state.metadata["task_id"]]
        played, judged = await asyncio.to_thread(judge_transcript, source, task, list_lines(state.messages))
        value = choose_reward(reward, task, played, judged)
        explanation = f"{judged.outcome}: {'; '.join(judged.reasons)}".removesuffix(": ")
        about = {"rewards": dict(judged.rewards), "outcome": judged.outcome}
        if value is None:
            return Score.unscored(reason="scoring_failed", explanation=explanation, metadata=about)
        return Score(value=value, explanation=explanation, metadata=about)

    return score


def list_lines(messages: Sequence[Any]) -> list[JsonObject]:
    """Return what the model called and said, one entry each, without calls that an approver of Inspect refused."""
    refused = {
        one.tool_call_id for one in messages if one.role == "tool" and one.error and one.error.type == "approval"
    }
    lines: list[JsonObject] = []
    for message in messages:
        if message.role != "assistant":
            continue
        for call in message.tool_calls or ():
            if call.id not in refused:
                arguments = call.arguments if call.parse_error is None else call.parse_error
                lines.append({"tool": call.function, "arguments": arguments})
        if not message.tool_calls:
            lines.append({"tool": MESSAGE_USER.name, "arguments": {"text": message.text}})
    return lines
