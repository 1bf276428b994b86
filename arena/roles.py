"""A model as the agent of a dialogue, behind one narrow asynchronous function; and who plays the user."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from chatmodel import Wording
from chatmodel.model import ChatModel
from chatmodel.prompts import Prompts
from chatmodel.surface import clock_of
from environments import ToolResult
from export.history import windowed
from trajectory import EnvironmentSpec, JsonObject, Message, Task
from usersim import AgentAct, ModelUser, ShownTools, UserRole
from usersim import scripted_user as user_by_script


@dataclass(frozen=True)
class Reply:
    """What a model said."""

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
        """True if the episode cannot go on from it."""
        return self.cut or self.malformed or self.empty


Complete = Callable[[list[Message], list[JsonObject]], Awaitable[Reply]]
"""Messages so far and tools as OpenAI functions to the next message of the assistant."""


class Player(Protocol):
    """A model that is evaluated, wherever it runs."""

    @property
    def name(self) -> str:
        """What it is called in the results."""

    def of(self, task: Task, sample: int) -> Complete:
        """The model in one episode; episodes of one task are told apart by their number."""


@dataclass(frozen=True)
class Fixed:
    """A player that answers every episode by one function."""

    name: str
    complete: Complete

    def of(self, task: Task, sample: int) -> Complete:
        return self.complete


def through_window(complete: Complete, window: int) -> Complete:
    """The same model, which sees only the last `window` assistant turns, as one that was trained on such rows does.

    What is kept is what rows keep (AWM, appendix A): the beginning, the first exchange, the latest request.
    """

    async def shown(messages: list[Message], tools: list[JsonObject]) -> Reply:
        places: list[JsonObject] = [{"role": message.role, "at": at} for at, message in enumerate(messages)]
        return await complete([messages[row["at"]] for row in windowed(places, len(places), window)], tools)

    return shown


class ModelAgent:
    """Plays the agent of one task; a message that was cut or whose call cannot be read ends the episode.

    Going on after an unreadable call would teach and test something else than the task (AWM stops early too).
    """

    def __init__(self, name: str, complete: Complete, shown: ShownTools) -> None:
        self.name = name
        self.prompts: dict[str, str] = {}
        self.complete = complete
        self.shown = shown
        self.tokens = 0
        self.last: Reply | None = None
        """The newest reply."""

    async def act(self, messages: list[Message]) -> AgentAct:
        self.last = reply = await self.complete(messages, list(self.shown.now(messages)))
        self.tokens += reply.tokens
        return AgentAct(_without_calls(reply), gave_up=reply.broken, hinted=False)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Nothing: a model reads the messages."""


def _without_calls(reply: Reply) -> Message:
    """The message; calls of one that ends the episode are not made."""
    return reply.message.model_copy(update={"tool_calls": None}) if reply.broken else reply.message


class Users(Protocol):
    """Gives every episode its user."""

    def __call__(
        self, task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, sample: int
    ) -> UserRole: ...


def scripted_user(task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, sample: int) -> UserRole:
    """The scripted user, who reads what the model says by patterns."""
    return user_by_script(task, wording, sample, clock_of(state))


@dataclass(frozen=True)
class ModelUsers:
    """Users played by a model."""

    model: ChatModel
    prompts: Prompts

    def __call__(self, task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, sample: int) -> UserRole:
        return ModelUser(self.model, spec, wording, task, state, sample, self.prompts)
