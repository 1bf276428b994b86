"""Tasks of a run in reinforcement learning by verl. Imports `verl`, so import it only where it is used.

`TrajsmithAgentLoop` is verl's own agent loop for tools on the episode of a task: calls go to its session, a message
without calls is said to its user, and the reward is that of the run's verdict. `agent_loop.yaml` beside the rows of
`verl_rl` names it. `compute_score` gives the same reward from the transcript, for verl's reward managers.
"""

# mypy: disable-error-code="misc"

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from verl.experimental.agent_loop.tool_agent_loop import AgentState, ToolAgentLoop
from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse

from trajsmith.environments import ToolResult
from trajsmith.pipeline.task_server import TaskEpisode, judge_transcript, keep_tasks_open
from trajsmith.records import InputError, JsonObject, ToolSpec
from trajsmith.train_grpo import ACCEPTED, MESSAGE_USER, check_exported_reward, choose_reward

THINKING = re.compile(r"\A\s*(?:<think>)?.*?</think>", re.DOTALL)


class EpisodeTool(BaseTool):
    """A tool of a task, as verl shows it to the model; the agent loop makes the call."""

    def __init__(self, config: JsonObject, tool_schema: OpenAIFunctionToolSchema) -> None:
        self.config = config  # not verl's constructor, which prints the schema: there are tools in every episode
        self.tool_schema = tool_schema
        self.name = tool_schema.function.name

    async def execute(
        self, instance_id: str, parameters: JsonObject, **_: Any
    ) -> tuple[ToolResponse, float, JsonObject]:
        """Refuse: without the agent loop there is no episode.

        Raises:
            InputError: Always.
        """
        raise InputError(f"{self.name} is called in the agent loop of trajsmith only: name it in agent_name")


class TrajsmithAgentLoop(ToolAgentLoop):
    """Plays one task until its user has no more to say.

    Args:
        run: Run directory with the tasks of the rows.
        reward: `accepted` (1 or 0), or a reward by its name.
    """

    tools: dict[str, Any]

    def __init__(self, *args: Any, run: str, reward: str = ACCEPTED, **options: Any) -> None:
        super().__init__(*args, **options)
        self._run = Path(run)
        self._reward = check_exported_reward(reward)
        self._asks_by_tool = MESSAGE_USER.name in self.tools
        self._gate = asyncio.Lock()
        self._transcript: list[JsonObject] = []
        self._broken = False

    async def run(self, sampling_params: JsonObject, **row: Any) -> Any:
        """Play the task of a row and return verl's output, with the reward.

        Where environment or user broke, nothing can be said of the model: no token is learnt, and the reward is 0.

        Raises:
            InputError: The run has no such task.
        """
        source = await asyncio.to_thread(keep_tasks_open, self._run)
        task = find_task(source.tasks, row["extra_info"]["task_id"], self._run)
        self._episode = await asyncio.to_thread(TaskEpisode, source, task)
        shown = [tool for tool in self._episode.tools if tool != MESSAGE_USER or self._asks_by_tool]
        self.tools = {tool.name: self.tools.get(tool.name) or _build_tool(tool) for tool in shown}
        self.tool_schemas = [tool.as_function() for tool in shown]
        try:
            output = await super().run(sampling_params, **row)
            if self._broken:
                played, verdict = await asyncio.to_thread(judge_transcript, source, task, self._transcript)
            else:
                played, verdict = await asyncio.to_thread(self._episode.judge)
        finally:
            self._episode.close()
        reward = choose_reward(self._reward, task, played, verdict)
        output.reward_score = reward or 0.0
        if reward is None:
            output.response_mask = [0] * len(output.response_mask)
        about = {"outcome": verdict.outcome, "reasons": list(verdict.reasons), "rewards": dict(verdict.rewards)}
        output.extra_fields |= {"transcript": orjson.dumps(self._transcript).decode(), "verdict": about}
        return output

    async def _call(self, tool: str, arguments: JsonObject) -> ToolResult:
        async with self._gate:  # calls of one message come at the same time
            self._transcript.append({"tool": tool, "arguments": arguments})
            return await asyncio.to_thread(self._episode.call, tool, arguments)

    async def _call_tool(
        self, tool_call: Any, tools_kwargs: Mapping[str, Any], agent_data: Any
    ) -> tuple[Any, float, JsonObject]:
        """Make a call of the model in the episode; arguments that cannot be read end it as a broken format."""
        try:
            arguments = orjson.loads(tool_call.arguments)
        except orjson.JSONDecodeError:
            arguments = None
        if not isinstance(arguments, dict):
            self._broken = True
            self._transcript.append({"tool": tool_call.name, "arguments": str(tool_call.arguments)})
            return ToolResponse(text='{"error":"the arguments of the call are no JSON object"}'), 0.0, {}
        result = await self._call(tool_call.name, arguments)
        return ToolResponse(text=result.text), 0.0, {}

    async def _handle_processing_tools_state(self, agent_data: Any) -> AgentState:
        state = await super()._handle_processing_tools_state(agent_data)
        return AgentState.TERMINATED if self._episode.done or self._broken else state

    async def _handle_generating_state(
        self, agent_data: Any, sampling_params: JsonObject, **options: Any
    ) -> AgentState:
        """Generate a message; one without calls is said to the user, whose answer goes on."""
        before = len(agent_data.messages)
        state = await super()._handle_generating_state(agent_data, sampling_params, **options)
        if state != AgentState.TERMINATED or len(agent_data.messages) == before:  # at a limit nothing is said
            return state
        text = THINKING.sub("", self.tokenizer.decode(agent_data.response_ids, skip_special_tokens=True)).strip()
        answer = (await self._call(MESSAGE_USER.name, {"text": text})).content
        if self._episode.done or not isinstance(answer, dict):
            return state
        previous = list(agent_data.messages)
        agent_data.messages.append({"role": "user", "content": str(answer["user"])})
        merged, agent_data.response_mask, logprobs = await self.ct_merge_context_msg(
            previous,
            agent_data.messages,
            agent_data.prompt_ids,
            agent_data.response_mask,
            agent_data.response_logprobs or None,
            tools=self.tool_schemas,
        )
        agent_data.prompt_ids = merged.token_ids
        agent_data.response_logprobs = logprobs or []
        agent_data.user_turns += 1
        return AgentState.GENERATING


def _build_tool(tool: ToolSpec) -> EpisodeTool:
    """Build a tool with the part of its schema that verl's parsers read: a type for each parameter."""
    properties = tool.input_schema.get("properties", {})
    parameters = {
        "type": "object",
        "properties": {name: {"type": _find_type(schema)} for name, schema in properties.items()},
        "required": tool.input_schema.get("required", []),
    }
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    schema = OpenAIFunctionToolSchema.model_validate({"type": "function", "function": function})
    return EpisodeTool({"type": "native"}, schema)


def _find_type(schema: JsonObject) -> str:
    """Return the type of a parameter, of several that which is not null."""
    kinds = schema.get("type") or [one.get("type") for one in schema.get("anyOf", ())]
    listed = kinds if isinstance(kinds, list) else [kinds]
    return next((kind for kind in listed if isinstance(kind, str) and kind != "null"), "string")


def find_task(tasks: Mapping[str, Any], name: str, run: Path) -> Any:
    """Return a task of a run.

    Raises:
        InputError: There is none.
    """
    if name not in tasks:
        raise InputError(f"{run} has no task {name}: TRAJSMITH_RUN must be the run that the rows were exported from")
    return tasks[name]


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: JsonObject,
    run: str,
    reward: str = ACCEPTED,
    **_: Any,
) -> float:
    """Compute the reward of an episode of the agent loop by playing its transcript again.

    verl: `reward.custom_reward_function`, path `pkg://trajsmith.pipeline.verl_agent`, `reward_kwargs.run`.

    Args:
        data_source: Environment of the row.
        solution_str: Text of the episode; what was called and said is in the transcript.
        ground_truth: The task as a record.
        extra_info: Of the row, with the `transcript` that the agent loop adds.
        run: Run directory.
        reward: `accepted` (1 or 0), or a reward by its name.

    Raises:
        InputError: There is no transcript, since another agent loop played.
    """
    lines = extra_info.get("transcript")
    if not isinstance(lines, str):
        raise InputError("the row has no transcript: play it in the agent loop of trajsmith (agent_name)")
    source = keep_tasks_open(Path(run))
    task = find_task(source.tasks, orjson.loads(ground_truth)["id"], Path(run))
    played, verdict = judge_transcript(source, task, orjson.loads(lines))
    return choose_reward(check_exported_reward(reward), task, played, verdict) or 0.0
