"""Looks records up by their ids, in a file of any size."""

from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from trajsmith.records.id_index import read_line_id
from trajsmith.records.record import Record
from trajsmith.records.record_files import open_records

AnyRecord = TypeVar("AnyRecord", bound=Record)


class LocatedLine(NamedTuple):
    """A line of a record file."""

    start: int
    """Plain bytes before it."""
    data: bytes


class RecordLookup:
    """Finds records of one file by their ids. Use it as a context manager.

    Args:
        path: Plain name of the file.
        part: Where an index is written before it is put beside a plain file; none is without it.

    Raises:
        InputError: The file is missing, damaged, or holds something else.
    """

    def __init__(self, path: Path, part: Path | None = None) -> None:
        self._source = open_records(path)
        try:
            self._index = self._source.open_index(part)
        except BaseException:  # whatever is wrong, the file is closed; it goes on up
            self._source.close()
            raise

    def find_line(self, name: str) -> LocatedLine | None:
        """Return the first line of a record with this id; None if there is none.

        Raises:
            InputError: The file is damaged.
        """
        for start in self._index.find(name):
            line = self._source.read_line(start)
            if read_line_id(line, f"{self._source.path}: at byte {start}") == name:
                return LocatedLine(start, line)
        self._index.check()
        return None

    def find(self, name: str, model: type[AnyRecord]) -> AnyRecord | None:
        """Return the first record with this id; None if there is none.

        Raises:
            InputError: The file is damaged, or its record was changed by hand.
        """
        line = self.find_line(name)
        return None if line is None else model.from_line(line.data, f"{self._source.path}: {name}")

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
