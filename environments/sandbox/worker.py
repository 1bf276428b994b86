"""A worker process from its fork to its end: close everything, lock everything, then load and serve."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import msgspec
import orjson

from trajsmith.environments.programs import EnvironmentProgram, load_program
from trajsmith.environments.sandbox import audit, lockdown
from trajsmith.environments.sandbox.serialization import (
    CHANNEL,
    PROGRESS,
    SECRET,
    Reply,
    ReplyStatus,
    Request,
    WorkerOp,
    make_sender,
    read_frames,
    read_frames_with_descriptors,
    split_words,
)
from trajsmith.environments.sandbox.serve import (
    CallTimeout,
    RequestLimits,
    Timer,
    WorkerServer,
    describe_exception,
    hide_modules,
)
from trajsmith.environments.sandbox.virtual import VirtualSources
from trajsmith.records import EnvironmentFault, InputError

_HIDDEN = split_words("""
    _ctypes _posixsubprocess _socket array ctypes faulthandler mmap resource select socket subprocess
    trajsmith.environments.sandbox.landlock trajsmith.environments.sandbox.limits
    trajsmith.environments.sandbox.lockdown
    trajsmith.environments.sandbox.namespaces trajsmith.environments.sandbox.seccomp
    trajsmith.environments.sandbox.serve
    trajsmith.environments.sandbox.syscalls trajsmith.environments.sandbox.worker trajsmith.environments.sandbox.zygote
""")
"""Modules that foreign code has no use for; a courtesy only, the kernel layers do not depend on it."""


_OWN_ERROR = 74
"""Exit code of a worker that failed on its own account."""


@dataclass(frozen=True)
class WorkerOptions:
    """Options of one worker, chosen by the parent."""

    layers: frozenset[str]
    limits: lockdown.WorkerLimits
    forks: bool
    """True for a worker that only loads the program and forks a process for every play."""
    events: tuple[str, ...]
    """Audit events that calls of this kind of program may raise."""


def worker_main(channel: int, progress: int, options: WorkerOptions, world: VirtualSources) -> None:
    """Runs in a fresh fork of the zygote; never returns."""
    try:
        memory = _take_over(channel, progress)
        timer = Timer()
        timer.install()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the processes of plays
        wake = audit.install(frozenset(sys.modules), options.events) if "audit" in options.layers else _asleep
        try:
            _lock(options)
        except lockdown.LayerMissing as error:
            _refuse(str(error))
            os._exit(0)
        if "hide" in options.layers:
            hide_modules(_HIDDEN)
            sys.modules["__main__"] = ModuleType("__main__")
        if options.forks:
            _fork_episodes(timer, world, wake, options)
        else:
            incoming = read_frames(CHANNEL)
            server = _load(incoming, timer, world, wake)
            if server is not None:
                server.run(incoming, memory)
        os._exit(0)
    finally:
        os._exit(_OWN_ERROR)


def _lock(options: WorkerOptions) -> None:
    """Lock this process. The secret of a forker comes over the channel, and stays in no variable that can be found."""
    secret = SECRET.unpack(os.read(CHANNEL, SECRET.size))[0] if options.forks else 0
    lockdown.lock_worker(options.layers, options.limits, forks=options.forks, secret=secret)


def _refuse(message: str) -> None:
    """Answer the first request: this worker cannot be locked, so it will not run anything."""
    request: Request = msgspec.msgpack.decode(next(read_frames(CHANNEL)))[0]
    make_sender(CHANNEL)(msgspec.msgpack.encode([[request[0], ReplyStatus.LAYER, message]]))


def _take_over(channel: int, progress: int) -> memoryview:
    """Keep the channel as descriptor 3 and the progress as memory; close all else. Stdio leads nowhere already."""
    memory = lockdown.map_shared_memory(progress, PROGRESS.size)
    if channel != CHANNEL:
        os.dup2(channel, CHANNEL)
    os.closerange(CHANNEL + 1, 4096)
    return memory


def _asleep(on: bool) -> None:
    """Stands for the audit hook where it is left out."""


def _load(incoming: Iterator[bytes], timer: Timer, world: VirtualSources, wake: Any) -> WorkerServer | None:
    """Answer the first frame, which brings the program; None if it cannot be loaded."""
    request: Request = msgspec.msgpack.decode(next(incoming))[0]
    _, kind, payload, limits = request[2:]
    limits = RequestLimits(**limits)
    program, reply = _loaded(kind, orjson.loads(payload), limits, timer, world)
    make_sender(CHANNEL)(msgspec.msgpack.encode([[request[0], *reply]]))
    return None if program is None else WorkerServer(program, limits, timer, world, wake)


def _loaded(
    kind: str, payload: Any, limits: RequestLimits, timer: Timer, world: VirtualSources
) -> tuple[EnvironmentProgram | None, Reply]:
    try:
        try:
            timer.start(limits.load_seconds)
            world.set(b"load", 0)
            program = load_program(kind, payload)
            spec = orjson.dumps(program.spec.model_dump(mode="json", exclude_none=True))
            return program, [ReplyStatus.OK, [spec, list(program.notes)]]
        finally:
            timer.stop()
    except InputError as error:
        return None, [ReplyStatus.INPUT, str(error).encode("utf-8", "replace").decode()[:2000]]
    except EnvironmentFault as fault:
        return None, [ReplyStatus.FAULT, [fault.kind, fault.message[:2000], None]]
    except CallTimeout:
        return None, [
            ReplyStatus.FAULT,
            ["start", f"loading took more than {limits.load_seconds:g} s of CPU time", None],
        ]
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return None, [
            ReplyStatus.FAULT,
            ["start", f"loading it: {describe_exception(error, timer, limits.load_seconds)}", None],
        ]


def _fork_episodes(timer: Timer, world: VirtualSources, wake: Any, options: WorkerOptions) -> None:
    """Load the program, then fork a process for every episode; no episode's data ever comes here."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, CHANNEL)
    incoming = read_frames_with_descriptors(channel)
    server = _load((frame for frame, _ in incoming), timer, world, wake)
    if server is None:
        return
    send = make_sender(CHANNEL)
    for frame, descriptors in incoming:
        request: Request = msgspec.msgpack.decode(frame)[0]
        if request[1] != WorkerOp.FORK or len(descriptors) != 2:
            return
        try:
            child = lockdown.fork(request[3]) if "seccomp" in options.layers else os.fork()
            reply: Reply = [request[0], ReplyStatus.OK, child]
        except OSError as error:
            child, reply = -1, [request[0], ReplyStatus.FAULT, ["limit", f"no process for the play: {error}", None]]
        if child == 0:
            _episode_main(descriptors[0], descriptors[1], server, options, request[3])
        for descriptor in descriptors:
            os.close(descriptor)
        send(msgspec.msgpack.encode([reply]))


def _episode_main(channel: int, progress: int, server: WorkerServer, options: WorkerOptions, secret: int) -> None:
    try:
        memory = _take_over(channel, progress)
        lockdown.lock_session(options.layers, options.limits, secret)
        server.run(read_frames(CHANNEL), memory)
        os._exit(0)
    finally:
        os._exit(_OWN_ERROR)
