"""The dataset on disk: files that `datasets.load_dataset` gives back exactly as they went in."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trajsmith.export.atomic_folder import TASK_FILES, AtomicFolder
from trajsmith.export.columns import Columns, RowEncoder, build_features
from trajsmith.export.manifest import ENVELOPE, MANIFEST
from trajsmith.export.shards import FilesOfSplits, RowFiles
from trajsmith.export.splits import SPLITS
from trajsmith.records import InputError, JsonObject, RunError

if TYPE_CHECKING:
    from datasets import Features

DATA = "data"
"""Folder of the rows."""
TRACE_FILES = tuple(f"{split}{ending}" for split in SPLITS for ending in ("-[0-9]*.parquet", "/traj_*.jsonl"))
FILES = (
    *(f"{DATA}/{split}{ending}" for split in SPLITS for ending in (".jsonl", "-[0-9]*.parquet")),
    *(
        "README.md",
        "config.yaml",
        "plots/*.svg",
        MANIFEST,
        ENVELOPE,
        *(f"{run}/{file}" for run in ("run", ".run.part") for file in TASK_FILES),
        *(f"{traces}/{file}" for traces in ("traces", ".traces.part/traces") for file in TRACE_FILES),
    ),
)
"""Patterns of the files of a dataset's folder; `run` has the tasks behind the rows and `traces` sessions, if pushed."""
COLUMNS: dict[str, str] = {
    "id": "string",
    "task_id": "string",
    "environment": "string",
    "mode": "string",
    "variant": "string",
    "source": "string",
    "language": "string",
    "difficulty": "float64",
    "pass_rates": "json",
    "turns": "int64",
    "tool_calls": "int64",
    "messages": "list of json",
    "learnt_from": "int64",
    "repair": "json",
    "tools": "list of json",
    "step_labels": "list of json",
    "rubric": "list of json",
    "verdict": "json",
    "initial_state": "string",
    "final_state": "string",
    "seed": "int64",
}
"""Every column of the main dataset in the order of writing, with its kind."""


def build_dataset_features() -> "Features":
    """The explicit features of the main dataset."""
    return build_features(COLUMNS)


class DatasetWriter(AtomicFolder):
    """Writes rows into the files of their splits; the folder is replaced at the end, whole or not at all.

    Args:
        directory: The dataset's folder; an older dataset there is replaced.
        rows_per_shard: Rows per Parquet file.
        columns: Columns with their kinds; None writes JSON Lines, one file per split.
        beside: Names of other files that an older dataset may have beside its rows.

    Raises:
        InputError: `directory` is a file, or a row has other columns than `columns`.
        RunError: `directory` holds something else than a dataset, or no row was written.
    """

    def __init__(
        self,
        directory: str | Path,
        rows_per_shard: int = 2000,
        columns: Columns | None = COLUMNS,
        beside: Iterable[str] = (),
    ) -> None:
        if rows_per_shard < 1:
            raise InputError("rows_per_shard must be at least 1")
        super().__init__(directory, (*FILES, *beside))
        self.scrap = self.part / f"rows-{os.getpid()}"
        """Where the files of rows are written: a process that an older export left behind writes somewhere else."""
        self._lines = columns is None
        encoder = None if columns is None else RowEncoder(columns)
        self._own = RowFiles(self.scrap, rows_per_shard, encoder)
        self._rows: dict[str, list[tuple[str, int]]] = {}

    @property
    def rows(self) -> int:
        return sum(self._count_rows().values())

    @property
    def splits(self) -> dict[str, int]:
        """Split to number of rows, train first."""
        counts = self._count_rows()
        return {name: counts[name] for name in SPLITS if counts.get(name)}

    def write(self, row: JsonObject, split: str = "train") -> None:
        """Add one row.

        Raises:
            RecordDropped: A value of the row would not come back equal; nothing was written.
            InputError: The row has other columns.
        """
        self._own.write(row, split)

    def add_files(self, files: FilesOfSplits) -> None:
        """Add rows that were written into files of `scrap`, after those that were added before."""
        for split, written in files.items():
            self._rows.setdefault(split, []).extend(written)

    def _count_rows(self) -> dict[str, int]:
        counts = self._own.rows
        for split, files in self._rows.items():
            counts[split] = counts.get(split, 0) + sum(rows for _, rows in files)
        return counts

    def _finish(self) -> None:
        if not self.rows:
            raise RunError(f"no row to export (datasets cannot load an empty dataset); {self.directory} is unchanged")
        self.add_files(self._own.finish())
        self._own = RowFiles(self.scrap, 1, None)
        (self.part / DATA).mkdir(exist_ok=True)
        for split, files in self._rows.items():
            paths = [self.scrap / name for name, _ in files]
            if self._lines:
                join_files(paths, self.part / DATA / f"{split}.jsonl")
            else:
                for number, path in enumerate(paths):
                    path.rename(self.part / DATA / f"{split}-{number:05d}-of-{len(paths):05d}.parquet")
        shutil.rmtree(self.scrap)

    def _release(self) -> None:
        self._own.close()


def join_files(parts: list[Path], target: Path) -> None:
    """Make one file of several."""
    if not parts:
        return
    with parts[0].open("ab") as file:
        for part in parts[1:]:
            with part.open("rb") as source:
                shutil.copyfileobj(source, file, 1 << 20)
            part.unlink()
    parts[0].rename(target)
