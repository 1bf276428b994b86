"""A parent of bare workers: forks a process, puts chosen kernel layers on it, has it run one attack, and looks.

No timer, no audit hook, no hidden modules: what stops an attack here is a kernel layer. Runs as a process of its own,
with the canaries of `world.py` in it, and takes one JSON object a line:
{"layers": [...], "source": ..., "session": false, "deny": {"unshare": 1}, "limits": {...}}.
"""

import asyncio  # noqa: F401
import ctypes
import fcntl  # noqa: F401
import gc
import glob  # noqa: F401
import json
import logging  # noqa: F401
import mmap  # noqa: F401 - attacks may import these, as if nobody had hidden them
import multiprocessing  # noqa: F401
import os
import resource  # noqa: F401
import select
import signal
import socket
import sqlite3  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from attacks.deciding import start_decider
from attacks.world import World, look, offspring

from trajsmith.environments.sandbox import limits, lockdown, seccomp

_SECONDS = 4.0
_GO = b"go"
READY = '"ready"'


def main() -> None:
    """Serve until standard input ends."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        gc.disable()
        gc.freeze()  # so that forks copy fewer pages
        for line in sys.stdin:
            sys.stdout.write(json.dumps(_trial(world, json.loads(line))) + "\n")
            sys.stdout.flush()


def _trial(world: World, order: dict[str, Any]) -> dict[str, Any]:
    world.reset()
    sibling, place = _start_sibling(world, order) if "sibling" in order["source"] else (0, 0)
    ours, theirs = socket.socketpair()
    info = world.info() | {"sibling": sibling, "sibling_address": place}
    child = os.fork()
    if child == 0:
        ours.close()
        _child(theirs, order, info)
    theirs.close()
    ready = _hear(ours)
    before = offspring(os.getpid())
    worker = max(offspring(child), default=child)
    memory = lockdown.WorkerLimits().memory_bytes
    seen = look(worker, memory)
    said = None
    if ready == READY:
        ours.sendall(_GO)
        said = _hear(ours)
    found = sorted(look(worker, memory) - seen)
    said = said if said is not None else '"it is gone"'
    for left in offspring(os.getpid()) - before:
        found.append("a process was left")
        _kill(left)
    if sibling and not _alive(sibling):
        found.append("the other worker was ended")
    found += world.evidence() + world.stolen(said)
    for left in offspring(os.getpid()):
        _kill(left)
    _reap()
    ours.close()
    return {"ready": ready, "said": said[:500], "found": found}


def _start_sibling(world: World, order: dict[str, Any]) -> tuple[int, int]:
    """Another worker with the same layers, which an attack may be after; it holds a secret too."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        keep = ctypes.create_string_buffer(f"{world.secret}-sibling".encode(), 100)
        try:
            layers = frozenset(order["layers"]) - {"seccomp"}
            lockdown.lock_worker(layers, lockdown.WorkerLimits(uid=70001))
            os.write(writes, str(ctypes.addressof(keep)).encode())
            signal.pause()
        finally:
            os._exit(0)
    os.close(writes)
    place = os.read(reads, 100)
    os.close(reads)
    return child, int(place or b"0")


def _child(channel: socket.socket, order: dict[str, Any], info: dict[str, Any]) -> None:
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        if channel.fileno() != seccomp.CHANNEL:
            os.dup2(channel.fileno(), seccomp.CHANNEL)
        if "clean" in order["layers"]:
            os.closerange(seccomp.CHANNEL + 1, 4096)
            os.environ.clear()
        _deny(order.get("deny", {}))
        said = _locked(order, info)
    except BaseException as error:  # noqa: BLE001 - must not go on in the parent's code
        said = {"raised": f"{type(error).__name__}: {error}"[:300]}
    with suppress(BaseException):
        os.write(seccomp.CHANNEL, json.dumps(said, default=str).encode() + b"\n")
        select.poll().poll(60_000)  # until it is killed; sleeping would return at once behind the filter
    os._exit(0)


def _deny(errors: dict[str, int]) -> None:
    """Simulate a machine that lacks something."""
    if errors:
        limits.set_no_new_privileges()
        answers = {name: seccomp.refuse(number) for name, number in errors.items()}
        seccomp.install(seccomp.assemble(os.uname().machine, (), {}, answers, seccomp.ALLOW))


def _locked(order: dict[str, Any], info: dict[str, Any]) -> Any:
    layers, chosen = frozenset(order["layers"]), lockdown.WorkerLimits(**order.get("limits", {}))
    if "namespaces" in layers:
        lockdown.enter_namespaces()
    forks = bool(order.get("session"))
    lockdown.lock_worker(layers, chosen, start_decider() if forks else None)
    if forks and os.fork():
        select.poll().poll(60_000)
        os._exit(0)
    if forks:
        lockdown.take_channel(layers)
    os.write(seccomp.CHANNEL, b'"ready"\n')
    os.read(seccomp.CHANNEL, len(_GO))
    space: dict[str, Any] = {"__name__": "attack"}
    exec(compile(order["source"], "<attack>", "exec"), space)
    return space["attack"](info)


def _hear(channel: socket.socket) -> str | None:
    """One line from the child; None if there is none."""
    channel.settimeout(_SECONDS)
    text = b""
    try:
        while not text.endswith(b"\n"):
            part = channel.recv(1 << 16)
            if not part:
                return None
            text += part
    except (TimeoutError, ConnectionError):
        return None
    return text.decode(errors="replace").strip()


def _alive(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG) == (0, 0)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass


if __name__ == "__main__":
    main()
