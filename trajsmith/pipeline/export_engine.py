"""Exports the chunks of a plan in this process, or in workers; what comes of them is given in order, whoever did it."""

import asyncio
import pickle
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable

from trajsmith.export import FORMATS
from trajsmith.pipeline.config import EngineSettings
from trajsmith.pipeline.engine import AHEAD
from trajsmith.pipeline.export_chunks import ChunkExporter, ExportOrder, ExportPart
from trajsmith.pipeline.export_plan import ExportPlan
from trajsmith.pipeline.export_worker import ExportRequest
from trajsmith.pipeline.worker_pool import WorkerPool, count_cores
from trajsmith.records import InputError, RunError, TaskHeader, Trajectory, list_program_plugins

TRAJECTORIES_PER_WORKER = 5000
"""Judged trajectories that make up for the start of a worker, which takes as much CPU."""
OWN = "trajsmith"
PROGRAM = "trajsmith.pipeline.export_worker"


def count_export_workers(engine: EngineSettings, order: ExportOrder, judged: int) -> int:
    """Return how many processes an export deserves, all on this machine; 1 is this process."""
    if any(plugin.name in order.targets.folders for plugin in list_program_plugins()):
        return 1  # only this program has that format
    if engine.workers == "auto" or engine.kind != "local":
        return max(1, min(count_cores(), judged // TRAJECTORIES_PER_WORKER))
    return engine.workers


def are_built_in(formats: Iterable[str]) -> bool:
    """Return True if no format is one of others, which may use all that records can do."""
    return {source.name for source in FORMATS.sources() if source.distribution == OWN}.issuperset(formats)


async def export_parts(
    plan: ExportPlan,
    order: ExportOrder,
    workers: int,
    audit: Callable[[TaskHeader, Trajectory], None] | None = None,
) -> AsyncGenerator[ExportPart, None]:
    """Export all chunks; use it with `aclosing`.

    Args:
        plan: What is exported.
        order: What is done with each chunk.
        workers: Processes; 1 is this one.
        audit: Is told of each accepted trajectory, which needs this process.

    Raises:
        InputError: A line is no record, or was changed by hand.
        RunError: Records do not belong together, the disk is full, or workers die over a chunk.
    """
    if workers == 1 or audit is not None:
        exporter = ChunkExporter(plan.run, order, audit)
        for chunk in plan:
            yield exporter.export(chunk)
            await asyncio.sleep(0)
        return
    pool = WorkerPool(plan.run.path, workers, 1, PROGRAM)
    window: deque[asyncio.Task[ExportPart]] = deque()
    try:
        for chunk in plan:
            window.append(asyncio.create_task(_export_there(pool, ExportRequest(order, chunk))))
            await asyncio.sleep(0)
            while window and (window[0].done() or len(window) >= AHEAD * workers):
                yield await window.popleft()
        while window:
            yield await window.popleft()
    finally:
        for task in window:
            task.cancel()
        await asyncio.gather(*window, return_exceptions=True)
        await pool.close()


async def _export_there(pool: WorkerPool, request: ExportRequest) -> ExportPart:
    outcome = await pool.attempt("export", request)
    if outcome.kind == "input_error":
        raise InputError(outcome.text)
    if outcome.kind == "run_error":
        raise RunError(outcome.text)
    ((_, data),) = outcome.records
    part: ExportPart = pickle.loads(data)  # noqa: S301 - from a process that this one started
    return part
