"""The dataset on disk: files that `datasets.load_dataset` gives back exactly as they went in."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trajsmith.export.atomic_folder import TASK_FILES, AtomicFolder
from trajsmith.export.columns import Columns, RowEncoder, build_features
from trajsmith.export.shards import JsonLines, ParquetShards
from trajsmith.export.splits import SPLITS
from trajsmith.records import InputError, JsonObject, RunError

if TYPE_CHECKING:
    from datasets import Features

DATA = "data"
"""Folder of the rows."""
FILES = (
    *(f"{DATA}/{split}{ending}" for split in SPLITS for ending in (".jsonl", "-[0-9]*.parquet")),
    *(
        "README.md",
        "config.yaml",
        "plots/*.svg",
        *(f"{run}/{file}" for run in ("run", ".run.part") for file in TASK_FILES),
    ),
)
"""Patterns of the files of a dataset's folder; in `run` are the tasks behind the rows, if they were pushed."""
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
    "tools": "list of json",
    "step_labels": "list of json",
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
        self._rows_per_shard = rows_per_shard
        self._columns = columns
        self._encoder: RowEncoder | None = None
        self._splits: dict[str, ParquetShards | JsonLines] = {}

    @property
    def rows(self) -> int:
        return sum(files.rows for files in self._splits.values())

    @property
    def splits(self) -> dict[str, int]:
        """Split to number of rows, train first."""
        return {name: self._splits[name].rows for name in SPLITS if name in self._splits and self._splits[name].rows}

    def write(self, row: JsonObject, split: str = "train") -> None:
        """Add one row.

        Raises:
            RecordDropped: A value of the row would not come back equal; nothing was written.
            InputError: The row has other columns.
        """
        files = self._splits.get(split)
        if files is None:
            files = self._splits[split] = self._open(split)
        files.write(row)

    def _open(self, split: str) -> ParquetShards | JsonLines:
        (self.part / DATA).mkdir(exist_ok=True)
        if self._columns is None:
            return JsonLines(self.part / DATA, split)
        self._encoder = self._encoder or RowEncoder(self._columns)
        return ParquetShards(self.part / DATA, split, self._encoder, self._rows_per_shard)

    def _finish(self) -> None:
        if not self.rows:
            raise RunError(f"no row to export (datasets cannot load an empty dataset); {self.directory} is unchanged")
        for files in self._splits.values():
            files.finish()

    def _release(self) -> None:
        for files in self._splits.values():
            files.close()
