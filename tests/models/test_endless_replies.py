"""Replies without end, packed or made of countless values cost a failed attempt and little memory."""

import asyncio
import resource
import zlib
from collections.abc import AsyncIterator

import pytest
from chatting import request, settings

from trajsmith.models.failures import FailedAttempt
from trajsmith.models.openai_server import LONGEST_REPLY, OpenAIProvider
from trajsmith.models.serialization import parse_reply

MIB = 1 << 20
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"\r\n" + b'{"choices": "')
    while not writer.is_closing():
        writer.write(b"x" * MIB)
        await writer.drain()


async def packed(writer: asyncio.StreamWriter) -> None:
    packer = zlib.compressobj(wbits=31)
    body = b"".join([packer.compress(b"x" * MIB) for _ in range(400)] + [packer.flush()])
    writer.write(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


@pytest.fixture
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await request.param(writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    server.close()


@pytest.mark.parametrize("address", [endless, packed], indirect=True, ids=lambda one: one.__name__)
async def test_a_reply_without_end_is_a_failed_attempt(address: str) -> None:
    provider = OpenAIProvider("m", settings(address))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FailedAttempt, match=f"more than {LONGEST_REPLY} bytes"):
        await provider.send(request("hello"))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 6 * LONGEST_REPLY
    await provider.close()


def test_a_reply_of_countless_values_is_refused_before_it_is_decoded() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FailedAttempt, match="more than 1000000 values"):
        parse_reply(b'{"choices":[' + b"[]," * 5_000_000 + b"[]]}")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 3 * LONGEST_REPLY
