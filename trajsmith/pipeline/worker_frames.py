"""Messages between the driver of a run and its workers: a length of four bytes and a pickle, both ends trajsmith."""

import asyncio
import pickle
import struct
from typing import Any, Literal, NamedTuple

LENGTH = struct.Struct(">I")


class WorkRequest(NamedTuple):
    """One input of a stage."""

    number: int
    stage: str
    item: Any


class WorkOutcome(NamedTuple):
    """Result of the work on one input."""

    number: int
    kind: Literal["records", "drop", "input_error", "run_error"]
    records: tuple[tuple[str, bytes], ...] = ()
    """Ids with the lines of the records."""
    text: str = ""
    """Reason of a drop, or the error."""
    detail: str = ""


def pack_frame(message: WorkRequest | WorkOutcome) -> bytes:
    """Return the bytes of one message."""
    data = pickle.dumps(tuple(message), pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


async def read_frame(reader: asyncio.StreamReader) -> tuple[Any, ...] | None:
    """Read one message; None at the end of the pipe."""
    try:
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        message: tuple[Any, ...] = pickle.loads(await reader.readexactly(length))  # noqa: S301 - from a process that this one started
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return message
