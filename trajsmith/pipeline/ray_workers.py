"""Workers of a run on a Ray cluster: actors that do the work on inputs, wherever the cluster has room.

The driver keeps order, window and commit as the local engine does, so records do not depend on nodes or their number.
Inputs and outcomes are lines of a few kilobytes that travel with the calls: nothing is put into the object store. An
actor that is lost with its node is started on another one and gets its calls again; work is deterministic, and only
the driver commits. Actors read the run directory, so all nodes must see it under one path.
"""

import asyncio
import logging
import re
import socket
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from trajsmith.pipeline.config import RaySettings
from trajsmith.pipeline.engine import ENGINES, run_stage
from trajsmith.pipeline.raw_records import name_item
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest
from trajsmith.pipeline.worker_pool import MOST_DEATHS, limit_workers
from trajsmith.pipeline.worker_process import StageWorker
from trajsmith.records import InputError, RunError, TrajsmithError, install_command

ADDRESS = re.compile(r"(?:ray://)?(?P<host>[^:/]+):(?P<port>\d+)")
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 20.0
BACK_SECONDS = 600.0
"""Time in which an autoscaler brings a new node."""
RETRY_SECONDS = 0.5

_log = logging.getLogger(__name__)

ENGINES.register("ray")(run_stage)


class RayWorker:
    """One worker: the environments of a run, opened once, in an actor."""

    def __init__(self, run: str, concurrency: int) -> None:
        self._run = Path(run)
        self._concurrency = concurrency
        self._opening = asyncio.Lock()
        self._worker: StageWorker | None = None

    async def attempt(self, number: int, stage: str, item: Any) -> tuple[Any, ...]:
        """Work on one input; the first one opens the environments. Returns the fields of a `WorkOutcome`."""
        async with self._opening:
            if self._worker is None:
                try:
                    self._worker = await StageWorker.open(self._run, self._concurrency)
                except TrajsmithError as error:
                    return tuple(
                        WorkOutcome(number, "run_error", text=f"{error} (all nodes of Ray must see the run directory)")
                    )
        return tuple(await self._worker.attempt(WorkRequest(number, stage, item)))

    async def answer(self) -> None:
        """Tell the driver that the actor is there."""

    async def close(self) -> None:
        """Let go of the environments."""
        if self._worker is not None:
            await self._worker.close()


class RayWorkers:
    """Workers of one run on a Ray cluster; the stages of a run share them.

    Args:
        run: Run directory, on storage that all nodes see.
        settings: Where Ray is, and what a worker needs.
        workers: How many; "auto" is as many as the cluster has room for now.
        inputs: Open inputs of the first stage, which bound "auto".
        concurrency: Inputs that one worker works on at a time.

    Raises:
        InputError: Ray is not installed or not reachable, or has no room for a worker.
    """

    def __init__(self, run: Path, settings: RaySettings, workers: int | str, inputs: int, concurrency: int) -> None:
        if find_spec("ray") is None:
            raise InputError(f"engine.kind: ray: Ray is not installed: {install_command('ray')}")
        import ray

        self._ray = ray
        self._number = 0
        self._own = not ray.is_initialized()
        self._run = run.resolve()
        if self._own:
            self._connect(settings)
        self.count = self._count_workers(settings, workers, inputs)
        actor: Any = ray.remote(RayWorker)
        options = {
            "num_cpus": settings.cpus, "resources": settings.resources or None, "max_concurrency": 2 * concurrency,
            "max_restarts": -1,
        }  # fmt: skip
        self._actors = [actor.options(**options).remote(str(self._run), concurrency) for _ in range(self.count)]
        self._load = [0] * self.count

    def _connect(self, settings: RaySettings) -> None:
        where = settings.address or "a new Ray on this machine"
        try:
            if settings.address and (host := ADDRESS.fullmatch(settings.address)):  # Ray itself tries for minutes
                socket.create_connection((host["host"], int(host["port"])), timeout=CONNECT_SECONDS).close()
            self._ray.init(
                address=settings.address, runtime_env=settings.runtime_env or None, log_to_driver=False,
                configure_logging=False, include_dashboard=None if settings.address else False,
            )  # fmt: skip
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"engine.ray: {where} does not answer: {str(error).splitlines()[0]}") from error

    def _count_workers(self, settings: RaySettings, workers: int | str, inputs: int) -> int:
        """Return how many workers to start; "auto" is as many as the cluster could hold if nothing else ran there.

        Raises:
            InputError: "auto", and there is no room for one: without an autoscaler the run would wait for ever.
        """
        total: dict[str, float] = self._ray.cluster_resources()  # type: ignore[no-untyped-call]
        wanted = {"CPU": settings.cpus, **settings.resources}
        room = min(int(total.get(name, 0) / amount) for name, amount in wanted.items())
        asked, has = (", ".join(f"{one.get(name, 0):g} {name}" for name in wanted) for one in (wanted, total))
        if workers != "auto":
            if room < int(workers):
                _log.warning(
                    "room for %d of %s workers of %s each now; the others wait for nodes", room, workers, asked
                )
            return int(workers)
        if room < 1:
            self._disconnect()
            raise InputError(
                f"engine.ray: a worker needs {asked}, and the cluster has {has}: add nodes, ask for less, or give "
                "engine.workers a number where an autoscaler adds nodes"
            )
        return limit_workers(room, inputs)

    async def attempt(self, stage: str, item: Any) -> WorkOutcome:
        """Work on one input in the worker that has the fewest; a worker that is lost gets it again when it is back.

        Raises:
            RunError: Workers die over it, or do not come back.
        """
        self._number += 1
        number, chosen = self._number, self._load.index(min(self._load))
        actor, reason = self._actors[chosen], ""
        self._load[chosen] += 1
        try:
            for _ in range(MOST_DEATHS):
                await self._wait_for(actor)
                try:
                    return WorkOutcome(*await actor.attempt.remote(number, stage, item))
                except self._ray.exceptions.RayError as error:
                    reason = _summarize(error)
                    _log.warning("stage %s: a worker was lost with record %s: %s", stage, name_item(item), reason)
        finally:
            self._load[chosen] -= 1
        raise RunError(
            f"stage {stage}: {MOST_DEATHS} workers of Ray in turn ended with record {name_item(item)} in work "
            f"({reason}); resume with `trajsmith resume {self._run}`, or without Ray by --set engine.kind=local"
        )

    async def _wait_for(self, actor: Any) -> None:
        """Wait until an actor answers, which may have to be started on another node first.

        Raises:
            RunError: It is not back in time, or the cluster is gone.
        """
        end = time.monotonic() + BACK_SECONDS
        while True:
            try:
                await actor.answer.remote()
                return
            except self._ray.exceptions.RayError as error:
                if time.monotonic() > end:
                    raise RunError(
                        f"a worker of Ray was lost and not back within {BACK_SECONDS:.0f} s ({_summarize(error)}): "
                        f"look at `ray status`, then resume with `trajsmith resume {self._run}`"
                    ) from error
            await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        """End the actors, and Ray where this started or joined it; safe to call twice."""
        actors, self._actors = self._actors, []
        closing = asyncio.gather(*(self._close(actor) for actor in actors), return_exceptions=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(closing, CLOSE_SECONDS)
        for actor in actors:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)
        self._disconnect()

    async def _close(self, actor: Any) -> None:
        await actor.close.remote()

    def _disconnect(self) -> None:
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()


def _summarize(error: Exception) -> str:
    """Return the first line of an error of Ray, which may have a page of log behind it."""
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
