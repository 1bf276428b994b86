"""The agent, played by a model with native function calling: a teacher, or the model that is evaluated or trained."""

from collections.abc import Sequence
from typing import Literal

from trajsmith.environments import ToolResult
from trajsmith.models import ChatModel, ChatReply, ChatRequest
from trajsmith.records import (
    TWO_LEVEL,
    EnvironmentSpec,
    FunctionCall,
    JsonObject,
    Message,
    ModelFault,
    Task,
    ToolCall,
    derive_seed,
)
from trajsmith.usersim.dialogue import PlaySettings
from trajsmith.usersim.roles import AgentAct

UNNAMED = "unnamed_tool"
MessageFailure = Literal["malformed_call", "message_cut", "no_answer"]


class ExposedTools:
    """The tools of a task as functions, in the form that a model is given."""

    def __init__(self, task: Task, spec: EnvironmentSpec) -> None:
        self.first = tuple(tool.as_function() for tool in task.find_shown_specs(spec.tools))
        perturbation = task.twist
        self.late = perturbation is not None and perturbation.arrives is not None
        if perturbation is not None and perturbation.arrives is not None:
            self.bringing = task.turns[perturbation.arrives].query
            self.all = (*self.first, spec.tool(perturbation.tool).as_function())

    def now(self, messages: Sequence[Message]) -> tuple[JsonObject, ...]:
        """Those that can be called now: one that a message of the user brought is there from then on."""
        if not self.late:
            return self.first
        there = any(message.role == "user" and message.content == self.bringing for message in messages)
        return self.all if there else self.first


class ModelAgent:
    """Plays the agent of one task. Its messages are kept as the model gave them, reasoning included.

    Args:
        model: Answers the requests.
        candidate: Number of the play among those of its task; it decides seed and temperature.
        under_test: End the play at a message that is truncated, empty or has a call that cannot be read, without its
            calls: going on would teach and test something else than the task (AWM stops early too). A teacher instead
            reads what is wrong with its call.
        past_reasoning: Send the reasoning of earlier turns too, as contexts of training have it.
    """

    def __init__(
        self,
        model: ChatModel,
        spec: EnvironmentSpec,
        task: Task,
        settings: PlaySettings,
        candidate: int,
        under_test: bool = False,
        past_reasoning: bool = False,
    ) -> None:
        self.model = model
        self.name = model.name
        self.prompts: dict[str, str] = {}
        self.task = task
        self.seed = derive_seed(task.seed, "agent", candidate) % (1 << 31)
        warm = settings.temperatures
        self.temperature = warm[candidate % len(warm)] if warm else None
        two_level = settings.tools == "two_level" and task.search is None
        self.shown = None if two_level else ExposedTools(task, spec)
        self.under_test = under_test
        self.past_reasoning = past_reasoning
        self.tokens = 0
        """Tokens that the model wrote; replies from the cache count none."""
        self.failure: MessageFailure | None = None
        """What is wrong with the newest message of a model under test; the play ends there."""

    async def act(self, messages: list[Message]) -> AgentAct:
        request = ChatRequest(
            messages=tuple(messages if self.past_reasoning else strip_old_reasoning(messages)),
            tools=self.shown.now(messages) if self.shown else tuple(tool.as_function() for tool in TWO_LEVEL),
            temperature=self.temperature,
            seed=self.seed,
            purpose="agent",
            record=self.task.id,
        )
        if self.under_test:
            return await self._act_under_test(request)
        reply = await self.model.complete(request)
        self.tokens += reply.usage.completion_tokens
        return AgentAct(_with_malformed(reply), hinted=False, malformed=reply.malformed)

    async def _act_under_test(self, request: ChatRequest) -> AgentAct:
        """Return the message; no room left for it, or nothing but unusable replies, is the model's own failure.

        Raises:
            ModelFault: The server could not answer; that says nothing of the model.
        """
        try:
            reply = await self.model.complete(request)
        except ModelFault as fault:
            if fault.kind not in ("context_overflow", "bad_reply"):
                raise
            self.failure = "message_cut" if fault.kind == "context_overflow" else "no_answer"
            return AgentAct(Message(role="assistant", content=fault.reply), gave_up=True, hinted=False)
        self.tokens += reply.usage.completion_tokens
        self.failure = "malformed_call" if reply.malformed else "message_cut" if reply.cut else None
        message = reply.message.model_copy(update={"tool_calls": None}) if self.failure else reply.message
        return AgentAct(message, gave_up=self.failure is not None, hinted=False)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Do nothing: a model reads the messages."""


def strip_old_reasoning(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the reasoning of this turn only."""
    last = max((index for index, message in enumerate(messages) if message.role == "user"), default=0)
    return [
        message.model_copy(update={"reasoning_content": None})
        if message.reasoning_content and index < last
        else message
        for index, message in enumerate(messages)
    ]


def _with_malformed(reply: ChatReply) -> Message:
    """The message with its malformed calls in it, each with empty arguments and an id of its own."""
    if not reply.malformed:
        return reply.message
    broken = [
        ToolCall(id=call.id, function=FunctionCall(name=call.name or UNNAMED, arguments={})) for call in reply.malformed
    ]
    return reply.message.model_copy(update={"tool_calls": (*(reply.message.tool_calls or ()), *broken)})
