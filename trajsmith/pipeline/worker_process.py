"""A worker process of the local engine: reads inputs of stages from a pipe, works on them, writes the outcomes.

The worker ends when the pipe is closed,
so that it outlives no driver, however that died. What code prints goes to standard error.
"""

import asyncio
import os
import sys
from pathlib import Path

from trajsmith.pipeline.engine import attempt_work
from trajsmith.pipeline.raw_records import load_item, name_item
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stages import make_stages
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest, pack_frame, read_frame
from trajsmith.records import InputError, RecordDropped, TrajsmithError, reduce_gc_frequency

READ_AHEAD = 1 << 20
"""Bytes that are read from the pipe before work is taken from it."""


class StageWorker:
    """Works on inputs of the scripted stages of one run, in any process that sees the run directory."""

    def __init__(self, context: RunContext, concurrency: int) -> None:
        self._context = context
        self._stages = make_stages(context)
        self._gate = asyncio.Semaphore(concurrency)

    @classmethod
    async def open(cls, path: Path, concurrency: int) -> "StageWorker":
        """Open the environments of a run; nothing is written.

        Raises:
            InputError: The configuration cannot be used in this process.
        """
        from trajsmith.pipeline.config import load_config

        run = RunDirectory.open(path)
        return cls(await RunContext.reopen(load_config(run.config_path), run), concurrency)

    async def attempt(self, request: WorkRequest) -> WorkOutcome:
        """Work on one input; every fault becomes an outcome."""
        stage, number = self._stages[request.stage], request.number
        try:
            item = load_item(request.item)
            outputs = await attempt_work(stage, name_item(item), item, self._gate)
        except TrajsmithError as error:
            return WorkOutcome(number, "input_error" if isinstance(error, InputError) else "run_error", text=str(error))
        if isinstance(outputs, RecordDropped):
            return WorkOutcome(number, "drop", text=outputs.reason, detail=outputs.detail)
        return WorkOutcome(number, "records", tuple((output.id, output.to_line()) for output in outputs))

    async def close(self) -> None:
        """End the processes of checks."""
        self._context.code_checks.close()
        await self._context.close()


async def serve_requests(path: Path, concurrency: int, incoming: int, outgoing: int) -> None:
    """Work on what comes over one pipe and answer over the other, until the first is closed."""
    try:
        worker = await StageWorker.open(path, concurrency)
    except TrajsmithError as error:
        _write(outgoing, WorkOutcome(-1, "input_error", text=str(error)))
        return
    reader = asyncio.StreamReader(limit=READ_AHEAD)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(incoming, "rb", 0))
    running: set[asyncio.Task[None]] = set()

    async def answer(request: WorkRequest) -> None:
        _write(outgoing, await worker.attempt(request))

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


def main(arguments: list[str]) -> None:
    """Serve one run; the arguments are the run directory and how many inputs are worked on at a time."""
    path, concurrency = arguments
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    reduce_gc_frequency()
    try:
        asyncio.run(serve_requests(Path(path), int(concurrency), incoming, outgoing))
    except BrokenPipeError:  # the driver is gone
        sys.exit(1)
