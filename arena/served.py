"""A model behind an endpoint as a player: limits, retries, cache and budget are those of `chatmodel`."""

from dataclasses import dataclass

from arena.roles import Complete, Reply
from chatmodel.model import ChatModel, ChatRequest
from trajectory import JsonObject, Message, ModelFault, Task, derive_seed
from usersim.model_agent import without_old_reasoning


@dataclass(frozen=True)
class ServedPlayer:
    """Episodes differ by the seed that is sent, which also keeps their answers apart in the cache.

    An answer from the cache counts no tokens: of an episode that a stop cut in two, only what was written since. What
    was spent in all is in the ledger.
    """

    model: ChatModel
    max_tokens: int | None = None
    """Limit of one message; None is the model's own setting."""
    temperature: float | None = None

    @property
    def name(self) -> str:
        return self.model.name

    def of(self, task: Task, sample: int) -> Complete:
        seed = derive_seed(task.seed, "agent", sample) % (1 << 31)

        async def complete(messages: list[Message], tools: list[JsonObject]) -> Reply:
            request = ChatRequest(
                messages=tuple(without_old_reasoning(messages)),
                tools=tuple(tools),
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                seed=seed,
                purpose="agent",
                record=task.id,
            )
            return await self._reply(request)

        return complete

    async def _reply(self, request: ChatRequest) -> Reply:
        """The answer. What is the model's own doing is one too: no room left for it, or nothing but unusable answers.

        Raises:
            ModelFault: The server could not answer; that says nothing of the model.
        """
        try:
            found = await self.model.complete(request)
        except ModelFault as fault:
            if fault.kind not in ("context_overflow", "bad_reply"):
                raise
            overflow = fault.kind == "context_overflow"
            return Reply(Message(role="assistant", content=fault.reply), 0, cut=overflow, empty=not overflow)
        cut, tokens = found.finish_reason == "length", found.usage.completion_tokens
        return Reply(found.message, tokens, cut=cut, malformed=bool(found.malformed))
