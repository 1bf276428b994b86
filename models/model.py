"""Interface of all language models: messages and tools in, one message and its usage out.

Providers implement `ChatModel`; everything else (limits, retries, cache, budget) wraps one `ChatModel` in another.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from trajsmith.records import FrozenModel, JsonObject, Message

FinishReason = Literal["stop", "tool_calls", "length"]


class Usage(FrozenModel):
    """Tokens of one request, or of many added up."""

    requests: int = 0
    """Requests that a server answered; 0 for an answer from the cache."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Part of the prompt that the server had in its prefix cache."""
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the completion that is reasoning."""

    def __add__(self, other: "Usage") -> "Usage":
        mine, theirs = self.model_dump(), other.model_dump()
        return Usage(**{name: mine[name] + theirs[name] for name in mine})


class ChatRequest(FrozenModel):
    """One request. All but `purpose`, `record` and `sent_back` decides the answer and is part of the cache key."""

    messages: tuple[Message, ...]
    tools: tuple[JsonObject, ...] = ()
    """Tools in the OpenAI form: {"type": "function", "function": {name, description, parameters}}."""
    tool_choice: Literal["auto", "none", "required"] = "auto"
    schema_name: str = ""
    """Name of the reply's schema, where the reply must be JSON."""
    reply_schema: JsonObject | None = None
    """JSON Schema that the reply's text must satisfy, or None for free text."""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    """Also what tells candidates of one prompt apart in the cache."""
    stop: tuple[str, ...] = ()
    purpose: str = ""
    """Role or stage that asks ("user", "agent", "write.goal"): usage is counted by it."""
    record: str = ""
    """Id of the record that this is asked for."""
    sent_back: dict[int, tuple[JsonObject, ...]] = {}
    """Number of a message to the items that the server gave with it; see `ChatReply.items`."""


class MalformedCall(FrozenModel):
    """A tool call that cannot be made as it stands: its arguments are no JSON object, or it has no name."""

    id: str
    name: str
    text: str
    """The arguments as the model wrote them."""
    error: str
    """What is wrong with them, for the model to read."""


class ChatReply(FrozenModel):
    """One answer."""

    message: Message
    """Role assistant; `tool_calls` holds the well-formed calls only."""
    malformed: tuple[MalformedCall, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = Usage()
    model: str = ""
    """Name that the server gave itself."""
    items: tuple[JsonObject, ...] = ()
    """Output of the Responses API as it came, if it holds reasoning that later requests of the turn send back."""
    cached: bool = False
    """It came from the request cache and cost nothing."""

    @property
    def cut(self) -> bool:
        """Return True if the reply ended at the limit of tokens."""
        return self.finish_reason == "length"


class ChatModel(Protocol):
    """A language model, whoever serves it."""

    name: str
    """What stands in provenance: the model's name."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            ModelFault: The model could not answer; the kind says which boundary broke.
            InputError: The settings are wrong (key, address, model name): nothing can be answered.
            BudgetExceeded: The run's budget is used up; what was written stays.
        """

    async def close(self) -> None:
        """Close connections; safe to call twice."""


@dataclass
class CallableModel:
    """Chat model that answers with a function: recorded messages, a trainer, or another model behind a filter."""

    name: str
    reply: Callable[[ChatRequest], Awaitable[ChatReply]]

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; see `ChatModel`."""
        return await self.reply(request)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def function_tool(name: str, description: str, parameters: JsonObject) -> JsonObject:
    """Build a tool in the form of `ChatRequest.tools`."""
    function: dict[str, Any] = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}
