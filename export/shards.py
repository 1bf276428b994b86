"""Files of rows, written row by row: Parquet shards or JSON Lines. Memory holds one row group for each split."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import orjson

from trajsmith.export.columns import RowEncoder
from trajsmith.records import JsonObject, RecordDropped

if TYPE_CHECKING:
    import pyarrow.parquet

ROWS_PER_GROUP = 100
LINE_BREAKS = (("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029"), ("\x85".encode(), b"\\u0085"))
"""Characters that are no line break in JSON Lines, but are to readers who split lines as Unicode does."""


FilesOfSplits = Mapping[str, list[tuple[str, int]]]
"""Split to names of files with their rows, in order."""


class RowFiles:
    """Writes rows into the files of their splits. Use it as a context manager.

    Args:
        folder: Where the files are written; made with the first row.
        rows_per_shard: Rows per Parquet file.
        encoder: Encodes rows for Parquet; None writes JSON Lines.
        prefix: Part of the names of the files, for folders that several writers share.
    """

    def __init__(self, folder: Path, rows_per_shard: int, encoder: RowEncoder | None, prefix: str = "") -> None:
        self._folder = folder
        self._rows_per_shard = rows_per_shard
        self._encoder = encoder
        self._prefix = prefix
        self._splits: dict[str, ParquetShards | JsonLines] = {}

    @property
    def rows(self) -> dict[str, int]:
        """Split to number of rows so far."""
        return {split: files.rows for split, files in self._splits.items()}

    def write(self, row: JsonObject, split: str) -> None:
        """Add one row.

        Raises:
            RecordDropped: A value of the row would not come back equal; nothing was written.
            InputError: The row has other columns.
        """
        files = self._splits.get(split)
        if files is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            files = self._splits[split] = self._open(f"{split}-{self._prefix}")
        files.write(row)

    def finish(self) -> FilesOfSplits:
        """Write what is left, close the files and return those that have rows."""
        return {split: files.finish() for split, files in self._splits.items()}

    def close(self) -> None:
        """Close the files as they are; safe to call twice."""
        for files in self._splits.values():
            files.close()

    def _open(self, name: str) -> "ParquetShards | JsonLines":
        if self._encoder is None:
            return JsonLines(self._folder / f"{name}.jsonl")
        return ParquetShards(self._folder, name, self._encoder, self._rows_per_shard)


class ParquetShards:
    """Parquet files `<name>00000.parquet` with `rows_per_shard` rows each."""

    def __init__(self, folder: Path, name: str, encoder: RowEncoder, rows_per_shard: int) -> None:
        self.rows = 0
        self._folder = folder
        self._name = name
        self._encoder = encoder
        self._rows_per_shard = rows_per_shard
        self._buffer: list[JsonObject] = []
        self._files: list[tuple[str, int]] = []
        self._shard_rows = 0
        self._writer: pyarrow.parquet.ParquetWriter | None = None

    def write(self, row: JsonObject) -> None:
        """Add one row; a row that would not come back equal is `Dropped` and nothing is written."""
        self._buffer.append(self._encoder.cells(row))
        self.rows += 1
        if len(self._buffer) == min(ROWS_PER_GROUP, self._rows_per_shard - self._shard_rows):
            self._flush()

    def finish(self) -> list[tuple[str, int]]:
        """Write what is left and return the files with their rows."""
        self._flush()
        self.close()
        return self._files

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._files[-1] = (self._files[-1][0], self._shard_rows)
            self._shard_rows = 0

    def _flush(self) -> None:
        if not self._buffer:
            return
        writer = self._writer or self._open()
        writer.write_table(self._encoder.table(self._buffer))
        self._shard_rows += len(self._buffer)
        self._buffer = []
        if self._shard_rows >= self._rows_per_shard:
            self.close()

    def _open(self) -> "pyarrow.parquet.ParquetWriter":
        import pyarrow.parquet

        file = f"{self._name}{len(self._files):05d}.parquet"
        self._files.append((file, 0))
        self._shard_rows = 0
        self._writer = pyarrow.parquet.ParquetWriter(
            self._folder / file,
            self._encoder.schema,
            compression="zstd",
            use_content_defined_chunking=True,
            write_page_index=True,
        )
        return self._writer


class JsonLines:
    """One file of lines: those who read JSON Lines want one file, and it needs no memory whatever its size."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self._path = path
        self._file: BinaryIO = self._path.open("wb")

    def write(self, row: JsonObject) -> None:
        """Add one row; one that JSON cannot carry is `Dropped`."""
        try:
            line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        except (TypeError, orjson.JSONEncodeError) as error:
            raise RecordDropped("not_json", str(error)) from error
        for character, escape in LINE_BREAKS:
            line = line.replace(character, escape)
        self._file.write(line)
        self.rows += 1

    def finish(self) -> list[tuple[str, int]]:
        """Close the file and return it with its rows; one whose rows were all dropped goes."""
        self.close()
        if self.rows:
            return [(self._path.name, self.rows)]
        self._path.unlink()
        return []

    def close(self) -> None:
        self._file.close()
