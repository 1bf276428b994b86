"""All models of a run: opened when first needed, shared by the roles that they play, closed together."""

import asyncio
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import orjson

from chatmodel.answers import Answers
from chatmodel.model import ChatModel, ChatReply, ChatRequest, Usage, function_tool
from chatmodel.persistent import Persistent, patient
from chatmodel.provider import Provider, open_provider
from chatmodel.settings import SCRIPTED, BudgetSettings, ModelSettings, Role, RoleSettings, RolesSettings, Sampling
from chatmodel.usage import UsageLedger
from trajectory import Message, ModelFault

CACHE, ANSWERS = "cache", "answers.sqlite"
USAGE = "usage.jsonl"
LANDING_SECONDS = 30.0
"""What is in flight when a run ends gets this long to land: it is paid, so its answer is worth keeping."""
PROBE = function_tool("look_up", "Look up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})


class _Shared:
    """One entry of `models` with its connection, answers and budget. Two equal requests at a time are sent once."""

    def __init__(
        self,
        entry: str,
        settings: ModelSettings,
        provider: Provider,
        answers: Answers,
        ledger: UsageLedger,
        again: str,
    ) -> None:
        self.settings = settings
        self.provider = provider
        self.persistent = Persistent(entry, provider, patient(settings) if settings.batch else settings, again)
        self._answers = answers
        self._ledger = ledger
        self._fixed = orjson.dumps([entry, settings.provider, settings.model, settings.extra_body])
        self._flying: dict[bytes, asyncio.Task[ChatReply]] = {}

    def peek(self, request: ChatRequest) -> ChatReply | None:
        content = request.model_dump_json(exclude={"purpose", "record"}).encode()
        return self._answers.get(sha256(self._fixed + content).digest()[:20])

    async def complete(self, request: ChatRequest) -> ChatReply:
        content = request.model_dump_json(exclude={"purpose", "record"}).encode()
        key = sha256(self._fixed + content).digest()[:20]
        known = self._answers.get(key)
        if known is not None:
            return known.model_copy(update={"cached": True})
        flying = self._flying.get(key)
        if flying is not None:
            reply = await asyncio.shield(flying)
            return reply.model_copy(update={"cached": True, "usage": Usage()})
        task = asyncio.create_task(self._ask(request, key, len(content)))
        self._flying[key] = task
        task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)  # whoever asked may be cancelled; what is paid is kept

    async def _ask(self, request: ChatRequest, key: bytes, size: int) -> ChatReply:
        price, name = self.settings.price, self.settings.model

        def wasted(usage: Usage) -> None:
            self._ledger.pay(request, name, usage, price, size)

        with self._ledger.reserve(size, request.max_tokens, price) as reserved:
            reply = await self.persistent.send(request, reserved.tokens, wasted)
            self._ledger.pay(request, name, reply.usage, price, size, key, reply)
        return reply

    def _landed(self, key: bytes, task: asyncio.Task[ChatReply]) -> None:
        self._flying.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at: nobody may be waiting for it any more

    async def close(self) -> None:
        self.persistent.hurry()
        if self._flying:
            seconds = 0.0 if self.settings.batch else LANDING_SECONDS  # batches are noted and taken up again
            await asyncio.wait(list(self._flying.values()), timeout=seconds)
        late = list(self._flying.values())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        await self.provider.close()


class Talker:
    """A model in a role: fills in what requests leave open."""

    def __init__(self, role: Role, settings: RoleSettings, shared: _Shared) -> None:
        model = shared.settings
        self.name = model.model
        self.role: Role = role
        self._shared = shared
        self._fill: Sampling = Sampling(
            temperature=model.temperature if settings.temperature is None else settings.temperature,
            top_p=model.top_p if settings.top_p is None else settings.top_p,
            max_tokens=model.max_tokens if settings.max_tokens is None else settings.max_tokens,
            seed=model.seed if settings.seed is None else settings.seed,
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; see `ChatModel`."""
        return await self._shared.complete(self.filled(request))

    def peek(self, request: ChatRequest) -> ChatReply | None:
        """The answer that this request got before, or None; nothing is sent."""
        return self._shared.peek(self.filled(request))

    def filled(self, request: ChatRequest) -> ChatRequest:
        """The request as it is sent: what it leaves open is filled in."""
        fill = self._fill
        filled = {
            "temperature": fill.temperature if request.temperature is None else request.temperature,
            "top_p": fill.top_p if request.top_p is None else request.top_p,
            "max_tokens": fill.max_tokens if request.max_tokens is None else request.max_tokens,
            "seed": fill.seed if request.seed is None else request.seed,
            "purpose": self._purpose(request.purpose),
        }
        return request.model_copy(update=filled)

    def _purpose(self, purpose: str) -> str:
        """The role comes first in it, for usage is counted by role: "writer.persona"."""
        own = purpose == self.role or purpose.startswith(f"{self.role}.")
        return purpose if own else f"{self.role}.{purpose}" if purpose else self.role

    async def close(self) -> None:
        """Nothing: the board closes what roles share."""


class Board:
    """Models by name and talkers by role, with one cache and one ledger of what they cost.

    Args:
        folder: Run directory.
        again: The command that goes on after a stop, for the line that says how; settings can be added to it.
    """

    def __init__(
        self,
        models: dict[str, ModelSettings],
        roles: RolesSettings,
        budget: BudgetSettings,
        folder: Path,
        again: str,
    ) -> None:
        self._models = models
        self._roles = roles
        self._folder = folder / CACHE
        self._answers = Answers(self._folder / ANSWERS)
        self.ledger = UsageLedger(folder / USAGE, self._answers, budget, again)
        self._again = again
        self._open: dict[str, _Shared] = {}

    def talker(self, role: Role) -> ChatModel | None:
        """Who plays a role; None for the scripted language.

        Raises:
            InputError: The model's key is missing, or its provider's library.
        """
        settings = self._roles.of(role)
        if settings.model == SCRIPTED:
            return None
        return Talker(role, settings, self._shared(settings.model))

    async def try_out(self, roles: Iterable[Role]) -> None:
        """One short request to each model of which something is left to find out: does it take tools, is it there.

        Raises:
            InputError: The server takes no tools, or has no such model.
            BudgetSpent: There is nothing to spend.
        """
        played: dict[str, set[Role]] = {}
        for role in roles:
            played.setdefault(self._roles.of(role).model, set()).add(role)
        for name, parts in played.items():
            if name != SCRIPTED and self._models[name].preflight:
                shared = self._shared(name)
                known = await shared.provider.check()
                if "agent" in parts or not (known or shared.settings.batch):
                    await _try(shared, with_tools="agent" in parts)

    def _shared(self, name: str) -> _Shared:
        if name not in self._open:
            settings = self._models[name]
            provider = open_provider(name, settings, self._folder)
            self._open[name] = _Shared(name, settings, provider, self._answers, self.ledger, self._again)
        return self._open[name]

    async def close(self) -> None:
        """Let land what is in flight, then let go of everything; safe to call twice."""
        try:
            await asyncio.gather(*(shared.close() for shared in self._open.values()))
        finally:
            self.ledger.close()
            self._answers.close()


async def check_models(models: dict[str, ModelSettings], roles: RolesSettings, played: Iterable[Role]) -> None:
    """Find out before any work whether the models of these roles can be used; costs nothing and writes nothing.

    Raises:
        InputError: Key, address or name of a model is wrong.
    """
    for name in dict.fromkeys(roles.of(role).model for role in played):
        if name != SCRIPTED and models[name].preflight:
            provider = open_provider(name, models[name])
            try:
                await provider.check()
            finally:
                await provider.close()


async def _try(shared: _Shared, with_tools: bool) -> None:
    """Failures other than those of settings are for the run to meet."""
    asked = Message(role="user", content="Look up the word tree.")
    tools = (PROBE,) if with_tools else ()
    try:
        await shared.complete(ChatRequest(messages=(asked,), tools=tools, max_tokens=64, purpose="preflight"))
    except ModelFault:
        return
