"""Record files in either form: plain JSON Lines, or compressed with `.zst` at the end of the name.

Where both are there, which a kill leaves behind, they hold the same lines, and the plain one is read and written.
A compressed file holds frames of whole lines, and the index of its ids. All places and sizes are those of plain bytes.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from trajsmith.records.errors import InputError
from trajsmith.records.id_index import IdIndex, IdIndexBuilder
from trajsmith.records.links import open_no_follow
from trajsmith.records.seekable_zstd import ZstdFrameReader
from trajsmith.records.storage import open_whole_file

BLOCK = 1 << 16
"""Bytes read at a time: for each larger block the system maps fresh pages, which takes twice as long."""
WHITESPACE = b" \t\n\r\x0b\x0c"
PRINTED = 1 << 12
"""Bytes at both ends of a file that its fingerprint is made of."""
INDEXED = 1 << 23
"""Plain files of more bytes get an index beside them at the first look-up; others are looked through each time."""

REMEMBERED = 256
_COUNTS: dict[tuple[int, ...], int] = {}
"""Version of a file to the number of its records: a command asks several times, and a large file takes a second."""


def build_compressed_path(path: Path) -> Path:
    """Return the name of the compressed form of a record file."""
    return path.with_name(f"{path.name}.zst")


def build_index_path(path: Path) -> Path:
    """Return the name of the index of a plain record file."""
    return path.with_name(f"{path.name}.ids")


def find_form(path: Path) -> Path | None:
    """Return the form of a record file that counts, by its plain name; None if there is none."""
    forms = (path, build_compressed_path(path), path)  # the plain one may take the place of the other in between
    return next((form for form in forms if form.is_file()), None)


def has_records(path: Path) -> bool:
    """Return True if a record file is there, in either form."""
    return find_form(path) is not None


def remove_records(path: Path) -> None:
    """Remove a record file in all its forms; killed in between, the plain one is left."""
    for form in (build_index_path(path), build_compressed_path(path), path):
        form.unlink(missing_ok=True)


class PlainSource:
    """A plain record file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb")

    @property
    def size(self) -> int:
        """Plain bytes of the file."""
        return os.fstat(self._file.fileno()).st_size

    def iter_lines(self) -> Iterator[bytes]:
        """Iterate over the lines, line ends included; the last one of a plain file may be torn."""
        self._file.seek(0)
        return iter(self._file)

    def iter_blocks(self) -> Iterator[bytes]:
        """Iterate over the plain bytes."""
        self._file.seek(0)
        while block := self._file.read(BLOCK):
            yield block

    def read(self, start: int, length: int) -> bytes:
        """Return plain bytes; fewer at the end of the file."""
        return os.pread(self._file.fileno(), length, start)

    def read_line(self, start: int) -> bytes:
        """Return the line that starts at a place."""
        self._file.seek(start)
        return self._file.readline()

    def open_index(self, part: Path | None = None) -> IdIndex:
        """Return the index of ids that lies beside the file; one that is missing or of other records is built.

        Args:
            part: Where a new one is written before it is put there; without it, and for a small file, none is written.
        """
        size, fingerprint = self.size, compute_fingerprint(self)
        with suppress(OSError, InputError):  # one that is missing or damaged is built anew
            index = _load_index(build_index_path(self.path))
            if (index.size, index.fingerprint) == (size, fingerprint):
                return index
        builder = IdIndexBuilder(self.path)
        for line in self.iter_lines():
            if line.endswith(b"\n"):
                builder.add(line)
        data = builder.build(fingerprint)
        if part is not None and builder.end == size >= INDEXED:
            target = build_index_path(self.path)
            with suppress(OSError):  # a folder may be read-only
                part.parent.mkdir(exist_ok=True)
                with open_whole_file(target, part=part) as file:
                    file.write(data)
        return _wrap_index(data, self.path)

    def count(self) -> int:
        """Return the number of records."""
        status = os.fstat(self._file.fileno())
        version = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        count = _COUNTS.get(version)
        if count is None:
            if len(_COUNTS) >= REMEMBERED:
                _COUNTS.clear()
            count = _COUNTS[version] = sum(1 for _ in iter_placed_lines(self))
        return count

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class CompressedSource(ZstdFrameReader):
    """A compressed record file, by its plain name."""

    def __init__(self, path: Path) -> None:
        super().__init__(build_compressed_path(path))

    def iter_lines(self) -> Iterator[bytes]:
        """Iterate over the lines, line ends included; the last one of a plain file may be torn."""
        return chain.from_iterable(map(BytesIO, self.iter_frames()))

    def iter_blocks(self) -> Iterator[bytes]:
        """Iterate over the plain bytes."""
        return self.iter_frames()

    def read_line(self, start: int) -> bytes:
        """Return the line that starts at a place."""
        rest = self.read_rest(start)
        return rest[: rest.find(b"\n") + 1]

    def open_index(self, part: Path | None = None) -> IdIndex:
        """Return the index of ids that the file holds; none is written."""
        return IdIndex(self.read_own, self.own_size, self.path)

    def count(self) -> int:
        """Return the number of records."""
        return self.open_index().count


RecordSource: TypeAlias = PlainSource | CompressedSource


def open_records(path: Path) -> RecordSource:
    """Open a record file in the form that it has, by its plain name.

    Raises:
        InputError: There is none, it cannot be read, or it is damaged.
    """
    try:
        for kind in (PlainSource, CompressedSource, PlainSource):  # the form may change between two looks
            with suppress(FileNotFoundError):
                return kind(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    raise InputError(f"{path} cannot be read: {os.strerror(errno.ENOENT)}")


def iter_placed_lines(source: RecordSource) -> Iterator[tuple[int, memoryview]]:
    """Iterate over the lines that are not blank, line ends included, each with its place; the last one may be torn.

    A pass that only looks at places and sizes takes less than half of the time that reading lines takes.
    """
    place, pieces = 0, list[memoryview]()
    for block in source.iter_blocks():
        view, start = memoryview(block), 0
        while (end := block.find(b"\n", start) + 1) > 0:
            line = memoryview(b"".join([*pieces, view[start:end]])) if pieces else view[start:end]
            if line[0] not in WHITESPACE or not bytes(line).isspace():
                yield place, line
            place, start, pieces = place + len(line), end, []
        if start < len(block):
            pieces.append(view[start:])
    rest = b"".join(pieces)
    if rest and not rest.isspace():
        yield place, memoryview(rest)


def compute_fingerprint(source: PlainSource) -> int:
    """Return a hash of the size and of both ends of a file: what is appended, cut or made anew changes it."""
    import xxhash

    size = source.size
    head, tail = source.read(0, PRINTED), source.read(max(0, size - PRINTED), PRINTED)
    return xxhash.xxh64_intdigest(b"%d\n%b\n%b" % (size, head, tail))


def _load_index(path: Path) -> IdIndex:
    handle = open_no_follow(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        index = _wrap_index(file.read(), path)
    index.check()
    return index


def _wrap_index(data: bytes, path: Path) -> IdIndex:
    return IdIndex(lambda start, length: data[start : start + length], len(data), path)
