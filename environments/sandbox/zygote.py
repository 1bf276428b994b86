"""The process that workers are forked from: started with an empty environment, it imports what they may need.

It is trusted code, never runs a foreign byte and ends with its parent. Commands come as packets over one socket:
"W" + JSON forks a worker with the passed channel and progress; "P" + pid gives a pidfd of a process; "S" + pid ends a
worker with all that it forked, and tells its status.

Each worker leads a process group, which it cannot leave: whatever foreign code has done to the processes of its plays,
the group ends with the worker, and all groups end with the parent.
"""

import gc
import importlib
import json
import os
import signal
import socket
import tempfile
from contextlib import suppress
from typing import Any

from trajsmith.environments.sandbox import lockdown
from trajsmith.environments.sandbox.serialization import split_words
from trajsmith.environments.sandbox.virtual import VirtualSources
from trajsmith.environments.sandbox.warm_up import serve_trial_plays
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
        lockdown.arm_parent_death(signal.SIGTERM)  # strict: the first process of the namespace arms SIGKILL instead
    channel = socket.socket(fileno=control)
    missing = _preload([*STANDARD, *options["imports"]])
    if missing:
        channel.send(b"missing " + missing.encode())
        return
    world = VirtualSources()
    world.install()
    lockdown.prepare()
    serve_trial_plays(world)
    if "namespaces" in options["layers"]:
        try:
            lockdown.enter_namespaces()
        except lockdown.LayerMissing as error:
            channel.send(b"layer " + str(error).encode())
            return
    gc.collect()
    gc.freeze()
    os.dup2(1, 2)  # what workers say on stderr goes where stdout goes: nowhere
    workers = _Workers()
    workers.install()
    channel.send(b"ready")
    try:
        _command(channel, world, workers)
    finally:
        workers.end_all()


class _Workers:
    """The workers of this zygote, by process id: how each ended, or None while it lives."""

    def __init__(self) -> None:
        self._statuses: dict[int, int | None] = {}

    def install(self) -> None:
        """Bury each child when it ends, orphans of workers included, and end all of them with the parent."""
        lockdown.adopt_orphans()
        signal.signal(signal.SIGCHLD, lambda *_: self._bury())
        signal.signal(signal.SIGTERM, self._end)

    def add(self, pid: int) -> None:
        self._statuses[pid] = None

    def end(self, pid: int) -> str:
        """Kill a worker and its group, wait for its end, and say how it ended."""
        with suppress(OSError):  # it was no group leader yet, or all of it is gone
            os.killpg(pid, signal.SIGKILL)
        while self._statuses.get(pid, 0) is None:
            try:
                self._statuses[pid] = os.waitpid(pid, 0)[1]
            except ChildProcessError:
                break  # the handler was faster
        status = self._statuses.pop(pid, None)
        if status is None:
            return "it ended"
        if os.WIFSIGNALED(status):
            return f"it was ended by signal {os.WTERMSIG(status)}"
        return f"it ended with exit code {os.WEXITSTATUS(status)}"

    def end_all(self) -> None:
        """Kill all workers and what they forked."""
        for pid in self._statuses:
            with suppress(OSError):
                os.killpg(pid, signal.SIGKILL)

    def _bury(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] in self._statuses:
                    self._statuses[ended[0]] = ended[1]

    def _end(self, *_: object) -> None:
        self.end_all()
        os._exit(0)


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


def _command(channel: socket.socket, world: VirtualSources, workers: _Workers) -> None:
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, 1 << 16, 2)
        if not message:
            return
        if message[:1] == b"W":
            pid = _fork(json.loads(message[1:]), descriptors, world)
            workers.add(pid)
            channel.send(b"%d" % pid)
        elif message[:1] == b"P":
            _send_pidfd(channel, int(message[1:]))
        else:
            channel.send(workers.end(int(message[1:])).encode())


def _fork(options: dict[str, Any], descriptors: list[int], world: VirtualSources) -> int:
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        limits = lockdown.WorkerLimits(**options["limits"])
        layers, events = frozenset(options["layers"]), tuple(options["events"])
        chosen = WorkerOptions(layers, limits, bool(options["forks"]), events)
        worker_main(descriptors[0], descriptors[1] if len(descriptors) > 1 else None, chosen, world)
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
