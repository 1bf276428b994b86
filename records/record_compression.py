"""Compresses record files to which nothing is added any more, makes them plain again, and opens either for writing."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from trajsmith.records.errors import InputError
from trajsmith.records.id_index import IdIndexBuilder
from trajsmith.records.journal import AppendFile
from trajsmith.records.record_files import (
    CompressedSource,
    PlainSource,
    build_compressed_path,
    build_index_path,
    compute_fingerprint,
    find_form,
)
from trajsmith.records.seekable_zstd import LARGEST_FRAME, ZstdFrameWriter
from trajsmith.records.storage import SAME_COMMAND, open_whole_file, storage_boundary

FRAME = 1 << 21
"""Plain bytes of a frame, which is the window of the level of zstd: smaller ones compress worse, larger ones make a
look-up slower."""


def compress_records(path: Path, part: Path, notice: Callable[[int], object] = int, again: str = SAME_COMMAND) -> None:
    """Replace a plain record file, if there is one, by its compressed form. Killed at any moment, one of them is whole.

    Args:
        path: The file, to which nobody writes meanwhile.
        part: Where the compressed form is written, on the same file system.
        notice: Is told the numbers of plain bytes that were done.
        again: What goes on after an error, such as a command.

    Raises:
        InputError: A line is no record, or the last one is torn.
        RunError: The disk is full or broken.
    """
    if not path.is_file():
        return
    target, builder = build_compressed_path(path), IdIndexBuilder(path)
    with storage_boundary(target, again), PlainSource(path) as source, _open_durable(target, part) as file:
        writer = ZstdFrameWriter(file)
        for lines in _group_lines(source):
            for line in lines:
                builder.add(line)
            data = b"".join(lines)
            writer.add(data)
            notice(len(data))
        writer.finish(builder.build(compute_fingerprint(source)))
        _copy_time(path, file)
    _sync_folder(path)
    with storage_boundary(path, again):
        for form in (build_index_path(path), path):
            form.unlink(missing_ok=True)


def restore_records(path: Path, part: Path, notice: Callable[[int], object] = int, again: str = SAME_COMMAND) -> None:
    """Replace the compressed form of a record file, if there is one, by the plain one, as safely.

    Args:
        path: Plain name of the file, to which nobody writes meanwhile.
        part: Where the plain form is written, on the same file system.
        notice: Is told the numbers of plain bytes that were done.
        again: What goes on after an error, such as a command.

    Raises:
        InputError: It is damaged.
        RunError: The disk is full or broken.
    """
    if find_form(path) == build_compressed_path(path):
        with storage_boundary(path, again), CompressedSource(path) as source, _open_durable(path, part) as file:
            for block in source.iter_blocks():
                file.write(block)
                notice(len(block))
            _copy_time(source.path, file)
        _sync_folder(path)
    with storage_boundary(path, again):
        build_compressed_path(path).unlink(missing_ok=True)


class CompressedOutput:
    """A compressed record file that is open for its one writer: the first change makes it plain.

    Args:
        path: Plain name of the file.
        part: Where the plain form is written before it is put in place.
        again: What goes on after an error, such as a command.
    """

    def __init__(self, path: Path, part: Path, again: str = SAME_COMMAND) -> None:
        self.path = path
        self._part = part
        self._again = again
        self._plain: AppendFile | None = None
        with storage_boundary(path, again):
            self._source = CompressedSource(path)

    @property
    def end(self) -> int:
        """Plain bytes of the file."""
        return self._source.size if self._plain is None else self._plain.end

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes between two positions."""
        return self._source.read(start, stop - start) if self._plain is None else self._plain.read(start, stop)

    def cut(self, end: int) -> None:
        """Cut the file off at a size in bytes."""
        if end != self.end:
            self._open_plain().cut(end)

    def append(self, data: bytes) -> None:
        """Append a block as `AppendFile` does."""
        self._open_plain().append(data)

    def close(self, sync: bool = False) -> None:
        """Close the file, with `sync` after it is on the disk; safe to call twice."""
        self._source.close()
        if self._plain is not None:
            self._plain.close(sync)

    def _open_plain(self) -> AppendFile:
        if self._plain is None:
            restore_records(self.path, self._part, again=self._again)
            self._plain = AppendFile(self.path, self._again)
        return self._plain


def open_output(path: Path, part: Path, again: str = SAME_COMMAND) -> AppendFile | CompressedOutput:
    """Open a record file for its one writer, in the form that it has; a new one is plain.

    Raises:
        InputError: It is compressed and damaged.
        RunError: It cannot be written.
    """
    if find_form(path) == build_compressed_path(path):
        return CompressedOutput(path, part, again)
    with storage_boundary(path, again):
        build_compressed_path(path).unlink(missing_ok=True)  # a kill left both, and the plain one is going to change
    return AppendFile(path, again)


def _group_lines(source: PlainSource) -> Iterator[list[bytes]]:
    """Iterate over the lines of a file in groups of a frame each."""
    lines: list[bytes] = []
    size = 0
    for line in source.iter_lines():
        if not line.endswith(b"\n"):
            raise InputError(f"{source.path} cannot be compressed: its last line has no end; finish the run first")
        if len(line) > LARGEST_FRAME:
            raise InputError(f"{source.path} cannot be compressed: a line is longer than {LARGEST_FRAME >> 20} MiB")
        if lines and size + len(line) > FRAME:
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield lines


@contextmanager
def _open_durable(path: Path, part: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears when all of it is on the disk."""
    part.parent.mkdir(exist_ok=True)
    with open_whole_file(path, True, part) as file:
        yield file


def _copy_time(path: Path, file: IO[bytes]) -> None:
    """Give a form of a file the time of the other one: its records are not newer."""
    file.flush()
    status = path.stat()
    os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))


def _sync_folder(path: Path) -> None:
    """Bring the names of a folder onto the disk, before what they replace is removed."""
    with storage_boundary(path.parent):
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
