"""The two ways to reach a server, as streams of the MCP client. Imports `mcp`, so import it only where it is used.

stdio is our own rather than the SDK's, which passes on parts of our environment, ignores what is no message on
stdout, keeps the exit code to itself and waits seconds for a server whose workspace is thrown away anyhow.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from trajsmith.environments.adapters.mcp.process import LONGEST_MESSAGE, ServerProcess
from trajsmith.environments.sandbox.codec import check_json

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def _stdio(
    process: ServerProcess,
) -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    incoming, to_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_client, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(process.listen_to_stderr)
            group.start_soon(_read, process, incoming)
            group.start_soon(_write, process, outgoing)
            try:
                yield to_client, from_client
            finally:
                with anyio.CancelScope(shield=True):
                    await process.stop()
                group.cancel_scope.cancel()
    finally:
        process.kill()
        for stream in (incoming, to_client, from_client, outgoing):
            stream.close()


async def _read(process: ServerProcess, incoming: Incoming) -> None:
    async with incoming:
        async for line in process.lines():
            try:
                message = parse_message(line)
            except ValueError:
                process.add_garbage(line)
                continue
            try:
                await incoming.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


def parse_message(line: bytes) -> JSONRPCMessage:
    """Parse a line of a server.

    Raises:
        ValueError: It is no JSON-RPC message, nests too deeply, or has so many values that they would take more
            memory than the longest line.
    """
    check_json(line, LONGEST_MESSAGE)
    return jsonrpc_message_adapter.validate_json(line, by_name=False)


async def _write(process: ServerProcess, outgoing: Outgoing) -> None:
    async with outgoing:
        async for message in outgoing:
            data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await process.send(data.encode() + b"\n")
            except OSError:
                return


def stdio(process: ServerProcess) -> Transport:
    """Streams to a process; leaving them ends it."""
    return _stdio(process)


class _BoundedStream(httpx2.AsyncByteStream):
    """A response whose messages end: a body as a whole, or each event of a stream."""

    def __init__(self, stream: httpx2.AsyncByteStream, events: bool) -> None:
        self._stream = stream
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            end = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\n\r\n"), chunk.rfind(b"\r\r")) if self._events else -1
            size = len(chunk) - end if end >= 0 else size + len(chunk)
            if size > LONGEST_MESSAGE:
                raise httpx2.ReadError(f"a message of more than {LONGEST_MESSAGE} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound_response(response: httpx2.Response) -> None:
    """Limit what a server can make this process read; a packed body could grow without limit."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the server packs its answers although it was asked not to")
    events = response.headers.get("content-type", "").startswith("text/event-stream")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _BoundedStream(response.stream, events)


@asynccontextmanager
async def _http(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[object]:
    client = httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(seconds, read=None),
        event_hooks={"response": [bound_response]},
    )
    async with client, streamable_http_client(url, http_client=client) as streams:
        yield streams


def http(url: str, headers: Mapping[str, str], seconds: float) -> Transport:
    """Streams to an address; `seconds` is for connecting and sending, answers have their own limit."""
    return _http(url, headers, seconds)  # type: ignore[return-value]
