"""A process that serves over stdio: nothing but the protocol reaches stdout, and it ends in order."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, os, signal, sys
sys.path.insert(0, {folder!r})
from trajsmith.environments.serving import prepare_serving
from trajsmith.environments.serving.stdio import claim_stdio, serve_stdio

async def main(stdin, stdout):
    from served import Counted
    source = Counted()
    task = asyncio.create_task(serve_stdio(await prepare_serving(source), stdin, stdout))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await asyncio.wait([task])
    print("closed" if source.opened and not source.open_sessions else "left open", file=sys.stderr)
    if task.exception() if not task.cancelled() else None:
        raise task.exception()

with claim_stdio() as streams:
    print("printed by python")
    os.system("echo printed by a child; cat")
    asyncio.run(main(*streams))
print("stdout is given back")
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


class Served:
    def __init__(self, **streams):
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
        folder = str(Path(__file__).parent)
        command = [sys.executable, "-c", PROGRAM.format(folder=folder)]
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        self.process = subprocess.Popen(command, cwd=Path(__file__).parents[3], env=environment, **streams)

    def ask(self, line: bytes) -> dict:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def request(self, number: int, method: str, params: dict) -> dict:
        return self.ask(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())


@pytest.fixture
def server():
    found = Served()
    yield found
    found.process.kill()
    found.process.communicate()


def test_the_end_of_stdin_frees_the_session_and_gives_stdout_back(server):
    assert server.request(1, "initialize", HELLO)["result"]["serverInfo"]["name"] == "shelf"
    fault = server.request(2, "tools/call", {"name": "topple", "arguments": {}})["error"]
    assert fault["message"].startswith("shelf.topple: crash")
    out, err = server.process.communicate(timeout=20)
    assert (server.process.returncode, out) == (0, b"stdout is given back\n")
    said = ["closed", "printed by a child", "printed by python", "the shelf is falling"]
    assert sorted(err.decode().splitlines()) == said


def test_sigterm_does_so_too_even_if_the_client_does_not_read(server):
    server.request(1, "initialize", HELLO)
    call = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}).encode() + b"\n"
    server.process.stdin.write(call * 200)
    server.process.stdin.flush()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=20) == 0
    assert "closed" in server.process.stderr.read().decode().splitlines()


def test_lines_that_are_no_messages_are_answered_long_ones_served_and_endless_ones_cut_off(server):
    server.request(1, "initialize", HELLO)
    half = b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}'
    for line in (b"hello?", b"[1, 2]", half, b'{"a": "\\ud800"}', b"\xff"):
        answer = server.ask(line)
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        assert answer["error"]["message"].startswith("this line is no JSON-RPC message: ")
    server.process.stdin.write(b"\n  \n")
    assert server.request(2, "ping", {})["result"] == {}
    book = "b" * 1_000_000
    answer = server.request(3, "tools/call", {"name": "put", "arguments": {"book": book}})
    assert answer["result"]["structuredContent"][book] == 1
    with pytest.raises(BrokenPipeError):
        for _ in range(20):
            server.process.stdin.write(b"x" * 1_000_000)
    assert server.process.wait(timeout=20) == 0


def test_files_work_as_streams(tmp_path):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    (tmp_path / "in").write_text(json.dumps(hello) + "\n")
    with (tmp_path / "in").open() as given, (tmp_path / "out").open("w") as wanted:
        process = Served(stdin=given, stdout=wanted).process
        process.communicate(timeout=20)
        assert process.returncode == 0
    first, last = (tmp_path / "out").read_text().splitlines()
    assert json.loads(first)["result"]["serverInfo"]["name"] == "shelf"
    assert last == "stdout is given back"
