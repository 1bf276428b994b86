"""`trajsmith env serve` as it is called: over stdio and HTTP, ended by EOF and by signals, wrong input in one line."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from mcp import Client, StdioServerParameters

from trajsmith.cli.env_serve import parse_address, read_state
from trajsmith.pipeline.environment_references import open_named_source
from trajsmith.records import InputError

ROOT = Path(__file__).parents[2]
KEEPER = ROOT / "tests/environments/mcp/servers/keeper.py"
SERVE = ["-m", "trajsmith", "env", "serve"]


async def test_over_stdio_with_the_official_client():
    program = StdioServerParameters(
        command=sys.executable, args=[*SERVE, "retail", "--seed", "3", "--size", "medium", "--admin"], cwd=ROOT
    )
    async with Client(program) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert {"cancel_order", "save_state"} <= set(names)
        state = (await client.call_tool("save_state", {})).structured_content
    (expected,) = await open_named_source("retail", "medium").states(3)
    assert state == expected


@pytest.fixture
def served(tmp_path):
    """Start it with these arguments; gives the process and what it said of its address."""
    started = []

    def begin(*arguments):
        environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, *SERVE, *arguments],
            cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


async def test_over_http_until_ctrl_c(served):
    process = served("retail", "--http", "127.0.0.1:0", "--idle", "60")
    said = process.stderr.readline()
    assert said.startswith("retail: serving at http://127.0.0.1:")
    async with Client(said.split()[3].rstrip(";")) as client:
        result = await client.call_tool("get_order", {"order_id": "W0"})
        assert result.content[0].text == '{"error":"order not found: W0"}'
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")


CONFIG = f"""
name: t
environments:
  - library: bank
  - mcp:
      name: notes
      command: [{sys.executable}, {KEEPER}, good]
      policy: Keep notes.
"""


def _children_gone(children: list[psutil.Process]) -> bool:
    for _ in range(500):
        if not any(child.is_running() for child in children):
            return True
        time.sleep(0.01)
    return False


def test_a_live_server_behind_it_ends_with_it(served, tmp_path):
    (tmp_path / "run.yaml").write_text(CONFIG)
    process = served("run.yaml:notes")
    params = '{"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}'
    process.stdin.write(f'{{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {params}}}\n')
    process.stdin.flush()
    assert '"instructions":"Keep notes.' in process.stdout.readline()
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")
    assert _children_gone(children)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.yaml"]


WRONG = [
    (["nothing"], "no environment named 'nothing'"),
    (["retail", "--state", "7"], "environment retail has no initial state 7; it has 0 to 2"),
    (["retail", "--state", "gone.json"], "--state gone.json: neither a number nor a file that can be read"),
    (["retail", "--actor", "user"], "environment retail has no tools for the user"),
    (["retail", "--actor", "boss"], "--actor is assistant or user, not 'boss'"),
    (["retail", "--size", "vast"], "--size is one of small, medium, large, not 'vast'"),
    (["retail", "--sandbox", "loose"], "--sandbox is one of default, strict, unsafe, not 'loose'"),
    (["retail", "--idle", "0"], "--idle and --sessions must be more than 0"),
    (["retail", "--http", "8000"], "--http 8000: write it as HOST:PORT"),
    (["retail", "--http", "192.0.2.1:80"], "cannot listen on 192.0.2.1:80: "),
    (["run.yaml"], "run.yaml holds 2 environments: name one, for example run.yaml:NAME"),
    (["run.yaml:bunk"], "run.yaml has no environment 'bunk'; it has bank, notes"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[" ".join(arguments) for arguments, _ in WRONG])
def test_wrong_input_is_one_line_and_nothing_on_stdout(trajsmith, tmp_path, monkeypatch, arguments, message):
    (tmp_path / "run.yaml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    done = trajsmith("env", "serve", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"error: {message}")


def test_states_are_numbers_or_json_objects(tmp_path):
    file = tmp_path / "state.json"
    file.write_text('{"a": 1}')
    assert (read_state("3"), read_state(str(file))) == (3, {"a": 1})
    for text, message in [("[1]", "a state is a JSON object"), ("{", "not JSON")]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            read_state(str(file))


def test_addresses():
    assert (parse_address("localhost:80"), parse_address("[::1]:0")) == (("localhost", 80), ("::1", 0))
    for text in ("80", ":80", "host:", "host:99999", "host:x"):
        with pytest.raises(InputError, match="write it as HOST:PORT"):
            parse_address(text)
