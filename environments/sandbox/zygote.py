"""The process that workers are forked from: started with an empty environment, it imports what they may need.

It is trusted code, never runs a foreign byte and ends with its parent. Commands come as packets over one socket:
"W" + JSON forks a worker with the passed channel and progress; "P" + pid gives a pidfd of a process; "S" + pid waits
for the end of a worker and tells its status.
"""

import gc
import importlib
import json
import os
import socket
import tempfile
from typing import Any

from trajsmith.environments.sandbox import lockdown
from trajsmith.environments.sandbox.serialization import split_words
from trajsmith.environments.sandbox.virtual import VirtualSources
from trajsmith.environments.sandbox.worker import WorkerOptions, worker_main

STANDARD = split_words("""
    __future__ abc array ast base64 binascii bisect calendar cmath collections collections.abc contextlib copy
    csv dataclasses datetime decimal difflib email.utils enum fnmatch fractions functools glob graphlib hashlib
    heapq hmac html inspect io ipaddress itertools json json.decoder keyword locale logging math numbers
    operator os pathlib platform pprint random re secrets shlex sqlite3 statistics string struct sys tempfile
    textwrap threading time traceback types typing typing_extensions unicodedata urllib.parse uuid warnings
    weakref zlib zoneinfo _strptime encodings.idna stringprep asyncio pydantic msgspec orjson docstring_parser
    trajsmith trajsmith.environments trajsmith.records trajsmith.environments.foreign
""")
"""What foreign code may import without a setting."""


def main(control: int, options: dict[str, Any]) -> None:
    """Preload, enter the namespaces where wanted, then fork workers until the parent is gone."""
    if options["parent"]:
        lockdown.arm_parent_death()
    channel = socket.socket(fileno=control)
    missing = _preload([*STANDARD, *options["imports"]])
    if missing:
        channel.send(b"missing " + missing.encode())
        return
    world = VirtualSources()
    world.install()
    lockdown.prepare()
    if "namespaces" in options["layers"]:
        try:
            lockdown.enter_namespaces()
        except lockdown.LayerMissing as error:
            channel.send(b"layer " + str(error).encode())
            return
    gc.collect()
    gc.freeze()
    os.dup2(1, 2)  # what workers say on stderr goes where stdout goes: nowhere
    channel.send(b"ready")
    _command(channel, world)


def _preload(names: list[str]) -> str:
    """Import all; returns what went wrong, or nothing."""
    import pydantic

    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            return f"{name}: {error}"
    tempfile.tempdir = "/tmp"

    class Warm(pydantic.BaseModel):
        number: int = 0
        lists: dict[str, list[int]] = {}

    Warm.model_validate({"number": 1}).model_dump_json()
    Warm.model_json_schema()
    importlib.import_module("datetime").datetime.strptime("2020-01-01", "%Y-%m-%d")
    return ""


def _command(channel: socket.socket, world: VirtualSources) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1 << 16, 2)
        if not message:
            return
        if message[:1] == b"W":
            pid = _fork(channel, json.loads(message[1:]), descriptors, world)
            channel.send(b"%d" % pid)
        elif message[:1] == b"P":
            _send_pidfd(channel, int(message[1:]))
        else:
            channel.send(_status(int(message[1:])).encode())


def _fork(channel: socket.socket, options: dict[str, Any], descriptors: list[int], world: VirtualSources) -> int:
    child = os.fork()
    if child == 0:
        limits = lockdown.WorkerLimits(**options["limits"])
        layers, events = frozenset(options["layers"]), tuple(options["events"])
        chosen = WorkerOptions(layers, limits, bool(options["forks"]), events)
        worker_main(descriptors[0], descriptors[1], chosen, world)
    for descriptor in descriptors:
        os.close(descriptor)
    return child


def _send_pidfd(channel: socket.socket, pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        channel.send(b"no " + str(error).encode())
        return
    socket.send_fds(channel, [b"fd"], [descriptor])
    os.close(descriptor)


def _status(pid: int) -> str:
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return "it ended"
    if os.WIFSIGNALED(status):
        return f"it was ended by signal {os.WTERMSIG(status)}"
    return f"it ended with exit code {os.WEXITSTATUS(status)}"
