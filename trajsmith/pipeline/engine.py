"""The local engine: runs a stage on one machine with asyncio, in order, with bounded memory, resumable at any point.

Stages are plain async functions that know nothing of it. Results are committed in the order of the inputs, so the
same run gives the same bytes whatever the timing was.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence, Sized
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from pydantic import AfterValidator

from trajsmith.pipeline.journal import FAULT, Journal, count_ledger
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stage_times import StageClock, read_stage_times
from trajsmith.records import (
    EnvironmentFault,
    InputError,
    ModelFault,
    Record,
    RecordDropped,
    Registry,
    RunError,
    StageSummary,
    TrajsmithError,
    count_records,
    read_records,
)

In = TypeVar("In")
Out = TypeVar("Out", bound=Record)

_Pending: TypeAlias = tuple[str, asyncio.Task[Sequence[Out] | RecordDropped]]

_log = logging.getLogger(__name__)

AHEAD = 4
"""Inputs taken up per worker: while the first in line is slow, the workers go on with the next ones."""


@dataclass(frozen=True)
class PipelineStage(Generic[In, Out]):
    """One pipeline stage: a function from one input to records, and where both are stored."""

    name: str
    """Names the ledger; unique in a run."""
    work: Callable[[In], Awaitable[Sequence[Out]]]
    """Raises `Dropped` to let an input go with a reason."""
    output: str
    """Record file in the run directory, for example "tasks.jsonl"."""
    output_model: type[Out]
    input: str | None = None
    """Record file that is read, or None if the inputs are handed to `run_stage`."""
    input_model: type[Record] | None = None
    title: str = ""
    """What the progress bar says; the name if empty."""


class Engine(Protocol):
    """Runs one stage over everything that is not committed yet, as `run_stage` does."""

    async def __call__(
        self,
        stage: PipelineStage[Any, Any],
        run: RunDirectory,
        inputs: Iterable[tuple[str, Any]] | None = None,
        concurrency: int = 8,
        progress: RunProgress | None = None,
    ) -> StageSummary: ...


ENGINES: Registry[Engine] = Registry(
    "engines", {"local": "trajsmith.pipeline.engine", "ray": "trajsmith.pipeline.ray_workers"}
)
EngineName = Annotated[str, AfterValidator(ENGINES.check_name)]


def summarize_stage(run: RunDirectory, stage: str) -> StageSummary:
    """Return the counts of a stage so far from its ledger."""
    return StageSummary(name=stage, **count_ledger(run, stage)._asdict(), **read_stage_times(run, stage)._asdict())


@ENGINES.register("local")
async def run_stage(
    stage: PipelineStage[In, Out],
    run: RunDirectory,
    inputs: Iterable[tuple[str, In]] | None = None,
    concurrency: int = 8,
    progress: RunProgress | None = None,
) -> StageSummary:
    """Run a stage over everything that is not committed yet, at most `concurrency` inputs at a time.

    Args:
        inputs: Pairs of id and item in an order that is the same every time, in place of the stage's input file.

    Raises:
        InputError: An input cannot be read, or the work found the user's input wrong.
        RunError: The disk is full, the run was changed by hand, or the work crashed (named with stage and record).
    """
    if concurrency < 1:
        raise InputError(f"concurrency must be at least 1, got {concurrency}")
    total = _total(stage, run, inputs)
    clock = StageClock(run, stage.name)
    with Journal(run, stage.name, stage.output) as journal:
        read, _, dropped, _ = journal.counts()
        _log.info("stage %s: start, %d of %s inputs done before", stage.name, read, "?" if total is None else total)
        bars = progress or NullProgress()
        with bars.stage(stage.title or stage.name, total, read, sum(dropped.values())) as bar:
            try:
                async with aclosing(_in_order(stage, _remaining(stage, run, inputs, journal), concurrency)) as done:
                    async for source, outcome in done:
                        drop = outcome if isinstance(outcome, RecordDropped) else None
                        if drop is not None:
                            _log.debug("stage %s: %s dropped: %s", stage.name, source, drop)
                        journal.commit(source, () if isinstance(outcome, RecordDropped) else outcome, drop)
                        bar.advance(dropped=drop is not None)
                        clock.tick()
            finally:
                if journal.rows > read:
                    clock.save()
        counts = journal.counts()
    summary = StageSummary(name=stage.name, **counts._asdict(), **read_stage_times(run, stage.name)._asdict())
    drops = sum(summary.dropped.values())
    _log.info(
        "stage %s: end, %d read, %d written, %d dropped, %.1f s",
        stage.name, summary.read, summary.written, drops, summary.seconds,
    )  # fmt: skip
    return summary


async def _in_order(
    stage: PipelineStage[In, Out], inputs: Iterator[tuple[str, In]], concurrency: int
) -> AsyncGenerator[tuple[str, Sequence[Out] | RecordDropped], None]:
    """Outcomes in the order of the inputs; nothing is left running when it ends, however it ends."""
    gate = asyncio.Semaphore(concurrency)
    window: deque[_Pending[Out]] = deque()
    try:
        for source, item in inputs:
            window.append((source, asyncio.create_task(attempt_work(stage, source, item, gate))))
            await asyncio.sleep(0)  # work that never waits is done after this, so the window stays at one
            while window and (window[0][1].done() or len(window) >= AHEAD * concurrency):
                yield await _first(window)
        while window:
            yield await _first(window)
    finally:
        for _, task in window:
            task.cancel()
        await asyncio.gather(*(task for _, task in window), return_exceptions=True)


async def _first(window: deque[_Pending[Out]]) -> tuple[str, Sequence[Out] | RecordDropped]:
    """Wait for the first in line. Unlike a plain `await`, cancelling this leaves the task for all to end at once:
    cancelled alone, it would let a next one through the gate."""
    source, task = window[0]
    await asyncio.wait((task,))
    window.popleft()
    return source, task.result()


async def attempt_work(
    stage: PipelineStage[In, Out], source: str, item: In, gate: asyncio.Semaphore
) -> Sequence[Out] | RecordDropped:
    """Work on one input. A drop, a broken environment, a silent model are outcomes; a crash of the work is not."""
    where = f"stage {stage.name}, record {source}"
    async with gate:
        try:
            outputs = await stage.work(item)
        except RecordDropped as drop:
            return drop
        except EnvironmentFault as fault:
            return RecordDropped(f"{FAULT}{fault.kind}", str(fault))
        except ModelFault as fault:
            reply_text = f"; the reply was: {fault.reply}" if fault.reply else ""
            return RecordDropped(f"model_fault:{fault.kind}", f"{fault}{reply_text}")
        except TrajsmithError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            raise RunError(f"{where}: the work cancelled itself (a bug, please report it)") from error
        except Exception as error:  # a crash of our own work: named with stage and record, never a silent drop
            error_text = f"{type(error).__name__}: {error}".replace("\n", " ")
            raise RunError(f"{where}: {error_text} (a bug, please report it)") from error
    for output in outputs:
        if not isinstance(output, stage.output_model):
            raise RunError(f"{where}: gave a {type(output).__name__} in place of a {stage.output_model.__name__}")
    return outputs


def _remaining(
    stage: PipelineStage[In, Out], run: RunDirectory, inputs: Iterable[tuple[str, In]] | None, journal: Journal
) -> Iterator[tuple[str, In]]:
    """The inputs that are not committed, after a look at whether the last committed one is still the same."""
    done = max(journal.rows - 1, 0)
    pairs = _from_file(stage, run, done) if inputs is None else islice(inputs, done, None)
    if journal.rows:
        source, _ = next(pairs, (None, None))
        if source != journal.last_input:
            raise RunError(
                f"stage {stage.name}: the run was changed by hand: input {journal.rows} was {journal.last_input} "
                f"and is {source or 'missing'} now, or trajsmith is another version; start anew with --fresh"
            )
    return pairs


def _from_file(stage: PipelineStage[In, Out], run: RunDirectory, skip: int) -> Iterator[tuple[str, In]]:
    if stage.input is None or stage.input_model is None:
        raise ValueError(f"stage {stage.name} has no input file: hand it `inputs`")
    records = read_records(run.file(stage.input), stage.input_model, skip)
    return ((record.id, cast(In, record)) for record in records)


def _total(stage: PipelineStage[In, Out], run: RunDirectory, inputs: Iterable[tuple[str, In]] | None) -> int | None:
    if inputs is not None:
        return len(inputs) if isinstance(inputs, Sized) else None
    return count_records(run.file(stage.input)) if stage.input else None
