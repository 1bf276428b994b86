"""Files of zstd frames with a table of them, in the seekable format of zstd: `zstd -dc FILE` gives the plain bytes.

Each frame can be decompressed by itself. After them stand two frames that decoders skip: bytes of the writer's own, and
the table with the two sizes of each frame and a checksum (the lower half of XXH64) of what it holds.
"""

import os
import stat
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from struct import Struct, unpack
from types import TracebackType
from typing import IO, Any, Self

from trajsmith.records.errors import InputError
from trajsmith.records.links import open_no_follow

LEVEL = 3
LARGEST_FRAME = 1 << 28
"""Plain bytes of a frame, at most: what a reader takes into memory at once."""
SKIPPED = Struct("<II")
OWN, TABLE = 0x184D2A50, 0x184D2A5E
"""Magic numbers of frames that decoders skip."""
ENTRY = Struct("<III")
FOOTER = Struct("<IBI")
CHECKSUMS, SEEKABLE = 1 << 7, 0x8F92EAB1


def _create_codec() -> Any:
    import pyarrow

    return pyarrow.Codec("zstd", compression_level=LEVEL)


def _compute_checksum(data: bytes) -> int:
    import xxhash

    return xxhash.xxh64_intdigest(data) & 0xFFFFFFFF


class ZstdFrameWriter:
    """Writes frames, and at the end the table."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._codec = _create_codec()
        self._entries: list[bytes] = []

    def add(self, data: bytes) -> None:
        """Write one frame."""
        frame = self._codec.compress(data, asbytes=True)
        self._file.write(frame)
        self._entries.append(ENTRY.pack(len(frame), len(data), _compute_checksum(data)))

    def finish(self, own: bytes) -> None:
        """Write bytes of one's own and the table."""
        table = b"".join(self._entries) + FOOTER.pack(len(self._entries), CHECKSUMS, SEEKABLE)
        self._file.write(SKIPPED.pack(OWN, len(own)) + own + SKIPPED.pack(TABLE, len(table)) + table)


class ZstdFrameReader:
    """Reads plain bytes at any place. Use it as a context manager.

    Args:
        path: The file; it is not opened through a symbolic link.

    Raises:
        OSError: It cannot be opened.
        InputError: It is torn, damaged or something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = open_no_follow(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            status = os.fstat(self._handle)
            if not stat.S_ISREG(status.st_mode):
                raise self._damaged("it is no file")
            self._read_table(status.st_size)
        except BaseException:  # whatever is wrong, the file is closed; it goes on up
            self.close()
            raise
        self._codec = _create_codec()
        self._last = -1, b""

    @property
    def size(self) -> int:
        """Plain bytes of all frames."""
        return self._starts[-1]

    def read_own(self, start: int, length: int) -> bytes:
        """Return some of the bytes of the writer's own; fewer at their end."""
        return self._read_file(self._own + start, max(0, min(length, self.own_size - start)))

    def iter_frames(self) -> Iterator[bytes]:
        """Iterate over what the frames hold."""
        return map(self._decompress, range(len(self._sizes)))

    def read(self, start: int, length: int) -> bytes:
        """Return plain bytes; fewer at the end of the file."""
        number = self._find_frame(start)
        parts: list[bytes] = []
        while length > 0 and number < len(self._sizes):
            offset = start - self._starts[number]
            parts.append(self._load(number)[offset : offset + length])
            start += len(parts[-1])
            length -= len(parts[-1])
            number += 1
        return b"".join(parts)

    def read_rest(self, start: int) -> bytes:
        """Return the plain bytes from one place to the end of the frame that it is in."""
        number = self._find_frame(start)
        return self._load(number)[start - self._starts[number] :] if number < len(self._sizes) else b""

    def close(self) -> None:
        """Close the file; safe to call twice."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find_frame(self, start: int) -> int:
        return bisect_right(self._starts, start) - 1

    def _load(self, number: int) -> bytes:
        """Decompress a frame, or return the one that was read last: neighbours are read one after the other."""
        if self._last[0] != number:
            self._last = number, self._decompress(number)
        return self._last[1]

    def _decompress(self, number: int) -> bytes:
        size, (start, stop) = self._sizes[number], self._places[number : number + 2]
        frame = self._read_file(start, stop - start)
        try:
            data: bytes = self._codec.decompress(frame, size, asbytes=True)
        except (OSError, ValueError) as error:  # ValueError is the base of pyarrow's
            raise self._damaged(f"frame {number + 1} cannot be decompressed") from error
        if len(data) != size or _compute_checksum(data) != self._checksums[number]:
            raise self._damaged(f"frame {number + 1} does not hold what was written")
        return data

    def _read_file(self, start: int, length: int) -> bytes:
        try:
            return os.pread(self._handle, length, start)
        except OSError as error:
            raise InputError(f"{self.path} cannot be read: {error.strerror}") from error

    def _read_table(self, end: int) -> None:
        torn = "it does not end in the table of its frames"
        footer = self._read_file(max(0, end - FOOTER.size), FOOTER.size)
        if len(footer) < FOOTER.size:
            raise self._damaged(torn)
        count, flags, magic = FOOTER.unpack(footer)
        size = ENTRY.size * count + FOOTER.size
        table = end - size
        if magic != SEEKABLE or flags != CHECKSUMS or table < 2 * SKIPPED.size:
            raise self._damaged(torn)
        if self._read_file(table - SKIPPED.size, SKIPPED.size) != SKIPPED.pack(TABLE, size):
            raise self._damaged(torn)
        numbers: tuple[int, ...] = unpack(f"<{3 * count}I", self._read_file(table, ENTRY.size * count))
        self._sizes, self._checksums = numbers[1::3], numbers[2::3]
        self._places = list(accumulate(numbers[0::3], initial=0))
        self._starts = list(accumulate(self._sizes, initial=0))
        self._own = self._places[-1] + SKIPPED.size
        self.own_size = table - SKIPPED.size - self._own
        """Number of the bytes of the writer's own."""
        fits = self.own_size >= 0 and min(self._sizes, default=1) > 0 and max(self._sizes, default=0) <= LARGEST_FRAME
        if not fits or self._read_file(self._places[-1], SKIPPED.size) != SKIPPED.pack(OWN, self.own_size):
            raise self._damaged("the table of its frames does not belong to them")

    def _damaged(self, reason: str) -> InputError:
        return InputError(f"{self.path} is damaged: {reason}; put back a copy of it")
