"""An OpenAI-compatible server that fails on purpose: a process of its own, real HTTP, every fault at a set rate.

    python faulty_server.py '{"faults": {"rate_limit": 0.1}, "script": "path/to/roles.py", "latency": 0.05}'

It has chat completions and the Responses API. The first line on standard output is its address. What it says comes
from the script's `answer(request) -> message` (`canned.py` beside this file if none is given). Whether a request fails
is drawn from the seed, its content and how often it came, so that the order of requests does not matter. GET /stats
counts; POST /settings changes settings.

Written on bare sockets, because a web framework would not let a reply be cut in the middle.
"""

import asyncio
import hashlib
import importlib.util
import json
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path

from responses_form import ENCRYPTED, Refused, build_response, read_request

HERE = Path(__file__).parent
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}
FORCED = re.compile(r"\[\[fault:(\w+):(\d+)\]\]")
"""In a message: fail so the first so many times that this request comes."""
FAULTS = (
    "rate_limit", "server_error", "overloaded", "drop", "half", "stall", "garbage", "empty", "silent", "content_filter",
    "overflow", "wrong_tool", "bad_arguments", "bad_schema",
)  # fmt: skip


@dataclass
class Settings:
    """How the server behaves; the keys of its JSON argument."""

    faults: dict = field(default_factory=dict)
    """Name among FAULTS to rate; together at most 1."""
    script: str = str(HERE / "canned.py")
    seed: int = 0
    latency: float = 0.0
    """Seconds before a reply."""
    retry_after: float = 0.05
    model: str = "test-model"
    key: str = ""
    """Key that requests must bring; none is asked for if empty."""
    refuses: tuple = ()
    """What it does not support: "tools", "response_format", "encryption", "models"; "batch_name": telling how a
    batch is called."""
    port: int = 0
    batch_seconds: float = 0.0
    """Time that a batch takes."""
    batch_ends_as: str = "completed"

    @classmethod
    def read(cls, given: dict) -> "Settings":
        unknown = set(given) - {one.name for one in fields(cls)} | set(given.get("faults", {})) - set(FAULTS)
        if unknown:
            raise SystemExit(f"unknown settings: {sorted(unknown)}")
        return cls(**given)


class Failed(Exception):
    """An answer with an error status."""

    def __init__(self, status, code, message, **headers):
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "code": code}}
        self.headers = headers


class Server:
    """Everything but the sockets."""

    def __init__(self, settings):
        self.settings = settings
        self.script = load_script(settings.script)
        self.counts = Counter()
        self.faults = Counter()
        self.came = Counter()
        """Times that each request came, by content."""
        self.answered = Counter()
        """Times that each request was answered in full, whatever the answer is worth."""
        self.began = {}
        """When each request came first since the last change of settings, by content."""
        self.longest = 0.0
        """Seconds between the first and the last attempt of a request at most."""
        self.in_flight = self.most_in_flight = 0
        self.batches = Batches(self)

    def stats(self):
        return {
            "requests": self.counts["chat"],
            "answered": sum(self.answered.values()),
            "answered_twice": sum(times > 1 for times in self.answered.values()),
            "faults": dict(self.faults),
            "most_in_flight": self.most_in_flight,
            "longest_request": self.longest,
            "paths": dict(self.counts),
        }

    async def respond(self, method, path, headers, body):
        """Status, headers, body and what is done to the body; None stands for a connection that is dropped."""
        if path == "/stats":
            return 200, {}, self.stats(), ""
        if path == "/settings":
            self.settings = Settings(**{**vars(self.settings), **json.loads(body)})
            self.began.clear()
            return 200, {}, {}, ""
        path = path.removeprefix("/v1")
        self.counts[path] += 1
        try:
            self._check_key(headers)
            if path == "/models" and "models" not in self.settings.refuses:
                return 200, {}, {"object": "list", "data": [{"id": self.settings.model, "object": "model"}]}, ""
            if path.startswith(("/files", "/batches")):
                return await self.batches.respond(method, path, headers, body)
            if path in ("/chat/completions", "/responses") and method == "POST":
                return await self._chat(path, body)
            raise Failed(404, None, f"no route {path}")
        except Failed as failed:
            return failed.status, failed.headers, failed.body, ""
        except Exception as error:  # noqa: BLE001 - the script's own fault: who asked would wait for the time limit
            return 500, {}, {"error": {"message": f"the script failed: {error!r}", "code": None}}, ""

    async def _chat(self, path, body):
        self.counts["chat"] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            asked = json.loads(body)
            request = self._read(asked) if path == "/responses" else asked
            self._check_request(request)
            key = hashlib.sha256(body).hexdigest()[:24]
            self.came[key] += 1
            now = time.monotonic()
            self.longest = max(self.longest, now - self.began.setdefault(key, now))
            fault = self._fault(key, request)
            if self.settings.latency:
                await asyncio.sleep(self.settings.latency)
            made = await self._reply(request, fault, key)
            if made is None or path != "/responses":
                return made
            status, headers, reply, fault = made
            return status, headers, build_response(asked, request["messages"], reply), fault
        finally:
            self.in_flight -= 1

    def _read(self, asked):
        """The request of the Responses API as one of chat completions."""
        try:
            request, reasoning = read_request(asked)
        except Refused as refused:
            raise Failed(400, None, str(refused)) from refused
        if "response_format" in request and "response_format" in self.settings.refuses:
            raise Failed(400, None, "Unsupported parameter: 'text.format' is not supported with this model.")
        if ENCRYPTED in asked.get("include", []) and "encryption" in self.settings.refuses:
            raise Failed(400, None, "Encrypted content is not supported with this model.")
        self.counts["reasoning"] += reasoning
        return request

    async def _reply(self, request, fault, key):
        message = self.script(request)
        message = {"content": message} if isinstance(message, str) else dict(message)
        if "refused" in message:
            raise Failed(*message["refused"])
        message = {"role": "assistant", **message}
        if not applies(fault, message, request):
            fault = ""
        if fault:
            self.faults[fault] += 1
        refuse(fault, self.settings)
        if fault == "stall":
            await asyncio.sleep(3600)
        if fault == "drop":
            return None
        reply = completion(request, damaged(message, fault), self.settings.model)
        if fault == "empty":
            reply["choices"] = []
        if fault == "content_filter":
            reply["choices"][0]["finish_reason"] = "content_filter"
        if fault in {"", "wrong_tool", "bad_arguments", "bad_schema"}:
            self.answered[key] += 1
        return 200, {}, reply, fault

    def _fault(self, key, request):
        times = self.came[key]
        forced = FORCED.search(str(request["messages"][-1].get("content")))
        if forced:
            return forced.group(1) if times <= int(forced.group(2)) else ""
        drawn = random.Random(f"{self.settings.seed}:{key}:{times}").random()
        for name, rate in self.settings.faults.items():
            drawn -= rate
            if drawn < 0:
                return name
        return ""

    def _check_key(self, headers):
        brought = headers.get("authorization", "").removeprefix("Bearer ")
        if self.settings.key and brought != self.settings.key:
            raise Failed(401, "invalid_api_key", f"Incorrect API key provided: {brought}.")

    def _check_request(self, request):
        if request.get("model") != self.settings.model:
            raise Failed(404, "model_not_found", f"The model `{request.get('model')}` does not exist.")
        if request.get("tools") and "tools" in self.settings.refuses:
            told = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            raise Failed(400, None, told)
        if request.get("response_format") and "response_format" in self.settings.refuses:
            raise Failed(400, None, "Unrecognized request argument supplied: response_format")


def refuse(fault, settings):
    """The faults that are answers with an error status."""
    if fault == "rate_limit":
        raise Failed(429, "rate_limit_exceeded", "Rate limit reached.", **{"Retry-After": f"{settings.retry_after}"})
    if fault == "server_error":
        raise Failed(500, None, "The server had an error.")
    if fault == "overloaded":
        raise Failed(503, None, "Overloaded.")
    if fault == "overflow":
        raise Failed(400, "context_length_exceeded", "This model's maximum context length is 8192 tokens.")


def applies(fault, message, request):
    if fault in {"wrong_tool", "bad_arguments"}:
        return bool(message.get("tool_calls"))
    if fault == "bad_schema":
        return "response_format" in request or "JSON Schema" in str(request["messages"][-1].get("content"))
    return True


def damaged(message, fault):
    """The message with what a failing model would write."""
    if fault == "bad_schema":
        return {**message, "content": '{"surprise": true}'}
    if fault == "silent":
        return {"role": "assistant", "content": ""}
    if fault not in {"wrong_tool", "bad_arguments"}:
        return message
    calls = json.loads(json.dumps(message["tool_calls"]))
    if fault == "wrong_tool":
        calls[0]["function"]["name"] = "no_such_tool"
    else:
        calls[0]["function"]["arguments"] = '{"unfinished": '
    return {**message, "tool_calls": calls}


def completion(request, message, model):
    """The body of an answer. A script may say itself how it ended and what it cost, by `finish_reason` and `usage`."""
    finish, counted = message.pop("finish_reason", None), message.pop("usage", None)
    written = str(message.get("content") or "") + json.dumps(message.get("tool_calls") or "")
    prompt = len(json.dumps(request["messages"])) // 4 + len(json.dumps(request.get("tools", []))) // 4
    made = len(written) // 4 + 1
    prompt, made = counted or (prompt, made)
    system = len(str(request["messages"][0].get("content"))) // 4 if len(request["messages"]) > 2 else 0
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": finish or ("tool_calls" if message.get("tool_calls") else "stop"),
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": made,
            "total_tokens": prompt + made,
            "prompt_tokens_details": {"cached_tokens": min(system, prompt)},
        },
    }


def load_script(path):
    """`answer` of a Python file: takes the request's JSON, gives a message or its text."""
    place = Path(path).resolve()
    sys.path.insert(0, str(place.parent))
    spec = importlib.util.spec_from_file_location(place.stem, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.answer


class Batches:
    """The routes /files and /batches: files in memory, batches that are done after `batch_seconds`."""

    def __init__(self, server):
        self.server = server
        self.files = {}
        self.batches = {}

    async def respond(self, method, path, headers, body):
        parts = path.split("?")[0].strip("/").split("/")
        if parts == ["files"] and method == "POST":
            return self._keep(body, headers)
        if parts[0] == "files" and parts[2:] == ["content"]:
            return 200, {}, self.files[parts[1]], ""
        if parts == ["batches"] and method == "POST":
            return await self._start(json.loads(body))
        if parts == ["batches"]:
            return 200, {}, {"object": "list", "data": [dict(batch) for batch in self.batches.values()]}, ""
        batch = self.batches[parts[1]]
        if batch["status"] == "in_progress" and asyncio.get_running_loop().time() >= batch["created_at"]:
            await self._finish(batch)
        return 200, {}, batch, ""

    def _keep(self, body, headers):
        """The content of the file in a multipart form."""
        boundary = headers["content-type"].partition("boundary=")[2].encode()
        part = next(part for part in body.split(b"--" + boundary) if b"filename=" in part)
        content = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return 200, {}, self._file(content), ""

    def _file(self, content):
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": 1,
            "filename": "f",
            "purpose": "batch",
            "status": "processed",
        }

    async def _start(self, asked):
        done_at = asyncio.get_running_loop().time() + self.server.settings.batch_seconds
        batch = {
            "id": f"batch-{len(self.batches)}",
            "object": "batch",
            "status": "in_progress",
            **asked,
            "created_at": done_at,
            "errors": None,
            "output_file_id": None,
            "error_file_id": None,
        }
        self.batches[batch["id"]] = batch
        if "batch_name" in self.server.settings.refuses:  # it is made, but its name never arrives
            return None
        return 200, {}, batch, ""

    async def _finish(self, batch):
        lines = self.files[batch["input_file_id"]].splitlines()
        rows = [await self._answer(json.loads(line)) for line in lines]
        wanted = self.server.settings.batch_ends_as
        batch["status"] = wanted
        if wanted == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "invalid", "message": "the file is wrong"}]}
            return
        kept = rows if wanted == "completed" else rows[: len(rows) // 2]
        batch["output_file_id"] = self._file(b"".join(json.dumps(row).encode() + b"\n" for row in kept))["id"]

    async def _answer(self, row):
        try:
            status, _, body, _ = await self.server._chat(
                row["url"].removeprefix("/v1"), json.dumps(row["body"]).encode()
            )
        except Failed as failed:
            status, body = failed.status, failed.body
        return {"custom_id": row["custom_id"], "response": {"status_code": status, "body": body}, "error": None}


class Connection(asyncio.Protocol):
    """One connection that is kept open; requests come one after another and bring a Content-Length."""

    def __init__(self, server):
        self.server = server
        self.data = b""
        self.task = None

    def connection_made(self, transport):
        self.transport = transport

    def connection_lost(self, error):
        if self.task:
            self.task.cancel()

    def data_received(self, data):
        self.data += data
        head, found, rest = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self.data = rest[length:]
        method, path, _ = first.split(" ")
        self.task = asyncio.create_task(self.answer(method, path, headers, rest[:length]))

    async def answer(self, method, path, headers, body):
        made = await self.server.respond(method, path, headers, body)
        if made is None:
            self.transport.abort()
            return
        status, more, content, fault = made
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        data = b"<html>bad gateway" if fault == "garbage" else data
        more = {"Content-Type": "application/json", "Content-Length": str(len(data)), **more}
        head = "".join(f"{name}: {value}\r\n" for name, value in more.items())
        self.transport.write(f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\n{head}\r\n".encode())
        if fault == "half":
            self.transport.write(data[: len(data) // 2])
            self.transport.close()
        else:
            self.transport.write(data)


async def serve(settings):
    server = Server(settings)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server), "127.0.0.1", settings.port, backlog=1024)
    port = listening.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://127.0.0.1:{port}/v1\n")
    sys.stdout.flush()
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Settings.read(json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))))
