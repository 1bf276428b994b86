"""A server that attacks its client gets a fault or a refusal, in time and in little memory."""

import resource
import time

import httpx2
import pytest
from live import settings

from trajsmith.environments.adapters.mcp import McpSource
from trajsmith.environments.adapters.mcp.transport import bound_response, parse_message
from trajsmith.records import EnvironmentFault, InputError

MIB = 1 << 20


def peak() -> int:
    """Bytes of the largest size that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


FAULTS = ["values", "deep", "NaN", "infinite", "huge number", "digits", "surrogate", "text without end", "pattern",
          "no object", "null", "wrong blocks", "asks for input", "long garbage"]  # fmt: skip


@pytest.mark.parametrize("mode", FAULTS)
async def test_a_hostile_result_is_a_fault(start, mode):
    session = await start("hostile.py", mode, timeout=5.0)
    before, began = peak(), time.monotonic()
    with pytest.raises(EnvironmentFault) as caught:
        await session.call("act", {})
    assert caught.value.kind in ("protocol", "output_schema", "timeout", "server_exited")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1500
    assert time.monotonic() - began < 15
    assert peak() - before < 120 * MIB
    await session.close()


@pytest.mark.parametrize("mode", ["asks", "other ids", "twice", "text of brackets"])
async def test_messages_that_nobody_asked_for_change_no_result(start, mode):
    session = await start("hostile.py", mode, timeout=20.0)
    content = (await session.call("act", {})).content
    assert content == ("[" * 100_000 if mode == "text of brackets" else "done")
    if mode == "twice":
        assert (await session.call("act", {})).content == "done", "the forged answer was kept for the next call"
    await session.close()


async def test_a_schema_that_is_wrong_at_the_next_start_is_a_fault(scratch, tmp_path):
    source = McpSource(settings("hostile.py", "changed schema", str(tmp_path / "started")))
    assert (await source.spec()).tools
    session = await source.open()
    await session.reset({})
    with pytest.raises(EnvironmentFault, match="the output schema of act is wrong: UnknownType") as caught:
        await session.call("act", {})
    assert caught.value.kind == "output_schema" and len(str(caught.value)) < 1500
    await session.close()


async def test_a_flood_of_messages_does_not_move_the_limit(start):
    session = await start("hostile.py", "unasked", timeout=1.0)
    began = time.monotonic()
    with pytest.raises(EnvironmentFault, match="timeout"):
        await session.call("act", {})
    assert time.monotonic() - began < 10
    await session.close()


LISTED = ["many tools", "name with escape", "name twice", "long name", "no name", "schema elsewhere", "schema a list",
          "tools a text", "endless pages", "slow patterns", "long pages"]  # fmt: skip


@pytest.mark.parametrize("mode", LISTED)
async def test_a_hostile_list_of_tools_is_refused_in_one_line(scratch, mode):
    before, began = peak(), time.process_time()
    with pytest.raises((EnvironmentFault, InputError)) as caught:
        await McpSource(settings("hostile.py", mode, start_timeout=20.0)).spec()
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1500
    assert time.process_time() - began < 15
    assert peak() - before < 320 * MIB


@pytest.mark.parametrize("mode", ["doubling schema", "schema of itself"])
async def test_a_schema_that_grows_is_kept_as_it_is(scratch, mode):
    spec = await McpSource(settings("hostile.py", mode, start_timeout=20.0)).spec()
    assert len(spec.tools[0].model_dump_json()) < 10_000


@pytest.mark.parametrize("line", [b'{"jsonrpc":"2.0","id":1,"result":{"a":[' + b"[]," * 4_000_000 + b"[]]}}"])
def test_a_line_of_too_many_values_is_no_message(line):
    before = peak()
    with pytest.raises(ValueError, match="values"):
        parse_message(line)
    assert peak() - before < 40 * MIB


def test_a_line_with_a_large_table_as_text_is_a_message():
    table = "1,2,3,4,5,6,7,8\\n" * 120_000
    line = f'{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{table}"}}]}}}}'
    assert parse_message(line.encode()).result["content"][0]["text"].count(",") == 7 * 120_000


class Chunks(httpx2.AsyncByteStream):
    """A body in chunks of a mebibyte."""

    def __init__(self, chunk: bytes, count: int) -> None:
        self.chunk = chunk
        self.count = count

    async def __aiter__(self):
        for _ in range(self.count):
            yield self.chunk


@pytest.mark.parametrize(
    ("kind", "chunk", "count", "ends"),
    [
        ("application/json", b"x" * MIB, 15, True),
        ("application/json", b"x" * MIB, 17, False),
        ("text/event-stream", b"data: x\n" * (MIB // 8), 17, False),
        ("text/event-stream", b"data: " + b"x" * MIB + b"\n\n", 60, True),
        ("text/event-stream; charset=utf-8", b"data: " + b"x" * MIB + b"\r\n\r\n", 60, True),
    ],
    ids=["body", "endless body", "endless event", "many events", "many events of Windows"],
)
async def test_an_http_answer_has_an_end(kind, chunk, count, ends):
    response = httpx2.Response(200, headers={"content-type": kind}, stream=Chunks(chunk, count))
    await bound_response(response)
    if ends:
        assert sum([len(part) async for part in response.aiter_raw()]) == len(chunk) * count
    else:
        with pytest.raises(httpx2.ReadError, match="a message of more than 16777216 bytes"):
            [len(part) async for part in response.aiter_raw()]


async def test_a_packed_http_answer_is_refused():
    response = httpx2.Response(200, headers={"content-encoding": "gzip"}, stream=Chunks(b"x", 1))
    with pytest.raises(httpx2.DecodingError, match="packs its answers"):
        await bound_response(response)
