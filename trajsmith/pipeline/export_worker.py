"""The worker of exports: writes rows and counts, chunk by chunk. It opens no environment and loads no stage."""

import pickle
from dataclasses import dataclass
from pathlib import Path

from trajsmith.pipeline.export_chunks import ChunkExporter, ExportOrder
from trajsmith.pipeline.export_plan import ExportChunk
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.worker_frames import WorkOutcome, WorkRequest
from trajsmith.pipeline.worker_serving import run_worker
from trajsmith.records import InputError, TrajsmithError


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A chunk with what is done with it."""

    order: ExportOrder
    chunk: ExportChunk

    @property
    def id(self) -> str:
        """Name of the chunk, for errors."""
        return self.chunk.id


class ExportWorker:
    """Exports chunks of one run."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._exporter: ChunkExporter | None = None

    @classmethod
    async def open(cls, path: Path) -> "ExportWorker":
        """Open a run; nothing is written into its records.

        Raises:
            InputError: There is none.
        """
        return cls(RunDirectory.open(path))

    async def attempt(self, request: WorkRequest) -> WorkOutcome:
        """Export one chunk; every fault becomes an outcome, whose only record is the part."""
        number, asked = request.number, request.item
        try:
            if self._exporter is None or self._exporter.order != asked.order:
                self._exporter = ChunkExporter(self._run, asked.order)
            part = self._exporter.export(asked.chunk)
        except TrajsmithError as error:
            return WorkOutcome(number, "input_error" if isinstance(error, InputError) else "run_error", text=str(error))
        except Exception as error:  # noqa: BLE001 - a crash of our own work: named, as those of stages are
            text = f"export, trajectories {asked.id}: {type(error).__name__}: {error} (a bug, please report it)"
            return WorkOutcome(number, "run_error", text=text.replace("\n", " "))
        return WorkOutcome(number, "records", ((asked.id, pickle.dumps(part, pickle.HIGHEST_PROTOCOL)),))

    async def close(self) -> None:
        """Nothing is held between chunks."""


def main(arguments: list[str]) -> None:
    """Serve one run; the first argument is the run directory."""
    run_worker(lambda: ExportWorker.open(Path(arguments[0])))
