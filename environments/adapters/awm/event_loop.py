"""An asyncio event loop that waits for nothing outside: no sockets, no threads, and sleeping passes at once.

A worker may not open the descriptors that asyncio's own loops need. Handlers of requests await each other, timers and
locks; for that a queue is enough.
"""

import asyncio
import functools
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any, TypeVar

Result = TypeVar("Result")
_Callback = Callable[..., object]
_Due = tuple[asyncio.Handle, Callable[[], object]]
_STEPS = 1_000_000
"""Callbacks that one run may take."""
_AFTER = 1_000
"""Callbacks that tasks may take which are left when a run has its result."""


class EventLoopDeadlock(RuntimeError):
    """A coroutine waits for something that cannot come."""


class IsolatedEventLoop(asyncio.AbstractEventLoop):
    """Runs coroutines to their end, one at a time."""

    def __init__(self) -> None:
        self._ready: deque[_Due] = deque()
        self._timers: list[tuple[float, int, _Due]] = []
        self._order = itertools.count()
        self._tasks: list[asyncio.Task[Any]] = []
        self._time = 0.0

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """The coroutine's result.

        Raises:
            EventLoopDeadlock: It waits for something that cannot come.
        """
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(coroutine)
            for _ in range(_STEPS):
                if task.done():
                    result: Result = task.result()
                    return result
                self._step()
            raise EventLoopDeadlock("it does not come to an end")
        finally:
            self._end_others()
            asyncio._set_running_loop(outer)

    def _step(self) -> None:
        if not self._ready:
            if not self._timers:
                raise EventLoopDeadlock(
                    "it waits for something that cannot come: no sockets, threads or processes here"
                )
            when, _, due = heapq.heappop(self._timers)
            self._time = max(self._time, when)
            self._ready.append(due)
        handle, callback = self._ready.popleft()
        if not handle.cancelled():
            callback()

    def _end_others(self) -> None:
        """Let tasks that nobody awaited go on for a while, then cancel them: none may outlive the run.

        A task that is thrown away while it waits would be ended later, in whatever loop is running then.
        """
        for steps in (_AFTER, 10 * _AFTER):
            for _ in range(steps):
                if not self._ready and not self._timers:
                    break
                self._step()
            for task in [task for task in self._tasks if not task.done()]:
                task.cancel()
        self._ready.clear()
        self._timers.clear()
        self._tasks.clear()

    # What asyncio asks of a loop

    def call_soon(self, callback: _Callback, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((handle, _bound(callback, args, context)))
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: _Callback, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), (timer, _bound(callback, args, context))))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: _Callback, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._time + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is passed over when its time comes."""

    def time(self) -> float:
        return self._time

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, **options)
        self._tasks.append(task)
        return task

    async def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        return func(*args)

    async def shutdown_asyncgens(self) -> None: ...

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore exceptions of tasks that nobody awaits."""

    def get_task_factory(self) -> None: ...

    def get_exception_handler(self) -> None: ...

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False


def _bound(callback: _Callback, args: tuple[Any, ...], context: Context | None) -> Callable[[], object]:
    return functools.partial((context or copy_context()).run, callback, *args)


@contextmanager
def disable_threads() -> Iterator[None]:
    """Inside, what anyio would give to a thread runs at once, where it is."""
    import anyio.to_thread

    real = anyio.to_thread.run_sync

    async def run_sync(func: Callable[..., Any], *args: Any, **_options: Any) -> Any:
        return func(*args)

    anyio.to_thread.run_sync = run_sync  # type: ignore[assignment]
    try:
        yield
    finally:
        anyio.to_thread.run_sync = real
