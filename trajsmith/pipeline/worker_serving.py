"""A worker program of the local engine: reads requests from a pipe, works on them, writes the outcomes.

The worker ends when the pipe is closed, so that it outlives no driver, however that died. What code prints goes to
standard error.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest, pack_frame, read_frame
from trajsmith.records import TrajsmithError, reduce_gc_frequency

READ_AHEAD = 1 << 20
"""Bytes that are read from the pipe before work is taken from it."""


class RequestWorker(Protocol):
    """Works on requests of one run."""

    async def attempt(self, request: WorkRequest) -> WorkOutcome:
        """Work on one input; every fault becomes an outcome."""

    async def close(self) -> None:
        """Let go of what it holds."""


async def serve_requests(open_worker: Callable[[], Awaitable[RequestWorker]], incoming: int, outgoing: int) -> None:
    """Work on what comes over one pipe and answer over the other, until the first is closed."""
    try:
        worker = await open_worker()
    except TrajsmithError as error:
        _write(outgoing, WorkOutcome(-1, "input_error", text=str(error)))
        return
    reader = asyncio.StreamReader(limit=READ_AHEAD)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
    running: set[asyncio.Task[None]] = set()

    async def answer(request: WorkRequest) -> None:
        outcome = await worker.attempt(request)
        with suppress(BrokenPipeError):  # the driver is gone: the other pipe ends, too
            _write(outgoing, outcome)

    try:
        while (frame := await read_frame(reader)) is not None:
            task = asyncio.create_task(answer(WorkRequest(*frame)))
            running.add(task)
            task.add_done_callback(running.discard)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await worker.close()


def _write(handle: int, outcome: WorkOutcome) -> None:
    data = memoryview(pack_frame(outcome))
    while data:
        data = data[os.write(handle, data) :]


def run_worker(open_worker: Callable[[], Awaitable[RequestWorker]]) -> None:
    """Serve over standard input and output as a program."""
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    reduce_gc_frequency()
    try:
        asyncio.run(serve_requests(open_worker, incoming, outgoing))
    except BrokenPipeError:  # the driver is gone
        sys.exit(1)
