"""Files of one split, written row by row: Parquet shards or one JSON Lines file. Memory holds one row group."""

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


class ParquetShards:
    """Parquet files `<split>-00000-of-0000N.parquet` with `rows_per_shard` rows each."""

    def __init__(self, folder: Path, split: str, encoder: RowEncoder, rows_per_shard: int) -> None:
        self.rows = 0
        self._folder = folder
        self._split = split
        self._encoder = encoder
        self._rows_per_shard = rows_per_shard
        self._buffer: list[JsonObject] = []
        self._paths: list[Path] = []
        self._shard_rows = 0
        self._writer: pyarrow.parquet.ParquetWriter | None = None

    def write(self, row: JsonObject) -> None:
        """Add one row; a row that would not come back equal is `Dropped` and nothing is written."""
        self._buffer.append(self._encoder.cells(row))
        self.rows += 1
        if len(self._buffer) == min(ROWS_PER_GROUP, self._rows_per_shard - self._shard_rows):
            self._flush()

    def finish(self) -> None:
        """Write what is left and give the shards their final names."""
        self._flush()
        self.close()
        for number, path in enumerate(self._paths):
            path.rename(path.with_name(f"{self._split}-{number:05d}-of-{len(self._paths):05d}.parquet"))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
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

        path = self._folder / f"{self._split}-{len(self._paths):05d}.parquet"
        self._paths.append(path)
        self._shard_rows = 0
        self._writer = pyarrow.parquet.ParquetWriter(
            path, self._encoder.schema, compression="zstd", use_content_defined_chunking=True, write_page_index=True
        )
        return self._writer


class JsonLines:
    """One file `<split>.jsonl`: those who read JSON Lines want one file, and it needs no memory whatever its size."""

    def __init__(self, folder: Path, split: str) -> None:
        self.rows = 0
        self._path = folder / f"{split}.jsonl"
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

    def finish(self) -> None:
        """Close the file; one whose rows were all dropped goes."""
        self.close()
        if not self.rows:
            self._path.unlink()

    def close(self) -> None:
        self._file.close()
