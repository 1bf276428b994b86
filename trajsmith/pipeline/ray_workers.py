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
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from trajsmith.pipeline.config import RaySettings
from trajsmith.pipeline.engine import ENGINES, run_stage
from trajsmith.pipeline.raw_records import name_item
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest
from trajsmith.pipeline.worker_pool import MOST_DEATHS, limit_workers
from trajsmith.pipeline.worker_process import StageWorker
from trajsmith.records import InputError, RunError, TrajsmithError, install_command, to_one_line

USEARCH_FIRST = "usearch" in sys.modules and "ray" not in sys.modules
"""The index of the graph was loaded before Ray, whose library then ends the process (std::regex stands in both)."""
if not USEARCH_FIRST:  # the engine is looked up before the graph is built, so that Ray comes first
    with suppress(ImportError):
        import ray  # noqa: F401

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
        if USEARCH_FIRST:
            raise InputError(
                "engine.kind: ray: this program loaded a graph before Ray, which then ends the process: begin the "
                "program with `import ray`"
            )
        try:
            import ray
        except ImportError as error:
            raise InputError(f"engine.kind: ray: Ray is not installed: {install_command('ray')}") from error

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
        try:
            self._actors = [actor.options(**options).remote(str(self._run), concurrency) for _ in range(self.count)]
        except (OverflowError, ValueError) as error:  # amounts that Ray does not know
            self._disconnect()
            raise InputError(f"engine.ray: {to_one_line(error)}") from error
        self._load = [0] * self.count
        self._answers: list[asyncio.Task[None]] = []
        """Of each actor; done once it is there and answers."""

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
        """Work on one input in the worker that has the fewest; of a worker that is lost, another one gets it.

        Raises:
            RunError: Workers die over it, cannot be started, or do not come back.
        """
        self._number += 1
        number, reason = self._number, ""
        for _ in range(MOST_DEATHS):
            chosen = await self._choose_worker()
            self._load[chosen] += 1
            try:
                return WorkOutcome(*await self._actors[chosen].attempt.remote(number, stage, item))
            except self._ray.exceptions.RayError as error:
                reason = _summarize(error)
                _log.warning("stage %s: a worker was lost with record %s: %s", stage, name_item(item), reason)
                if self._answers[chosen].done():
                    self._answers[chosen] = asyncio.ensure_future(self._wait_for(self._actors[chosen]))
            finally:
                self._load[chosen] -= 1
        raise RunError(
            f"stage {stage}: {MOST_DEATHS} workers of Ray in turn ended with record {name_item(item)} in work "
            f"({reason}); resume with `trajsmith resume {self._run}`, or without Ray by --set engine.kind=local"
        )

    async def _choose_worker(self) -> int:
        """Return the number of the worker that has the fewest inputs of those that answer, once there is one.

        Raises:
            RunError: A worker cannot be started, or none answers in time.
        """
        self._answers = self._answers or [asyncio.ensure_future(self._wait_for(actor)) for actor in self._actors]
        ready: list[int] = []
        while not ready:  # a worker that answered may be lost again before this goes on
            done, _ = await asyncio.wait(self._answers, timeout=BACK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise RunError(
                    f"no worker of Ray answered within {BACK_SECONDS:.0f} s: look at `ray status`, then resume with "
                    f"`trajsmith resume {self._run}`"
                )
            for answer in done:
                answer.result()
            ready = [number for number, answer in enumerate(self._answers) if answer in done]
        return min(ready, key=self._load.__getitem__)

    async def _wait_for(self, actor: Any) -> None:
        """Wait until an actor answers, which may have to be started on another node first.

        Raises:
            RunError: It cannot be created.
        """
        errors = self._ray.exceptions
        while True:
            try:
                await actor.answer.remote()
                return
            except errors.RayError as error:
                if isinstance(error, errors.RuntimeEnvSetupError) or getattr(error, "actor_init_failed", False):
                    raise RunError(
                        f"a worker of Ray cannot be started ({_summarize(error, -1)}): see engine.ray.runtime_env, "
                        f"then resume with `trajsmith resume {self._run}`"
                    ) from error
            await asyncio.sleep(RETRY_SECONDS)

    async def close(self) -> None:
        """End the actors, and Ray where this started or joined it; safe to call twice."""
        for answer in self._answers:
            answer.cancel()
        await asyncio.gather(*self._answers, return_exceptions=True)
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


def _summarize(error: Exception, line: int = 0) -> str:
    """Return a line of an error of Ray, which may be a page of log: the first says what, the last why."""
    lines = str(error).strip().splitlines()
    return lines[line].strip() if lines else type(error).__name__
