"""The worker of stages that compute: opens the environments of a run once and works on inputs."""

import asyncio
from pathlib import Path

from trajsmith.pipeline.engine import attempt_work
from trajsmith.pipeline.raw_records import load_item, name_item
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stages import make_stages
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest
from trajsmith.pipeline.worker_serving import run_worker
from trajsmith.records import InputError, RecordDropped, TrajsmithError


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


def main(arguments: list[str]) -> None:
    """Serve one run; the arguments are the run directory and how many inputs are worked on at a time."""
    path, concurrency = arguments
    run_worker(lambda: StageWorker.open(Path(path), int(concurrency)))
