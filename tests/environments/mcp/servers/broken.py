"""Servers that misbehave, by mode. Speaks JSON-RPC by hand, because the SDK does not let a server do these things."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


def answer(request: dict, result: object, key: str = "result") -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], key: result}) + "\n")
    sys.stdout.flush()


def tool() -> dict:
    described = {"name": "act", "description": "Do it.", "inputSchema": SCHEMA}
    if MODE == "bad_schema":
        described["inputSchema"] = {"type": "object", "properties": {"text": {"type": "strang"}}}
    if MODE == "bad_reference":
        described["inputSchema"] = {"type": "object", "properties": {"text": {"$ref": "#/$defs/Gone"}}}
    if MODE == "no_object":
        described["inputSchema"] = {"type": "string"}
    if MODE == "wrong_output":
        described["outputSchema"] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    return described


def act(request: dict) -> None:
    if MODE == "dies":
        sys.stderr.write("out of memory in /very/deep\n\n")
        sys.stderr.flush()
        os._exit(7)
    if MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE in ("silent", "stubborn"):
        time.sleep(600)
    if MODE == "floods_stderr":
        sys.stderr.write("noise\n" * 500_000)
    if MODE == "babbles":
        sys.stdout.write("here is your answer: 42\n")
        sys.stdout.flush()
        time.sleep(600)
    if MODE == "garbage":
        sys.stdout.write("\x00 no message\n" * 5000)
        sys.stdout.flush()
        time.sleep(600)
    if MODE == "wrong_result":
        return answer(request, {"content": "not a list"})
    if MODE == "wrong_output":
        return answer(request, {"content": [], "structuredContent": {"n": "one"}})
    if MODE == "error_code":
        return answer(request, {"code": -32000, "message": f"quota used up in {Path.cwd()}"}, "error")
    if MODE == "tells_secret":
        return answer(request, {"content": [{"type": "text", "text": f"key {os.environ['API_KEY']}"}]})
    text = "done"
    if MODE == "has_child":
        text = str(subprocess.Popen(["sleep", "600"]).pid)
    return answer(request, {"content": [{"type": "text", "text": text}]})


if MODE == "cannot_start":
    sys.exit("no licence found\n")
if MODE == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if MODE == "banner":
    sys.stdout.write("Welcome to the server!\n")
if MODE == "never_ready":
    time.sleep(600)
for line in sys.stdin:
    message = json.loads(line)
    if MODE == "refuses_handshake":
        answer(message, {"code": -32603, "message": "we are closed"}, "error")
    elif message["method"] == "initialize":
        about = {"name": "broken", "version": "1"}
        answer(message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about})
    elif message["method"] == "tools/list":
        answer(message, {"tools": [tool()]})
    elif message["method"] == "tools/call":
        act(message)
if MODE == "stubborn":
    time.sleep(600)
