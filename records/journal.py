"""Append-only JSON Lines files, so that work can be killed at any moment and taken up again.

A line counts when its end is written: reading stops before a torn last line, and opening for appending cuts it off. An
append is one write call, and what a failed one left behind is cut off. A killed process loses no line; closing with
`sync` keeps them in an outage, too. Files are not opened through symbolic links.
"""

import errno
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from trajsmith.records.canonical import content_hash
from trajsmith.records.errors import InputError, RunError
from trajsmith.records.links import open_no_follow, refuse_link
from trajsmith.records.record import Record, format_first_error
from trajsmith.records.record_files import has_records, open_records
from trajsmith.records.storage import SAME_COMMAND, storage_boundary, storage_error
from trajsmith.records.writer_lock import WriterLock

CHUNK = 1 << 16
"""Bytes that are looked through at a time for the end of the last whole line."""

AnyRecord = TypeVar("AnyRecord", bound=Record)
Entry = TypeVar("Entry", bound=BaseModel)


class JournalLine(NamedTuple):
    """One whole line of a file."""

    number: int
    """From 1."""
    data: bytes
    """With its line end."""
    end: int
    """Bytes of the file up to its end."""


def read_lines(path: Path) -> Iterator[JournalLine]:
    """Stream the whole lines of a file in either form, without a torn last one; none if there is no file."""
    if not has_records(path):
        return
    end = 0
    with open_records(path) as source:
        for number, line in enumerate(source.iter_lines(), start=1):
            if not line.endswith(b"\n"):
                return
            end += len(line)
            yield JournalLine(number, line, end)


def read_records(path: Path, model: type[AnyRecord], skip: int = 0) -> Iterator[AnyRecord]:
    """Stream the records of a JSON Lines file in either form, leaving out the first `skip` without parsing them.

    Raises:
        InputError: The file is missing, or a line is no record of this kind; the text names file and line.
    """
    with open_records(path) as source:
        for number, line in enumerate(source.iter_lines(), start=1):
            if line.isspace():
                continue
            if skip:
                skip -= 1
                continue
            torn = "" if line.endswith(b"\n") else " (last line, torn?)"
            yield model.from_line(line, f"{source.path}:{number}{torn}")


def read_whole_records(path: Path, model: type[AnyRecord]) -> Iterator[AnyRecord]:
    """Stream the records of a file that a killed process may have left, without a torn last line.

    Raises:
        InputError: A line is no record of this kind; the text names file and line.
    """
    for number, line, _ in read_lines(path):
        if not line.isspace():
            yield model.from_line(line, f"{path}:{number}")


def read_entries(path: Path, model: type[Entry]) -> Iterator[Entry]:
    """Stream the whole lines of a file as entries, without a torn last one; none if there is no file.

    Raises:
        InputError: A line is something else; the text names file and line.
    """
    for number, line, _ in read_lines(path):
        try:
            yield model.model_validate_json(line)
        except ValidationError as error:
            raise InputError(f"{path}:{number}: {format_first_error(error)}") from error


def count_records(path: Path) -> int:
    """Return the number of records in a JSON Lines file in either form; 0 if there is no file."""
    if not has_records(path):
        return 0
    with open_records(path) as source:
        return source.count()


class AppendFile:
    """A file that only grows by whole blocks, open for one writer. Use it as a context manager.

    Args:
        path: The file; made if it is not there.
        again: What goes on after an error, such as a command.
        lock: Refuse a second writer; for files outside a run directory, which has a lock of its own.

    Raises:
        RunError: It cannot be written, or another process writes it.
    """

    def __init__(self, path: Path, again: str = SAME_COMMAND, lock: bool = False) -> None:
        self.path = path
        self.again = again
        with storage_boundary(path, again):
            self._handle = open_no_follow(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                self._lock = WriterLock(self._handle, path.with_name(f".{path.name}.owner"), path) if lock else None
                self.end = os.fstat(self._handle).st_size
            except BaseException:
                os.close(self._handle)
                raise

    def cut(self, end: int) -> None:
        """Cut the file off at a size in bytes."""
        with storage_boundary(self.path, self.again):
            if end != self.end:
                os.ftruncate(self._handle, end)
            self.end = end

    def cut_torn_line(self) -> None:
        """Cut off a last line without an end, which a kill left behind."""
        start = self.end
        while start:
            start = max(0, start - CHUNK)
            line_end = self.read(start, start + CHUNK).rfind(b"\n")
            if line_end >= 0:
                self.cut(start + line_end + 1)
                return
        self.cut(0)

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes between two positions."""
        with storage_boundary(self.path, self.again):
            return os.pread(self._handle, stop - start, start)

    def append(self, data: bytes) -> None:
        """Append a block with one write call; what a failed one left behind is cut off again."""
        try:
            if os.write(self._handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            with suppress(OSError):  # opening the file again cuts it off in any case
                os.ftruncate(self._handle, self.end)
            raise storage_error(error, self.path, self.again) from error
        self.end += len(data)

    def close(self, sync: bool = False) -> None:
        """Close the file, with `sync` after it is on the disk; safe to call twice."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        try:
            if sync:
                with storage_boundary(self.path, self.again):
                    os.fsync(handle)
        finally:
            if self._lock is not None:
                self._lock.release()
            os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class StepJournal:
    """Results of finished steps in JSON Lines files of one folder, looked up by what they were made from.

    A step is named by its kind and by a hash of everything that it depends on: work that was killed asks for the same
    steps again and gets those that are there. One process writes at a time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lines: dict[str, dict[str, bytes]] = {}

    async def step(self, file: str, model: type[Entry], made_from: Any, work: Callable[[], Awaitable[Entry]]) -> Entry:
        """Return the result of a step: the stored one, or one that is computed and stored now.

        Args:
            file: Name of the file, for example "drafts".
            made_from: Everything that the result depends on, as JSON.
        """
        key = content_hash([file, made_from], 20)
        known = self.get(file, model, key)
        if known is not None:
            return known
        record = await work()
        self.put(file, key, record)
        return record

    def get(self, file: str, model: type[Entry], key: str) -> Entry | None:
        """Return a result by the key of its step."""
        line = self._read(file).get(key)
        return None if line is None else self._parse(file, model, line)

    def all(self, file: str, model: type[Entry]) -> list[Entry]:
        """Return all results of a file in the order in which they were stored."""
        return [self._parse(file, model, line) for line in self._read(file).values()]

    def put(self, file: str, key: str, record: BaseModel) -> None:
        """Append a result under a key; it takes the place of an earlier one."""
        lines = self._read(file)
        line = orjson.dumps({"key": key, "record": record.model_dump(mode="json")}, option=orjson.OPT_APPEND_NEWLINE)
        with AppendFile(self._path(file), lock=True) as out:
            out.cut_torn_line()
            out.append(line)
        lines[key] = line

    def _path(self, file: str) -> Path:
        name = f"{file}.jsonl"
        refuse_link(self.folder, PurePath(name))
        return self.folder / name

    def _read(self, file: str) -> dict[str, bytes]:
        if file not in self._lines:
            path = self._path(file)
            self._lines[file] = {self._key(path, line.data): line.data for line in read_lines(path)}
        return self._lines[file]

    def _key(self, path: Path, line: bytes) -> str:
        try:
            return str(orjson.loads(line)["key"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise RunError(f"{path}: a line was changed by hand: {line[:80]!r}") from error

    def _parse(self, file: str, model: type[Entry], line: bytes) -> Entry:
        try:
            return model.model_validate(orjson.loads(line)["record"])
        except ValidationError as error:
            raise RunError(f"{self._path(file)}: made by another version: {format_first_error(error)}") from error
