"""Sessions for code that is not asynchronous, such as trainers: one event loop in a thread of its own serves all."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import Any, Self, TypeVar

from trajsmith.environments.sandbox.batching import call_batch
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import EnvironmentSource, Session, ToolResult
from trajsmith.phrasing import Wording
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, InputError, JsonObject, ToolSpec

Value = TypeVar("Value")


class BackgroundLoop:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="environments", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Do it there and wait for what comes of it; any number of threads may wait at a time."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def start(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        """Begin it there and go on; what comes of it is in the future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def closed(self) -> bool:
        """Return True after `close`."""
        return self._loop.is_closed()

    def close(self) -> None:
        """End the loop; what is under way is cancelled."""
        self.run(_cancelled())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancelled() -> None:
    """Cancel everything else in this loop and wait until it has let go of what it held."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def run_blocking(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine to its end, from a script or inside a running event loop.

    In a script the coroutine gets an event loop in this thread. In a notebook or an asynchronous program a loop runs in
    this thread already: the coroutine then gets a loop in a thread of its own, and the caller's loop waits until this
    call returns. `await asyncio.to_thread(...)` keeps the caller's loop responsive. An interrupt cancels the work in
    both; inside `asyncio.run`, which keeps the first Ctrl-C for itself, the second one does.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    background = BackgroundLoop()
    try:
        return background.run(work)
    finally:
        background.close()


class BlockingSession:
    """A `Session` with plain methods; they raise what its methods raise."""

    def __init__(self, background: BackgroundLoop, session: Session) -> None:
        self.spec: EnvironmentSpec = session.spec
        self._background = background
        self.session = session

    @classmethod
    def open(cls, background: BackgroundLoop, source: EnvironmentSource) -> "BlockingSession":
        """A new session of an environment; `reset` it before use."""
        return cls(background, background.run(source.open()))

    def reset(self, state: JsonObject) -> None:
        self._background.run(self.session.reset(state))

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        return self._background.run(self.session.call(tool, arguments, actor))

    def snapshot(self) -> JsonObject:
        return self._background.run(self.session.snapshot())

    def state_hash(self) -> str:
        return self._background.run(self.session.state_hash())

    def close(self) -> None:
        self._background.run(self.session.close())


class EnvironmentSession:
    """Synchronous session of one environment at one of its initial states; `trajsmith.open_environment` opens it.

    Use it as a context manager, or call `close`. It works from scripts and inside a running event loop, since the
    environment runs in a thread of its own. Sessions share nothing.

    Args:
        source: The environment.
        seed: Seed of the initial state.
        state: Initial state in place of the environment's own first one.

    Raises:
        EnvironmentFault: The environment does not start.
        InputError: The environment cannot be used as it is, or has no initial state.
    """

    def __init__(self, source: EnvironmentSource, seed: int = 0, state: JsonObject | None = None) -> None:
        self._source = source
        self._background = BackgroundLoop()
        self._session: Session | None = None
        self.initial_state: JsonObject = {}
        """State of the last `reset`."""
        try:
            self._session = self._background.run(source.open())
            self.spec: EnvironmentSpec = self._session.spec
            self.reset(seed, state)
        except BaseException:  # whatever happens, threads and processes end; it goes on up
            self.close()
            raise

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Tools of the agent and of the user, as MCP describes them."""
        return self.spec.tools

    @property
    def state(self) -> JsonObject:
        """State as JSON now: all of it, or what can be observed of a live server."""
        return self.run(lambda session: session.snapshot())

    @cached_property
    def wording(self) -> Wording:
        """Wording of the values of this environment."""
        return Wording(self._source.phrasebook, self.spec.tools, self._source.scenarios)

    def reset(self, seed: int | None = None, state: JsonObject | None = None) -> JsonObject:
        """Start from an initial state, whatever happened before, and return it.

        Args:
            seed: Seed of the environment's own initial state; without it and without `state`, the last one.
            state: Initial state to start from.

        Raises:
            InputError: The environment has no initial state, or this is no state of it.
        """
        if state is None and seed is not None:
            states = self._background.run(self._source.states(seed))
            if not states:
                raise InputError(f"environment {self.spec.name} has no initial state: pass one as state=")
            state = states[0]
        self.initial_state = self.initial_state if state is None else state
        self.run(lambda session: session.reset(self.initial_state))
        return self.initial_state

    def call(self, name: str, /, **arguments: Any) -> ToolResult:
        """Call a tool as the agent and return its result.

        A refusal (`ToolError`, arguments that the schema refuses, an unknown tool) is a result too: `ok` is False,
        `error` its kind, and the state is as it was.

        Raises:
            EnvironmentFault: The environment broke.
        """
        return self.run(lambda session: session.call(name, arguments))

    def run(self, work: Callable[[Session], Coroutine[Any, Any, Value]]) -> Value:
        """Run asynchronous work on the session and wait for its result.

        Raises:
            InputError: The session is closed.
        """
        if self._session is None:
            raise InputError(f"the session of {self._source.name} is closed: open another one")
        return self._background.run(work(self._session))

    def close(self) -> None:
        """End the session and the processes of the environment; safe to call twice."""
        session, self._session = self._session, None
        if self._background.closed:
            return
        try:
            if session is not None:
                self._background.run(session.close())
        finally:
            self._background.close()
            if isinstance(self._source, SandboxSource):
                self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def call_all(
    background: BackgroundLoop, calls: Sequence[tuple[BlockingSession, str, JsonObject]]
) -> list[ToolResult | EnvironmentFault]:
    """One call on each of many sessions, such as those of a batch of rollouts; faults stand beside results."""
    return background.run(call_batch([(session.session, tool, arguments) for session, tool, arguments in calls]))
