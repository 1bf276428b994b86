"""A model as the agent of a dialogue, behind one narrow asynchronous function; and who plays the user."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trajsmith.environments import ToolResult
from trajsmith.export.history import apply_window
from trajsmith.models.model import ChatModel
from trajsmith.models.prompts import Prompts
from trajsmith.phrasing import Wording
from trajsmith.records import EnvironmentSpec, JsonObject, Message, Task
from trajsmith.usersim import AgentAct, ExposedTools, PlaySettings, RoleContext, UserRole, build_user


@dataclass(frozen=True)
class ModelOutput:
    """Message that a model generated, with token count and format errors."""

    message: Message
    tokens: int
    """Tokens that it wrote."""
    cut: bool = False
    """It ran into the limit of tokens, or the conversation into that of the context."""
    malformed: bool = False
    """It began a tool call that cannot be read."""
    empty: bool = False
    """It said nothing that can be used, however often it was asked."""

    @property
    def broken(self) -> bool:
        """Return True if the episode cannot continue after this message."""
        return self.cut or self.malformed or self.empty


CompletionFn = Callable[[list[Message], list[JsonObject]], Awaitable[ModelOutput]]
"""Messages so far and tools as OpenAI functions to the next message of the assistant."""


class EvaluatedModel(Protocol):
    """Model under evaluation, wherever it runs."""

    @property
    def name(self) -> str:
        """Return the model's name in the results."""

    def of(self, task: Task, sample: int) -> CompletionFn:
        """The model in one episode; episodes of one task are told apart by their number."""


@dataclass(frozen=True)
class CallableModel:
    """Model that answers every episode with one function."""

    name: str
    complete: CompletionFn

    def of(self, task: Task, sample: int) -> CompletionFn:
        return self.complete


def limit_history(complete: CompletionFn, window: int) -> CompletionFn:
    """Wrap a completion function so that the model sees only the last `window` assistant turns.

    What is kept is what rows keep (AWM, appendix A): the beginning, the first exchange, the latest request.
    """

    async def shown(messages: list[Message], tools: list[JsonObject]) -> ModelOutput:
        places: list[JsonObject] = [{"role": message.role, "at": at} for at, message in enumerate(messages)]
        return await complete([messages[row["at"]] for row in apply_window(places, len(places), window)], tools)

    return shown


class EvaluatedAgent:
    """Agent of one task, played by the evaluated model; a truncated or malformed message ends the episode.

    Going on after an unreadable call would teach and test something else than the task (AWM stops early too).
    """

    def __init__(self, name: str, complete: CompletionFn, shown: ExposedTools) -> None:
        self.name = name
        self.prompts: dict[str, str] = {}
        self.complete = complete
        self.shown = shown
        self.tokens = 0
        self.last: ModelOutput | None = None
        """The newest reply."""

    async def act(self, messages: list[Message]) -> AgentAct:
        self.last = reply = await self.complete(messages, list(self.shown.now(messages)))
        self.tokens += reply.tokens
        return AgentAct(_without_calls(reply), gave_up=reply.broken, hinted=False)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Do nothing: a model reads the messages."""


def _without_calls(reply: ModelOutput) -> Message:
    """Return the message; of a reply that ends the episode the calls are removed."""
    return reply.message.model_copy(update={"tool_calls": None}) if reply.broken else reply.message


class UserFactory(Protocol):
    """Factory of the user role of each episode."""

    def __call__(
        self, task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, sample: int
    ) -> UserRole: ...


@dataclass(frozen=True)
class RoleUserFactory:
    """Factory of users of a registered role."""

    role: str = "scripted"
    prompts: Prompts = field(default_factory=Prompts)
    model: ChatModel | None = None

    def __call__(self, task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, sample: int) -> UserRole:
        context = RoleContext(task, spec, wording, state, sample, PlaySettings(), self.prompts, self.model)
        return build_user(self.role, context)


create_scripted_user = RoleUserFactory()
"""The scripted user, which matches the model's text against patterns."""
