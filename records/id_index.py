"""Index from the ids of the records of one file to where their lines start, searched on the disk in microseconds.

Layout, all numbers little-endian: magic, number of records, size and fingerprint of the file, checksum of what follows;
then the sorted hashes of all ids, then the offsets of their lines in the same order. An offset counts plain bytes, so
the index does not depend on whether the file is compressed. A hash may be that of several ids: whoever looks one up
compares the line's own.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct

import orjson

from trajsmith.records.errors import InputError

MAGIC = b"TSIDS\x00\x00\x01"
HEADER = Struct("<8sQQQQ")
NUMBER = Struct("<Q")
_ID = re.compile(rb'\{"id":"([^"\\]+)"')


def read_line_id(line: bytes, where: str) -> str:
    """Return the id of the record on a line.

    Raises:
        InputError: It is no record.
    """
    match = _ID.match(line)
    if match is not None:
        return match[1].decode("utf-8", "replace")
    try:
        return str(orjson.loads(line)["id"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{where}: not a record with an id") from error


def hash_id(name: str) -> int:
    """Return the 64 bits by which an id is looked up."""
    import xxhash

    return xxhash.xxh64_intdigest(name.encode("utf-8", "surrogatepass"))


class IdIndexBuilder:
    """Collects the lines of one file in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hashes, self._offsets = array("Q"), array("Q")
        self._line = 0
        self.end = 0
        """Bytes of the file up to the end of the last line that was added."""

    def add(self, line: bytes) -> None:
        """Add the next line of the file, an empty one, too."""
        self._line += 1
        if not line.isspace():
            self._hashes.append(hash_id(read_line_id(line, f"{self._path}:{self._line}")))
            self._offsets.append(self.end)
        self.end += len(line)

    def build(self, fingerprint: int) -> bytes:
        """Return the index; `fingerprint` is that of the file."""
        import numpy
        import xxhash

        hashes, offsets = (numpy.frombuffer(numbers, dtype=numpy.uint64) for numbers in (self._hashes, self._offsets))
        order = numpy.argsort(hashes, kind="stable")
        body = b"".join(numbers[order].astype("<u8").tobytes() for numbers in (hashes, offsets))
        return HEADER.pack(MAGIC, len(order), self.end, fingerprint, xxhash.xxh64_intdigest(body)) + body


class IdIndex:
    """An index as it was built.

    Args:
        read: Gives bytes of it, by place and length.
        length: Number of its bytes.
        path: File for errors.

    Raises:
        InputError: It is no index, or torn.
    """

    def __init__(self, read: Callable[[int, int], bytes], length: int, path: Path) -> None:
        self._read = read
        self._path = path
        head = read(0, HEADER.size)
        if len(head) < HEADER.size:
            raise self._damaged()
        magic, count, size, self.fingerprint, self._checksum = HEADER.unpack(head)
        self.count: int = count
        """Number of records."""
        self.size: int = size
        """Plain bytes of their file."""
        if magic != MAGIC or length != HEADER.size + 2 * NUMBER.size * self.count:
            raise self._damaged()

    def find(self, name: str) -> Iterator[int]:
        """Iterate over the offsets of lines whose id has the hash of this one."""
        key = hash_id(name)
        place = bisect_left(range(self.count), key, key=self._read_number)
        while place < self.count and self._read_number(place) == key:
            yield self._read_number(self.count + place)
            place += 1

    def check(self) -> None:
        """Compare the checksum of the whole index.

        Raises:
            InputError: It differs.
        """
        import xxhash

        if xxhash.xxh64_intdigest(self._read(HEADER.size, 2 * NUMBER.size * self.count)) != self._checksum:
            raise self._damaged()

    def _read_number(self, place: int) -> int:
        data = self._read(HEADER.size + NUMBER.size * place, NUMBER.size)
        if len(data) < NUMBER.size:
            raise self._damaged()
        return int.from_bytes(data, "little")

    def _damaged(self) -> InputError:
        return InputError(f"{self._path} is damaged: its index of ids is not what was written; put back a copy of it")
