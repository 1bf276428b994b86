"""Clients that say nothing, little, too much or nonsense: the server answers others, and frees what they took."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import httpx2
import pytest
from served import Counted, over_http
from test_serving_access import HEADERS, HELLO

from trajsmith.environments.serving import prepare_serving

IDLE = 1.0
HEAD = (
    "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\n"
    "Content-Type: application/json\r\n"
)


@pytest.fixture
async def source() -> Counted:
    return Counted()


@pytest.fixture
async def url(source: Counted) -> AsyncIterator[str]:
    async with over_http(await prepare_serving(source), most=5, idle=IDLE) as address:
        yield address


async def send(url: str, data: bytes, seconds: float = 5.0) -> tuple[bytes, asyncio.StreamWriter]:
    """Send bytes, and return what is answered within some seconds, with the connection."""
    host = url.split("/")[2]
    reader, writer = await asyncio.open_connection(*host.split(":"))
    writer.write(data.replace(b"{host}", host.encode()))
    await writer.drain()
    answer = b""
    try:
        async with asyncio.timeout(seconds):
            answer = await reader.read(1 << 16)
    except (TimeoutError, ConnectionError):
        pass
    return answer, writer


async def serves(url: str) -> bool:
    """Tell whether a common client gets what it wants."""
    async with httpx2.AsyncClient(headers=HEADERS, timeout=10) as raw:
        answer = await raw.post(url, json=HELLO)
        if answer.status_code != 200:
            return False
        name = answer.headers["mcp-session-id"]
        return (await raw.delete(url, headers={"mcp-session-id": name})).status_code == 200


@pytest.mark.timeout(60)
async def test_bodies_that_never_come_keep_no_session(url: str, source: Counted) -> None:
    writers = []
    for _ in range(8):  # more than there are sessions
        _, writer = await send(url, HEAD.encode() + b"Content-Length: 1000\r\n\r\n{", seconds=0.05)
        writers.append(writer)
    began = time.monotonic()
    while not await serves(url):
        assert time.monotonic() - began < 10 * IDLE, "a body that does not come holds its session"
        await asyncio.sleep(0.1)
    for writer in writers:
        writer.close()


@pytest.mark.timeout(60)
async def test_connections_that_say_nothing_keep_nobody_out(url: str) -> None:
    host, port = url.split("/")[2].split(":")
    silent = [await asyncio.open_connection(host, port) for _ in range(200)]
    assert await serves(url)
    for _, writer in silent:
        writer.close()


DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
CALL = '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "put", "arguments": ARGUMENTS}}'
BODIES = {
    "deep": DEEP,
    "deep lists": b"[" * 100_000,
    "a number of 5,000 digits": b"9" * 5000,
    "an id of 5,000 digits": json.dumps(HELLO).replace('"id": 1', '"id": ' + "9" * 5000).encode(),
    "a batch of thousands": json.dumps([HELLO] * 5000).encode(),
    "half a character": b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "initialize"}',
    "no UTF-8": b"\xff\xfe\x00",
    "NUL": b"\0" * 1000,
    "nothing": b"",
    "an answer": b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
    "a method without end": json.dumps({**HELLO, "method": "x" * 1_000_000}).encode(),
    "many keys": json.dumps({**HELLO, "params": {f"k{n}": 1 for n in range(100_000)}}).encode(),
    "too long": b" " * 8_000_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
async def test_a_body_of_nonsense_is_refused_and_costs_no_session(url: str, source: Counted, body: bytes) -> None:
    for _ in range(6):
        try:
            async with httpx2.AsyncClient(headers=HEADERS, timeout=20) as raw:
                answer = await raw.post(url, content=body)
        except httpx2.HTTPError:
            continue
        refused = 400 <= answer.status_code < 500 or (answer.status_code == 200 and "error" in answer.json())
        assert refused or answer.status_code == 202, answer.text[:300]
        assert "Traceback" not in answer.text
    assert await serves(url)
    assert await source.all_closed()


ARGUMENTS = {
    "a number without end": '{"book": "a", "count": ' + "9" * 4000 + "}",
    "128 bits": '{"book": "a", "count": ' + str(2**128) + "}",
    "deep": '{"book": ' + "[" * 500 + "]" * 500 + "}",
    "half a character": '{"book": "\\ud800"}',
    "NaN": '{"book": "a", "count": NaN}',
    "infinity": '{"book": "a", "count": 1e400}',
    "NUL": '{"book": "\\u0000"}',
    "a key twice": '{"book": "a", "book": "b"}',
    "a list": "[]",
    "null": "null",
    "many": json.dumps({f"k{n}": n for n in range(20_000)}),
    "long": json.dumps({"book": "x" * 2_000_000}),
    "a method": '{"__class__": "x", "self": 1}',
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=list(ARGUMENTS))
async def test_arguments_of_nonsense_are_a_refusal_or_an_error_and_the_session_goes_on(
    url: str, arguments: str
) -> None:
    async with httpx2.AsyncClient(headers=HEADERS, timeout=20) as raw:
        hello = await raw.post(url, json=HELLO)
        session = {"mcp-session-id": hello.headers["mcp-session-id"]}
        answer = await raw.post(url, content=CALL.replace("ARGUMENTS", arguments).encode(), headers=session)
        assert answer.status_code in (200, 400), answer.text[:300]
        assert "Traceback" not in answer.text
        again = await raw.post(url, content=CALL.replace("ARGUMENTS", '{"book": "ok"}').encode(), headers=session)
        assert again.json()["result"]["structuredContent"]["ok"] >= 1, again.text[:300]


HEADS = {
    "two hosts": b"POST /mcp HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
    "no host": b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "a user in the host": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1@evil.example\r\nContent-Length: 0\r\n\r\n",
    "a whole address": b"POST http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
    "two lengths": HEAD.encode() + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "length and chunks": HEAD.encode() + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a negative length": HEAD.encode() + b"Content-Length: -5\r\n\r\n",
    "a length without end": HEAD.encode() + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n",
    "chunks of nonsense": HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a head without end": b"POST /mcp HTTP/1.1\r\nX: " + b"a" * 2_000_000,
    "many lines": b"POST /mcp HTTP/1.1\r\n" + b"X: a\r\n" * 100_000 + b"\r\n",
    "no HTTP": b"\x16\x03\x01" + b"\0" * 500,
    "another version": b"POST /mcp HTTP/9.9\r\nHost: {host}\r\n\r\n",
    "a path with a line end": b"POST /mcp%0d%0aX:%20y HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n",
    "an upgrade": b"GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "a session of nonsense": HEAD.encode() + b"Mcp-Session-Id: " + b"\xff" * 500 + b"\r\nContent-Length: 2\r\n\r\n{}",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("head", HEADS.values(), ids=list(HEADS))
async def test_a_head_of_nonsense_is_refused(url: str, head: bytes) -> None:
    answer, writer = await send(url, head, seconds=3)
    writer.close()
    if answer:
        assert answer.split()[1][:1] == b"4", answer[:300]
    assert b"Traceback" not in answer
    assert await serves(url)
