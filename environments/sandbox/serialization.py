"""Serialization between parent and worker: frames of MessagePack, each a list of requests or of replies.

A request is [id, operation, play, arguments...]; a reply is [id, status, content], whose content is bytes: the JSON of
a result, or a MessagePack value of the type that the operation has. A worker answers every frame with one frame that
has the same ids in the same order. `trajsmith.environments.sandbox.codec` is what the parent believes of it.
"""

import os
import struct
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

HEADER = struct.Struct("<I")
"""Length of a frame in bytes."""
LARGEST_FRAME = 256 << 20
_READ = 1 << 16
"""Bytes of a read: beyond twice as many, `malloc` asks the kernel for each buffer, and gives it back."""
CHANNEL = 3
"""File descriptor of a worker's channel."""
PROGRESS = struct.Struct("<QQ")
"""Memory shared by a parent and a worker of several plays: requests begun so far, id of the request in work."""
HELLO = b"locked"
"""What a worker says once it is locked; anything else is why it cannot be, in words. Not a frame."""


def split_words(text: str) -> tuple[str, ...]:
    """Split a text into a tuple of names, so that long lists stay readable."""
    return tuple(text.split())


class WorkerOp(IntEnum):
    """Operation that a worker can be asked for."""

    CALL = 0
    """tool, arguments, actor, moment."""
    START = 1
    """base, changes."""
    CHANGES = 2
    END = 3
    BASE = 4
    """JSON of an initial state; the play is the name of the base."""
    DROP = 5
    """The play is the name of a base."""
    LOAD = 6
    """kind, payload, settings of the worker."""
    STATES = 7
    """seed."""
    FORK = 8
    """A process for one play; see `trajsmith.environments.sandbox.forking` for how it gets its channel."""
    LOOK = 9
    """What changed at module level since the last look, and which virtual sources were used."""
    PREPARE = 10
    """Initial actions of a task."""


class ReplyStatus(IntEnum):
    """Outcome of a request."""

    OK = 0
    REFUSED = 1
    INVALID_ARGUMENTS = 2
    UNKNOWN_TOOL = 3
    FAULT = 4
    """Content is [kind, message, tool]."""
    INPUT = 5
    """The environment's files are wrong; content is the message."""
    WROTE = 7
    """OK, and the call changed the state."""


class FrameReader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def frame(self, largest: int = LARGEST_FRAME) -> bytes | None:
        """The next whole frame, or None.

        Raises:
            ValueError: The frame says that it is larger than `largest` bytes; its body is never waited for.
        """
        have = self._bytes
        if len(have) < HEADER.size:
            return None
        size = HEADER.unpack_from(have)[0]
        if size > largest:
            raise ValueError(f"a frame of {size} bytes where {largest} are allowed")
        end = HEADER.size + size
        if len(have) < end:
            return None
        with memoryview(have) as view:
            body = bytes(view[HEADER.size : end])
        del have[:end]
        return body

    def __len__(self) -> int:
        return len(self._bytes)


def make_sender(descriptor: int) -> Callable[[bytes], None]:
    """A function that writes one frame; blocking."""
    write, pack = os.write, HEADER.pack

    def send(body: bytes) -> None:
        view = memoryview(pack(len(body)) + body)
        while view:
            view = view[write(descriptor, view) :]

    return send


def read_frames(descriptor: int) -> Iterator[bytes]:
    """Frames from a file descriptor until its end; blocking."""
    reader, read = FrameReader(), os.read
    while True:
        body = reader.frame()
        if body is not None:
            yield body
            continue
        data = read(descriptor, _READ)
        if not data:
            return
        reader.feed(data)


Request = list[Any]
RawReply = tuple[int, int, bytes]
"""Id, status, content."""
