"""Worker processes of the local engine: all cores for stages that compute, the same bytes whatever their number.

Workers are programs of their own, started by exec and fed over pipes: no fork of threads, nothing imported from the
caller's `__main__`, and a worker ends with its pipe. The engine still decides order, window and commit; only the work
on one input happens elsewhere. A worker that dies is started again and gets its inputs again, which nobody has
committed; work is deterministic, so nothing is lost or doubled.
"""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import orjson

from trajsmith.pipeline.engine import PipelineStage
from trajsmith.pipeline.raw_records import RawReader, SerializedRecord, name_item
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest, pack_frame, read_frame
from trajsmith.records import InputError, RecordDropped, RunError

ITEMS_PER_WORKER = 150
"""Inputs of a stage that make up for the start of a worker."""
MOST_DEATHS = 3
"""Workers that may die over one input before the run stops."""
CLOSE_SECONDS = 10.0
STAGES = "trajsmith.pipeline.worker_process"
BOOT = (
    "import gc, sys, json; sys.path[:] = json.loads(sys.argv[1]); gc.disable(); "
    "from importlib import import_module; main = import_module(sys.argv[2]).main; gc.enable(); main(sys.argv[3:])"
)
"""Program of a worker, whose module is an argument.

Imports make objects that stay: to look for garbage among them is a tenth of their CPU."""


class StageExecutor(Protocol):
    """Works on inputs of stages somewhere else."""

    count: int
    """Workers, each of which takes `engine.concurrency` inputs at a time."""

    async def attempt(self, stage: str, item: Any) -> WorkOutcome:
        """Work on one input of a stage.

        Raises:
            RunError: It cannot be worked on there.
        """

    async def close(self) -> None:
        """End what was started; safe to call twice."""


def count_cores() -> int:
    """Return the cores that this process may use, by affinity and by the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no control group, or no quota
        return cores


def choose_worker_count(workers: int | Literal["auto"], inputs: int) -> int:
    """Return how many workers a stage with so many open inputs deserves; 1 is this process."""
    if workers != "auto":
        return workers
    return limit_workers(count_cores(), inputs)


def limit_workers(most: int, inputs: int) -> int:
    """Return how many of `most` workers so many inputs of a stage make up for."""
    return max(1, min(most, inputs // ITEMS_PER_WORKER))


def distribute_stage(stage: PipelineStage[Any, Any], executor: StageExecutor) -> PipelineStage[Any, Any]:
    """Return the stage with its work done by an executor; records pass through this process unread."""

    async def work(item: Any) -> list[SerializedRecord]:
        outcome = await executor.attempt(stage.name, item)
        if outcome.kind == "drop":
            raise RecordDropped(outcome.text, outcome.detail)
        if outcome.kind == "input_error":
            raise InputError(outcome.text)
        if outcome.kind == "run_error":
            raise RunError(outcome.text)
        return [SerializedRecord(name, line) for name, line in outcome.records]

    reader: Any = RawReader(stage.input_model) if stage.input_model else None
    output: Any = SerializedRecord
    return replace(stage, work=work, input_model=reader, output_model=output)


@dataclass
class _Job:
    """One input that a worker has."""

    request: WorkRequest
    done: asyncio.Future[WorkOutcome]
    deaths: int = 0


@dataclass
class _Worker:
    process: asyncio.subprocess.Process
    jobs: dict[int, _Job] = field(default_factory=dict)
    reading: asyncio.Task[None] | None = None


class WorkerPool:
    """Worker processes of one run on this machine; started when the first input comes.

    Args:
        run: Run directory.
        count: Worker processes.
        concurrency: Inputs that one worker works on at a time, which matters where environments make it wait.
        program: Module whose `main` is the worker.
    """

    def __init__(self, run: Path, count: int, concurrency: int, program: str = STAGES) -> None:
        self.count = count
        self._program = program
        self._run = run
        self._concurrency = concurrency
        self._workers: list[_Worker] = []
        self._starting = asyncio.Lock()
        self._number = 0
        self._closed = False

    @property
    def processes(self) -> list[int]:
        """Process ids of the workers."""
        return [worker.process.pid for worker in self._workers]

    async def attempt(self, stage: str, item: Any) -> WorkOutcome:
        """Work on one input in the worker that has the fewest.

        Raises:
            RunError: Workers die over it, or cannot be started.
        """
        self._number += 1
        job = _Job(WorkRequest(self._number, stage, item), asyncio.get_running_loop().create_future())
        await self._send(job)
        return await job.done

    async def close(self) -> None:
        """Let the workers end by themselves, and kill those that do not."""
        self._closed = True
        workers, self._workers = self._workers, []
        for worker in workers:
            if worker.process.stdin is not None:
                worker.process.stdin.close()
        for worker in workers:
            try:
                await asyncio.wait_for(worker.process.wait(), CLOSE_SECONDS)
            except TimeoutError:
                worker.process.kill()
                await worker.process.wait()
            if worker.reading is not None:
                await worker.reading

    async def _send(self, job: _Job) -> None:
        async with self._starting:
            while len(self._workers) < self.count:
                self._workers.append(await self._start())
        worker = min(self._workers, key=lambda one: len(one.jobs))
        worker.jobs[job.request.number] = job
        if worker.process.stdin is not None:
            with suppress(ConnectionError):  # it died: whoever reads from it sends the input again
                worker.process.stdin.write(pack_frame(job.request))
                await worker.process.stdin.drain()

    async def _start(self) -> _Worker:
        arguments = [self._program, str(self._run), str(self._concurrency)]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", BOOT, orjson.dumps(sys.path).decode(), *arguments,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        worker = _Worker(process)
        worker.reading = asyncio.create_task(self._read(worker))
        return worker

    async def _read(self, worker: _Worker) -> None:
        """Take outcomes until the worker ends, then send again what it still had."""
        reader = worker.process.stdout
        refusal = ""
        while reader is not None and (frame := await read_frame(reader)) is not None:
            outcome = WorkOutcome(*frame)
            if outcome.number < 0:
                refusal = outcome.text
                continue
            job = worker.jobs.pop(outcome.number, None)
            if job is not None and not job.done.done():
                job.done.set_result(outcome)
        if self._closed:
            return
        code = await worker.process.wait()
        self._workers.remove(worker)
        orphans = [job for job in worker.jobs.values() if not job.done.done()]
        for job in orphans:
            job.deaths += 1
            if refusal or job.deaths >= MOST_DEATHS:
                job.done.set_exception(RunError(refusal or self._explain_death(job, code)))
            else:
                try:
                    await self._send(job)
                except OSError as error:  # no process, no file handles: nobody waits for this task, but for the input
                    job.done.set_exception(RunError(f"a worker process cannot be started: {error}"))

    def _explain_death(self, job: _Job, code: int) -> str:
        end = f"signal {-code}" if code < 0 else f"exit code {code}"
        hint = "; is the memory full?" if code == -9 else ""
        return (
            f"stage {job.request.stage}: {MOST_DEATHS} worker processes in turn ended ({end}{hint}) with record "
            f"{name_item(job.request.item)} in work; resume in one process with `trajsmith resume {self._run} "
            "--set engine.workers=1`"
        )
