"""Model servers that lie about usage, repeat keys in disguise, send elsewhere, or answer batches with nonsense."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from chatting import board, request, settings, usage_lines

from trajsmith.models.failures import FailedAttempt, HttpErrorResponse
from trajsmith.models.openai_server import OpenAIProvider
from trajsmith.models.serialization import MOST_TOKENS, parse_usage
from trajsmith.models.settings import Price
from trajsmith.models.usage import compute_cost
from trajsmith.records import ModelFault

KEY = "sk/abc+def=ghi<jkl>"
REPLY = {"choices": [{"message": {"role": "assistant", "content": "hi"}}]}
Answer = Callable[[str, bytes], bytes]


def respond(document: Any, status: str = "200 OK", headers: str = "") -> bytes:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


class Server:
    """A server that answers each request as a function says, and keeps what it got."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.heads: list[str] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                sizes = [line.split(":")[1] for line in head.splitlines() if line.lower().startswith("content-length:")]
                body = await reader.readexactly(int(sizes[0])) if sizes else b""
                writer.write(self.answer(head.split()[1], body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@pytest.fixture
async def elsewhere() -> AsyncIterator[Server]:
    async with Server(lambda *_: respond(REPLY)) as server:
        yield server


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 10**12}},
        {"prompt_tokens": 2**64 - 1, "completion_tokens": 2**64 - 1},
        {"prompt_tokens": -5, "completion_tokens": -(10**18)},
        {"prompt_tokens": True, "completion_tokens": 1e300, "prompt_tokens_details": {"cached_tokens": 7}},
        {"completion_tokens_details": {"reasoning_tokens": 2**63}},
    ],
    ids=["more cached than sent", "64 bits", "negative", "other types", "reasoning"],
)
def test_counts_of_a_server_never_earn_money_and_can_be_stored(usage: Any) -> None:
    read = parse_usage(json.loads(json.dumps(usage)))
    assert compute_cost(read, Price(prompt=3.0, completion=9.0, cached=0.3)) >= 0
    counts = (read.prompt_tokens, read.cached_tokens, read.completion_tokens, read.reasoning_tokens)
    assert all(0 <= count <= MOST_TOKENS for count in counts)


async def test_a_server_that_counts_back_does_not_lift_the_budget(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 10**12}}
    async with Server(lambda *_: respond({**REPLY, "usage": usage})) as server:
        price = {"prompt": 1.0, "completion": 1.0, "cached": 0.1}
        async with board(tmp_path, server.url, {"max_cost": 1.0}, price=price) as models:
            await models.role_model("agent").complete(request("a"))
    (line,) = usage_lines(tmp_path)
    assert line["cost"] > 0
    assert line["cached_tokens"] == 10


@pytest.mark.parametrize(
    "written",
    [KEY, KEY.replace("/", "\\/"), KEY.replace("=", "\\u003d").replace("<", "\\u003c").replace("+", "\\u002B")],
    ids=["plain", "slashes", "unicode"],
)
@pytest.mark.parametrize("place", ["content", "reasoning_content", "arguments", "name"])
async def test_a_key_is_taken_out_however_the_server_writes_it(
    monkeypatch: pytest.MonkeyPatch, written: str, place: str
) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    message: dict[str, Any] = {"role": "assistant", "content": "x MARK"}
    if place == "reasoning_content":
        message["reasoning_content"] = "x MARK"
    elif place in ("arguments", "name"):
        arguments = '{"a": ["MARK"]}' if place == "arguments" else "{}"
        function = {"name": "MARK" if place == "name" else "f", "arguments": arguments}
        message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
    body = json.dumps({"choices": [{"message": message}]})
    body = body.replace("MARK", written)
    if place == "arguments" and written != KEY:  # JSON in JSON
        body = body.replace(written, written.replace("\\", "\\\\"))
    async with Server(lambda *_: respond(body.encode())) as server:
        provider = OpenAIProvider("m", settings(server.url, key_env="SHOP_KEY"))
        reply = await provider.send(request("hello"))
        await provider.close()
    assert json.loads(reply.model_dump_json())["message"]["role"] == "assistant"
    assert KEY not in str(reply.model_dump(mode="json"))
    assert "[redacted]" in reply.model_dump_json()


async def test_a_key_is_sent_to_no_other_server(monkeypatch: pytest.MonkeyPatch, elsewhere: Server) -> None:
    monkeypatch.setenv("SHOP_KEY", KEY)
    to = f"Location: {elsewhere.url}/chat/completions\r\n"
    async with Server(lambda *_: respond(b"", "307 Temporary Redirect", to)) as server:
        provider = OpenAIProvider("m", settings(server.url, key_env="SHOP_KEY"))
        await provider.send(request("hello"))
        await provider.check()
        await provider.close()
    assert any(KEY in head for head in server.heads), "the first server did not get its key"
    assert elsewhere.heads and not any(KEY in head for head in elsewhere.heads)


@pytest.mark.parametrize("text", ["model", "1,", "tool", "content ", "{", "\\u0000", "prompt is too "])
def test_an_error_as_long_as_a_reply_may_be_is_read_at_once(text: str) -> None:
    began = time.process_time()
    for body in (text * 1_000_000, json.dumps({"error": {"message": text * 1_000_000, "code": text * 100_000}})):
        failure = HttpErrorResponse.read(400, body.encode(), {}).to_error("models.m", asked_tools=True)
        assert len(str(failure)) < 1000
    assert time.process_time() - began < 2


BATCH = {"id": "b1", "object": "batch", "status": "completed", "output_file_id": "f2", "error_file_id": None}
GOOD = b'{"custom_id": "NAME", "response": {"status_code": 200, "body": %s}}' % json.dumps(REPLY).encode()
LINES = {
    "no JSON": b"<html>bad gateway</html>",
    "a list": b"[]",
    "a number": b"5",
    "no name": b'{"response": {}}',
    "a text as response": b'{"custom_id": "NAME", "response": "x"}',
    "a status that is none": b'{"custom_id": "NAME", "response": {"status_code": "x"}}',
    "a status without end": b'{"custom_id": "NAME", "response": {"status_code": 1e400}}',
    "a body that is a list": b'{"custom_id": "NAME", "response": {"status_code": 200, "body": [[]]}}',
    "nothing": b"",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("line", LINES.values(), ids=list(LINES))
async def test_nonsense_in_a_batch_fails_its_requests_and_nobody_waits_for_ever(tmp_path: Path, line: bytes) -> None:
    answers = _BatchAnswers(line)
    async with Server(answers) as server:
        more = {"batch": True, "batch_quiet": 0.02, "batch_poll": 0.02, "attempts": 2}
        async with board(tmp_path, server.url, **more) as models:
            with pytest.raises(ModelFault):
                await asyncio.wait_for(models.role_model("writer").complete(request("a")), 20)


async def test_a_line_of_nonsense_leaves_the_others_of_a_batch_their_answers(tmp_path: Path) -> None:
    async with Server(_BatchAnswers(b"[]\n" + GOOD)) as server:
        more = {"batch": True, "batch_quiet": 0.02, "batch_poll": 0.02}
        async with board(tmp_path, server.url, **more) as models:
            reply = await asyncio.wait_for(models.role_model("writer").complete(request("a")), 20)
    assert reply.message.content == "hi"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("batch", [b"[]", b'"x"', b"5", b"null", b"<html>", b'{"id": 5}'], ids=repr)
async def test_a_batch_that_is_none_fails_its_requests(tmp_path: Path, batch: bytes) -> None:
    def answer(path: str, _: bytes) -> bytes:
        return respond({"id": "f1", "object": "file"}) if path.endswith("/files") else respond(batch)

    async with Server(answer) as server:
        more = {"batch": True, "batch_quiet": 0.02, "batch_poll": 0.02, "attempts": 2, "deadline": 5.0}
        async with board(tmp_path, server.url, **more) as models:
            with pytest.raises((ModelFault, FailedAttempt)):
                await asyncio.wait_for(models.role_model("writer").complete(request("a")), 30)


class _BatchAnswers:
    """A batch API that is done at once; NAME in its output stands for the request's name."""

    def __init__(self, output: bytes) -> None:
        self._output = output
        self._name = b""

    def __call__(self, path: str, body: bytes) -> bytes:
        if path.endswith("/content"):
            return respond(self._output.replace(b"NAME", self._name))
        if path.endswith("/files"):
            self._name = body.partition(b'"custom_id":"')[2].partition(b'"')[0]
            return respond(
                {"id": "f1", "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"}
            )
        return respond(BATCH)
