"""Session manager of one connection: a session opened once, one call at a time, closed with the connection."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from trajsmith.environments.serving.admin import ADMIN_TOOLS
from trajsmith.environments.session import EnvironmentSource, Session, ToolResult
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    ToolSpec,
    environment_boundary,
)


@dataclass(frozen=True)
class ServingSpec:
    """Environment, state, actor and tools that are served to every client."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    state: JsonObject
    """The initial state of every connection."""
    actor: Actor = "assistant"
    """Whose tools are offered."""
    admin: bool = False
    """True if clients may also load, save and reset the state."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools of the actor, and those of the administration where they are wanted."""
        own = tuple(tool for tool in self.spec.tools if tool.actor == self.actor)
        return own + (tuple(ADMIN_TOOLS.values()) if self.admin else ())


async def prepare_serving(
    source: EnvironmentSource,
    seed: int = 0,
    state: int | JsonObject = 0,
    actor: Actor = "assistant",
    admin: bool = False,
) -> ServingSpec:
    """Look up everything that clients are offered, so that wrong input shows before the first one connects.

    Args:
        state: Number of one of the source's initial states for this seed, or a state.

    Raises:
        InputError: There is no such state, or nothing to offer, or a tool has the name of an admin tool.
        EnvironmentFault: The environment does not start.
    """
    spec = await source.spec()
    if isinstance(state, int):
        states = await source.states(seed)
        if not 0 <= state < len(states):
            raise InputError(f"environment {spec.name} has no initial state {state}; it has 0 to {len(states) - 1}")
        state = states[state]
    offer = ServingSpec(source, spec, state, actor, admin)
    if not any(tool.actor == actor for tool in spec.tools):
        raise InputError(f"environment {spec.name} has no tools for the {actor}")
    taken = sorted(ADMIN_TOOLS.keys() & {tool.name for tool in spec.tools}) if admin else []
    if taken:
        raise InputError(f"environment {spec.name} has a tool {taken[0]} of its own: serve it without admin tools")
    return offer


class SessionManager:
    """Manages the session of one connection. After a fault, calls are refused until a reset."""

    def __init__(self, offer: ServingSpec) -> None:
        self._offer = offer
        self._session: Session | None = None
        self._alone = asyncio.Lock()
        self._work: set[asyncio.Task[ToolResult]] = set()
        self._broken: EnvironmentFault | None = None
        self._closed = False

    async def open(self) -> None:
        """Start the session, if it is not started yet.

        Raises:
            EnvironmentFault: It does not start, or not from this state.
        """
        await self._in_turn(self._opened)

    async def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        """Make one call after those that came before. Who stops waiting does not stop the call: it may have begun.

        Raises:
            EnvironmentFault: The environment broke now or before.
        """
        return await self._in_turn(lambda: self._call(tool, arguments))

    async def close(self) -> None:
        """End calls that still run, and free the session."""
        self._closed = True
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _in_turn(self, work: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        async def wait_and_work() -> ToolResult:
            async with self._alone:
                if self._closed:
                    raise EnvironmentFault("state", self._offer.spec.name, "the connection is closed")
                return await work()

        task = asyncio.create_task(wait_and_work())
        self._work.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[ToolResult]) -> None:
        self._work.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has seen it; nobody else needs to hear of it

    async def _opened(self) -> ToolResult:
        await self._ready()
        return ToolResult(None)

    async def _ready(self) -> Session:
        if self._session is None:
            name = self._offer.spec.name
            with environment_boundary(name, trusted=True):
                session = await self._offer.source.open()
                try:
                    await session.reset(self._offer.state)
                except BaseException:  # cancelled too: nothing may be left behind
                    with suppress(Exception):
                        await session.close()
                    raise
            self._session = session
        return self._session

    async def _call(self, tool: str, arguments: JsonObject) -> ToolResult:
        session = await self._ready()
        spec = self._offer.spec
        admin = self._offer.admin and tool in ADMIN_TOOLS
        if self._broken is not None and not admin:
            remedy = "call reset" if self._offer.admin else "connect again"
            raise EnvironmentFault(self._broken.kind, spec.name, f"it broke before ({self._broken}): {remedy}", tool)
        try:
            with environment_boundary(spec.name, tool, trusted=True):
                if admin:
                    return await self._administer(session, tool, arguments)
                return await session.call(tool, arguments, self._offer.actor)
        except EnvironmentFault as fault:
            self._broken = fault
            raise

    async def _administer(self, session: Session, tool: str, arguments: JsonObject) -> ToolResult:
        wanted = set(ADMIN_TOOLS[tool].parameters)
        if arguments.keys() != wanted or not all(isinstance(value, dict) for value in arguments.values()):
            text = "give `state`, an object, and nothing else" if wanted else "there are no arguments"
            return ToolResult.refusal("invalid_arguments", text)
        if tool == "save_state":
            return ToolResult(await session.snapshot())
        await session.reset(arguments.get("state", self._offer.state))
        self._broken = None
        return ToolResult({"state_hash": await session.state_hash()})
