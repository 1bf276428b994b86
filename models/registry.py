"""Registry of the models of a run: opened on first use, shared by roles, closed together."""

import asyncio
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import cast

import orjson

from trajsmith.models.checkpoint_info import read_checkpoint_info
from trajsmith.models.model import ChatModel, ChatReply, ChatRequest, Usage, function_tool
from trajsmith.models.provider import Provider, open_provider
from trajsmith.models.response_cache import ResponseCache
from trajsmith.models.retry import RetryingProvider, build_batch_settings
from trajsmith.models.settings import (
    SCRIPTED,
    BudgetSettings,
    ModelSettings,
    Role,
    RoleSettings,
    RolesSettings,
    Sampling,
)
from trajsmith.models.tracing import describe_reply, describe_request, describe_texts
from trajsmith.models.usage import UsageLedger
from trajsmith.records import (
    InputError,
    JsonObject,
    Message,
    ModelFault,
    ToolStyle,
    render_tools,
    trace_operation,
)

CACHE, ANSWERS = "cache", "answers.sqlite"
USAGE = "usage.jsonl"
DRAIN_SECONDS = 30.0
"""What is in flight when a run ends gets this long to land: it is paid, so its answer is worth keeping."""
PROBE = function_tool("look_up", "Look up a word.", {"type": "object", "properties": {"word": {"type": "string"}}})


class _SharedModel:
    """One configured model with its connection, cache and budget; identical concurrent requests are sent once."""

    def __init__(
        self,
        entry: str,
        settings: ModelSettings,
        provider: Provider,
        answers: ResponseCache,
        ledger: UsageLedger,
        again: str,
    ) -> None:
        self.settings = settings
        self.provider = provider
        self.retrying = RetryingProvider(
            entry, provider, build_batch_settings(settings) if settings.batch else settings, again
        )
        self._answers = answers
        self._ledger = ledger
        fixed = [entry, settings.provider, settings.model, settings.extra_body]
        self._fixed = orjson.dumps([*fixed, settings.api] if settings.api == "responses" else fixed)
        self._flying: dict[bytes, asyncio.Task[ChatReply]] = {}

    def peek(self, request: ChatRequest) -> ChatReply | None:
        return self._answers.get(self._hash(request)[0])

    def _hash(self, request: ChatRequest) -> tuple[bytes, int]:
        """Return the key of a request in the cache, and its bytes."""
        content = request.model_dump_json(exclude={"purpose", "record", "sent_back"}).encode()
        return sha256(self._fixed + content).digest()[:20], len(content)

    async def complete(self, request: ChatRequest) -> ChatReply:
        key, size = self._hash(request)
        known = self._answers.get(key)
        if known is not None:
            return known.model_copy(update={"cached": True})
        flying = self._flying.get(key)
        if flying is not None:
            reply = await asyncio.shield(flying)
            return reply.model_copy(update={"cached": True, "usage": Usage()})
        task = asyncio.create_task(self._ask(request, key, size))
        self._flying[key] = task
        task.add_done_callback(lambda done: self._finish_request(key, done))
        return await asyncio.shield(task)  # whoever asked may be cancelled; what is paid is kept

    async def _ask(self, request: ChatRequest, key: bytes, size: int) -> ChatReply:
        price, name = self.settings.price, self.settings.model
        if self.settings.api == "responses":
            request = request.model_copy(update={"sent_back": self._find_items(request)})

        def wasted(usage: Usage) -> None:
            self._ledger.pay(request, name, usage, price, size)

        describe, remote = partial(describe_request, request, self.settings), not self.settings.is_in_process
        with trace_operation("chat", name, describe, remote) as span:
            with self._ledger.reserve(size, request.max_tokens, price) as reserved:
                reply = await self.retrying.send(request, reserved.tokens, wasted)
                self._ledger.pay(request, name, reply.usage, price, size, key, reply)
            if span is not None:
                span.set(describe_reply(reply))
                span.set(describe_texts(request, reply) if span.with_content else {})
        return reply

    def _find_items(self, request: ChatRequest) -> dict[int, tuple[JsonObject, ...]]:
        """Find what the server said in this turn, reasoning included, by the requests that it answered."""
        items = {}
        for number in range(len(request.messages) - 1, -1, -1):
            message = request.messages[number]
            if message.role == "user":
                break
            if message.role == "assistant" and message.tool_calls:
                asked = request.model_copy(update={"messages": request.messages[:number]})
                reply = self._answers.get(self._hash(asked)[0])
                if reply is not None and reply.items and reply.message.tool_calls == message.tool_calls:
                    items[number] = reply.items
        return items

    def _finish_request(self, key: bytes, task: asyncio.Task[ChatReply]) -> None:
        self._flying.pop(key, None)
        if not task.cancelled():
            task.exception()  # looked at: nobody may be waiting for it any more

    async def close(self) -> None:
        self.retrying.stop_retrying()
        if self._flying:
            seconds = 0.0 if self.settings.batch else DRAIN_SECONDS  # batches are noted and taken up again
            await asyncio.wait(list(self._flying.values()), timeout=seconds)
        late = list(self._flying.values())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        await self.provider.close()


class RoleModel:
    """Model in one role: fills in request parameters that are left open."""

    def __init__(self, role: Role, settings: RoleSettings, shared: _SharedModel) -> None:
        model = shared.settings
        self.name = model.model
        self.role: Role = role
        self._shared = shared
        self._tools: ToolStyle = model.tools or read_checkpoint_info(model.model).tools
        self._fill: Sampling = Sampling(
            temperature=model.temperature if settings.temperature is None else settings.temperature,
            top_p=model.top_p if settings.top_p is None else settings.top_p,
            max_tokens=model.max_tokens if settings.max_tokens is None else settings.max_tokens,
            seed=model.seed if settings.seed is None else settings.seed,
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; see `ChatModel`."""
        return await self._shared.complete(self.fill_request(request))

    def peek(self, request: ChatRequest) -> ChatReply | None:
        """Return the cached reply to this request, or None; nothing is sent."""
        return self._shared.peek(self.fill_request(request))

    def fill_request(self, request: ChatRequest) -> ChatRequest:
        """Return the request as it is sent, with open parameters filled in."""
        fill = self._fill
        filled = {
            "temperature": fill.temperature if request.temperature is None else request.temperature,
            "top_p": fill.top_p if request.top_p is None else request.top_p,
            "max_tokens": fill.max_tokens if request.max_tokens is None else request.max_tokens,
            "seed": fill.seed if request.seed is None else request.seed,
            "purpose": self._purpose(request.purpose),
            "tools": tuple(render_tools(request.tools, self._tools)),
        }
        return request.model_copy(update=filled)

    def _purpose(self, purpose: str) -> str:
        """The role comes first in it, for usage is counted by role: "writer.persona"."""
        own = purpose == self.role or purpose.startswith(f"{self.role}.")
        return purpose if own else f"{self.role}.{purpose}" if purpose else self.role

    async def close(self) -> None:
        """Do nothing: the registry closes shared models."""


class ModelRegistry:
    """Models by name and role models by role, with one cache and one usage ledger.

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
        self._answers = ResponseCache(self._folder / ANSWERS)
        self.ledger = UsageLedger(folder / USAGE, self._answers, budget, again)
        self._again = again
        self._open: dict[str, _SharedModel] = {}

    def role_model(self, role: Role) -> ChatModel | None:
        """Return the model that plays a role; None for the scripted language.

        Raises:
            InputError: The model's key is missing, or its provider's library.
        """
        settings = self._roles.of(role)
        if settings.model == SCRIPTED:
            return None
        return RoleModel(role, settings, self._shared(settings.model))

    def require_role_model(self, role: str) -> ChatModel:
        """Return the model that plays a role.

        Raises:
            InputError: None does, its key is missing, or its provider's library.
        """
        model = self.role_model(cast(Role, role))
        if model is None:
            raise InputError(f"no model plays the {role}: name one")
        return model

    async def run_preflight(self, roles: Iterable[Role]) -> None:
        """Send one short request to each model whose availability or tool support is unknown.

        Raises:
            InputError: The server takes no tools, or has no such model.
            BudgetExceeded: There is nothing to spend.
        """
        played: dict[str, set[Role]] = {}
        for role in roles:
            played.setdefault(self._roles.of(role).model, set()).add(role)
        for name, parts in played.items():
            if name != SCRIPTED and self._models[name].preflight:
                shared = self._shared(name)
                known = await shared.provider.check()
                if "agent" in parts or not (known or shared.settings.batch):
                    await _send_probe(shared, with_tools="agent" in parts)

    def _shared(self, name: str) -> _SharedModel:
        if name not in self._open:
            settings = self._models[name]
            provider = open_provider(name, settings, self._folder)
            self._open[name] = _SharedModel(name, settings, provider, self._answers, self.ledger, self._again)
        return self._open[name]

    async def close(self) -> None:
        """Wait for pending requests, then close all clients; safe to call twice."""
        try:
            await asyncio.gather(*(shared.close() for shared in self._open.values()))
        finally:
            self.ledger.close()
            self._answers.close()


async def check_models(models: dict[str, ModelSettings], roles: RolesSettings, played: Iterable[Role]) -> None:
    """Check before any work that the models of these roles can be used; sends no paid request and writes nothing.

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


async def _send_probe(shared: _SharedModel, with_tools: bool) -> None:
    """Send a probe request; failures other than wrong settings are left to the run."""
    asked = Message(role="user", content="Look up the word tree.")
    tools = (PROBE,) if with_tools else ()
    try:
        await shared.complete(ChatRequest(messages=(asked,), tools=tools, max_tokens=64, purpose="preflight"))
    except ModelFault:
        return
