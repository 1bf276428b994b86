"""Sessions for code that is not asynchronous, such as trainers: one event loop in a thread of its own serves all."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from trajsmith.environments.sandbox.batching import call_batch
from trajsmith.environments.session import EnvironmentSource, Session, ToolResult
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, JsonObject

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


def call_all(
    background: BackgroundLoop, calls: Sequence[tuple[BlockingSession, str, JsonObject]]
) -> list[ToolResult | EnvironmentFault]:
    """One call on each of many sessions, such as those of a batch of rollouts; faults stand beside results."""
    return background.run(call_batch([(session.session, tool, arguments) for session, tool, arguments in calls]))
