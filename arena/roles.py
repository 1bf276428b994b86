"""A model as the agent of a dialogue, behind one narrow asynchronous function."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from environments import ToolResult
from trajectory import JsonObject, Message
from usersim import AgentAct


@dataclass(frozen=True)
class Reply:
    """What a model said."""

    message: Message
    tokens: int
    """Tokens that it wrote."""
    cut: bool = False
    """It ran into the limit of tokens."""
    malformed: bool = False
    """It began a tool call that cannot be read."""


Complete = Callable[[list[Message], list[JsonObject]], Awaitable[Reply]]
"""Messages so far and tools as OpenAI functions to the next message of the assistant."""


class ModelAgent:
    """Plays the agent of one task; a message that was cut or whose call cannot be read ends the episode.

    Going on after an unreadable call would teach and test something else than the task (AWM stops early too).
    """

    def __init__(self, name: str, complete: Complete, tools: list[JsonObject]) -> None:
        self.name = name
        self.prompts: dict[str, str] = {}
        self.complete = complete
        self.tools = tools
        self.tokens = 0
        self.cut = self.malformed = False

    async def act(self, messages: list[Message]) -> AgentAct:
        reply = await self.complete(messages, self.tools)
        self.tokens += reply.tokens
        self.cut, self.malformed = self.cut or reply.cut, self.malformed or reply.malformed
        return AgentAct(reply.message, gave_up=reply.cut or reply.malformed)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        """Results stand in the messages; there is nothing else to note."""
