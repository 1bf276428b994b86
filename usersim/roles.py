"""Interfaces of agent and user in the dialogue loop."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from trajsmith.environments import ToolResult
from trajsmith.models import MalformedCall
from trajsmith.phrasing import Wording
from trajsmith.records import EnvironmentSpec, JsonObject, Message, Task


@dataclass(frozen=True)
class AgentAct:
    """One step of the agent: a message, with or without tool calls.

    The hints are what a scripted agent means by its words, so that a scripted user need not guess. A model gives none,
    and the user has to read the text.
    """

    message: Message
    asks: tuple[str, ...] = ()
    """Keys of the known entries that it asks for."""
    confirms: bool = False
    """It asks for a yes."""
    wants_user_call: bool = False
    """It asks the user to do something on their own device."""
    gave_up: bool = False
    hinted: bool = True
    """False if there are no hints because a model spoke."""
    fault: str = ""
    """Kind of a mistake that was made on purpose with this step."""
    malformed: tuple[MalformedCall, ...] = ()
    """Calls of the message that cannot be made; they stand in it with empty arguments."""

    def with_text(self, text: str) -> "AgentAct":
        """Return the same step with this text."""
        if text == self.message.content:
            return self
        return replace(self, message=self.message.model_copy(update={"content": text}))


@dataclass(frozen=True)
class UserCall:
    """A call that the user makes on their own device."""

    tool: str
    arguments: JsonObject


@dataclass(frozen=True)
class UserAct:
    """Reaction of the user to a message of the agent."""

    text: str = ""
    calls: tuple[UserCall, ...] = field(default=())
    done: bool = False
    """The request of this turn is dealt with; there is nothing to answer."""


class AgentRole(Protocol):
    """Plays the agent in one dialogue."""

    name: str
    prompts: dict[str, str]
    """Prompts that it was given beside the system prompt: name to hash."""

    async def act(self, messages: list[Message]) -> AgentAct:
        """Return the next step, given the conversation so far."""

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Receive results of the calls of the last step, in order; also those of calls that the user made."""


class UserRole(Protocol):
    """Plays the user in one dialogue."""

    name: str
    prompts: dict[str, str]
    """Prompts that it was given: name to hash."""

    async def open(self, turn: int) -> str:
        """Return the request that opens a turn."""

    async def reply(self, messages: list[Message], act: AgentAct) -> UserAct:
        """Return the reaction to a message without tool calls."""

    async def report(self, messages: list[Message], results: Sequence[ToolResult]) -> str:
        """Return the user's message after calls on their own device."""


class UserFactory(Protocol):
    """Factory of the user role of each play."""

    def __call__(
        self, task: Task, spec: EnvironmentSpec, wording: Wording, state: JsonObject, candidate: int
    ) -> UserRole: ...
