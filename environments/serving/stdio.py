"""Serving over this process's stdin and stdout. Imports `mcp`, so import it only where it is used.

The streams are our own rather than the SDK's: its reader is a thread that nothing wakes before the client closes
stdin, so that SIGTERM could not end the process in order; and it lets a line that is no message pass unanswered.
"""

import asyncio
import fcntl
import os
import select
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from trajsmith.environments.serving.mcp_server import build_mcp_server
from trajsmith.environments.serving.session_manager import ServingSpec
from trajsmith.records import format_first_error

_LONGEST_LINE = 16 * 1024 * 1024
"""Bytes; a client that sends more without a line break is cut off."""
_CHUNK = 64 * 1024

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@contextmanager
def claim_stdio() -> Iterator[tuple[int, int]]:
    """Take stdin and stdout for the protocol alone; gives their descriptors.

    Meanwhile what others read from stdin is empty, and what they print goes to stderr: enter this before any code of
    an environment runs.
    """
    _flush()
    duplicates = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1)]
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(nothing, 1)
    finally:
        os.close(nothing)
    try:
        yield duplicates[0], duplicates[1]
    finally:
        _flush()
        for fd, private in enumerate(duplicates):
            os.dup2(private, fd)
            os.close(private)


def _flush() -> None:
    """Flush output printed until now to the place where stdout pointed."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


async def serve_stdio(offer: ServingSpec, stdin: int, stdout: int) -> None:
    """Serve one client, until it closes stdin or this is cancelled. The session is closed either way.

    Args:
        stdin: Descriptor of the claimed stdin; `stdout` likewise.
    """
    serving = asyncio.create_task(_serve(offer, stdin, stdout))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        serving.cancel()
        await asyncio.wait([serving])
        if not serving.cancelled():
            serving.exception()  # the SDK trips over its own streams when it is cancelled amid messages
        raise


async def _serve(offer: ServingSpec, stdin: int, stdout: int) -> None:
    server = build_mcp_server(offer)
    async with _streams(stdin, stdout) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


@asynccontextmanager
async def _streams(
    stdin: int, stdout: int
) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage | Exception], Outgoing]]:
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, stdin, to_server, outgoing.clone())
        group.start_soon(_write, stdout, from_server)
        yield incoming, outgoing
        incoming.close()
        outgoing.close()


async def _read(fd: int, to_server: Incoming, answer: Outgoing) -> None:
    async with to_server, answer:
        async for line in _lines(fd):
            try:
                message = _message(line)
            except ValueError as error:
                fault = ErrorData(code=PARSE_ERROR, message=f"this line is no JSON-RPC message: {error}")
                await answer.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=fault)))
                continue
            try:
                await to_server.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


def _message(line: bytes) -> JSONRPCMessage:
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        raise ValueError(format_first_error(error)) from error
    if isinstance(message, JSONRPCNotification) and b'"id"' in line and "id" in orjson.loads(line):
        raise ValueError("id: neither a text nor a whole number")  # else it would count as a notification
    return message


async def _lines(fd: int) -> AsyncIterator[bytes]:
    """Lines of a descriptor that are not blank, until its end."""
    begun: list[bytes] = []
    length = 0
    while chunk := await _chunk(fd):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            line = b"".join((*begun, part))
            begun, length = [], 0
            if line.strip():
                yield line
        begun.append(rest)
        length += len(rest)
        if length > _LONGEST_LINE:
            return


async def _chunk(fd: int) -> bytes:
    loop = asyncio.get_running_loop()
    await _ready(fd, loop.add_reader, loop.remove_reader)
    return os.read(fd, _CHUNK)


async def _write(fd: int, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
    loop = asyncio.get_running_loop()
    async with from_server:
        async for message in from_server:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            left = memoryview(f"{line}\n".encode())
            try:
                while left:
                    await _ready(fd, loop.add_writer, loop.remove_writer)
                    # So much never blocks where there is any room, and a full pipe must not keep us from ending.
                    left = left[os.write(fd, left[: select.PIPE_BUF]) :]
            except OSError:  # nobody listens any more
                return


async def _ready(fd: int, watch: Callable[..., None], forget: Callable[[int], bool]) -> None:
    """Wait until a descriptor can be read or written without blocking."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    try:
        watch(fd, _set, ready)
    except PermissionError:  # a regular file or /dev/null cannot be watched, and never blocks
        return
    try:
        await ready
    finally:
        forget(fd)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
