"""The dataset on disk: Parquet shards that `datasets.load_dataset` gives back exactly as they went in."""

import shutil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from export.exact import encode
from trajectory import Dropped, InputError, JsonObject, RunError

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet
    from datasets import Features

ROWS_PER_GROUP = 100

COLUMNS: dict[str, str] = {
    "id": "string",
    "task_id": "string",
    "environment": "string",
    "mode": "string",
    "variant": "string",
    "language": "string",
    "difficulty": "float64",
    "turns": "int64",
    "tool_calls": "int64",
    "messages": "list of json",
    "tools": "list of json",
    "verdict": "json",
    "initial_state": "string",
    "final_state": "string",
    "seed": "int64",
}
"""Every column in the order of writing, with its type."""


def features() -> "Features":
    """The explicit features. Left to infer them, `datasets` merges all schemas and all arguments into one struct
    and fills the holes with nulls; as `Json` every message and every tool stays what it is.
    """
    from datasets import Features, Json, List, Value

    special = {"json": Json(), "list of json": List(Json())}
    return Features({name: special.get(kind) or Value(kind) for name, kind in COLUMNS.items()})


class DatasetWriter:
    """Writes rows into a folder beside `directory` and puts it in place at the end, whole or not at all.

    Use it as a context manager: leaving it normally commits, leaving it with an exception discards. If the process
    dies, `directory` is what it was before. Only one row group is held in memory.

    Args:
        directory: The dataset's folder; an older dataset there is replaced.
        rows_per_shard: Rows per Parquet file.

    Raises:
        InputError: `directory` is a file.
        RunError: `directory` holds something else than a dataset, or no row was written.
    """

    def __init__(self, directory: str | Path, rows_per_shard: int = 2000) -> None:
        if rows_per_shard < 1:
            raise InputError("rows_per_shard must be at least 1")
        self.directory = Path(directory)
        self.rows = 0
        self._rows_per_shard = rows_per_shard
        self._part = self.directory.with_name(f".{self.directory.name}.part")
        self._old = self.directory.with_name(f".{self.directory.name}.old")
        self._buffer: list[JsonObject] = []
        self._shards: list[Path] = []
        self._shard_rows = 0
        self._writer: pyarrow.parquet.ParquetWriter | None = None

    def __enter__(self) -> Self:
        from datasets import Json

        self._refuse_foreign_folder()
        if self._old.exists() and not self.directory.exists():
            self._old.rename(self.directory)  # an earlier export died between the two renames of the commit
        shutil.rmtree(self._part, ignore_errors=True)
        (self._part / "data").mkdir(parents=True)
        self._schema: pyarrow.Schema = features().arrow_schema
        self._decode = Json().decode_example
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._commit()
        finally:
            self._close_shard()
            shutil.rmtree(self._part, ignore_errors=True)

    def write(self, row: JsonObject) -> None:
        """Add one row.

        Raises:
            Dropped: A value of the row would not come back equal; nothing was written.
            InputError: The row has other columns than `COLUMNS`.
        """
        if row.keys() != COLUMNS.keys():
            odd = ", ".join(sorted(row.keys() ^ COLUMNS.keys()))
            raise InputError(f"row {row.get('id', '?')}: missing or unknown columns: {odd}")
        self._buffer.append({name: self._cell(name, row[name]) for name in COLUMNS})
        self.rows += 1
        if len(self._buffer) == min(ROWS_PER_GROUP, self._rows_per_shard - self._shard_rows):
            self._flush()

    def attach(self, name: str, text: str) -> None:
        """Put a text file beside the data, for example the card as `README.md`; it comes and goes with the data."""
        (self._part / name).write_text(text, encoding="utf-8")

    def _cell(self, name: str, value: Any) -> Any:
        kind = COLUMNS[name]
        try:
            if kind == "json":
                return encode(value, self._decode)
            if kind == "list of json":
                return [encode(item, self._decode) for item in value]
        except Dropped as dropped:
            raise Dropped(dropped.reason, f"{name}: {dropped.detail}") from dropped
        return value

    def _flush(self) -> None:
        import pyarrow

        if not self._buffer:
            return
        arrays = [self._array(field, [row[field.name] for row in self._buffer]) for field in self._schema]
        writer = self._writer or self._open_shard()
        writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))
        self._shard_rows += len(self._buffer)
        self._buffer = []
        if self._shard_rows >= self._rows_per_shard:
            self._close_shard()

    @staticmethod
    def _array(field: "pyarrow.Field", values: list[Any]) -> "pyarrow.Array":
        """Values of one column as Arrow; JSON text takes its plain storage type on the way."""
        import pyarrow

        kind = COLUMNS[field.name]
        if kind == "json":
            return pyarrow.array(values, pyarrow.string()).cast(field.type)
        if kind == "list of json":
            return pyarrow.array(values, pyarrow.list_(pyarrow.string())).cast(field.type)
        return pyarrow.array(values, field.type)

    def _open_shard(self) -> "pyarrow.parquet.ParquetWriter":
        import pyarrow.parquet

        path = self._part / "data" / f"train-{len(self._shards):05d}.parquet"
        self._shards.append(path)
        self._shard_rows = 0
        self._writer = pyarrow.parquet.ParquetWriter(
            path, self._schema, compression="zstd", use_content_defined_chunking=True, write_page_index=True
        )
        return self._writer

    def _close_shard(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._shard_rows = 0

    def _commit(self) -> None:
        self._flush()
        if not self._shards:
            raise RunError(f"no row to export (datasets cannot load an empty dataset); {self.directory} is unchanged")
        self._close_shard()
        for number, path in enumerate(self._shards):
            path.rename(path.with_name(f"train-{number:05d}-of-{len(self._shards):05d}.parquet"))
        shutil.rmtree(self._old, ignore_errors=True)
        if self.directory.exists():
            self.directory.rename(self._old)
        self._part.rename(self.directory)
        shutil.rmtree(self._old, ignore_errors=True)

    def _refuse_foreign_folder(self) -> None:
        """A folder with something else in it is not ours to replace."""
        if not self.directory.exists():
            return
        if not self.directory.is_dir():
            raise InputError(f"{self.directory} is a file; give a folder for the dataset")
        names = {path.name for path in self.directory.iterdir()}
        if names and "data" not in names:
            raise RunError(f"{self.directory} holds something that is no dataset; choose another folder or empty it")
