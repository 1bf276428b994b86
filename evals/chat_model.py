"""A model behind an endpoint as a player: limits, retries, cache and budget are those of `trajsmith.models`."""

from dataclasses import dataclass

from trajsmith.evals.roles import CompletionFn, ModelOutput
from trajsmith.models.model import ChatModel, ChatRequest
from trajsmith.records import JsonObject, Message, ModelFault, Task, derive_seed
from trajsmith.usersim.model_agent import strip_old_reasoning


@dataclass(frozen=True)
class ChatEvaluatedModel:
    """Evaluated model behind a chat endpoint; each episode sends its own seed, which also separates cached answers.

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

    def of(self, task: Task, sample: int) -> CompletionFn:
        seed = derive_seed(task.seed, "agent", sample) % (1 << 31)

        async def complete(messages: list[Message], tools: list[JsonObject]) -> ModelOutput:
            request = ChatRequest(
                messages=tuple(strip_old_reasoning(messages)),
                tools=tuple(tools),
                temperature=self.temperature,
                max_tokens=self.max_tokens,
                seed=seed,
                purpose="agent",
                record=task.id,
            )
            return await self._reply(request)

        return complete

    async def _reply(self, request: ChatRequest) -> ModelOutput:
        """The answer. What is the model's own doing is one too: no room left for it, or nothing but unusable answers.

        Raises:
            ModelFault: The server could not answer; that says nothing of the model.
        """
        try:
            reply = await self.model.complete(request)
        except ModelFault as fault:
            if fault.kind not in ("context_overflow", "bad_reply"):
                raise
            overflow = fault.kind == "context_overflow"
            return ModelOutput(Message(role="assistant", content=fault.reply), 0, cut=overflow, empty=not overflow)
        cut, tokens = reply.finish_reason == "length", reply.usage.completion_tokens
        return ModelOutput(reply.message, tokens, cut=cut, malformed=bool(reply.malformed))
