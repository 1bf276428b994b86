"""A worker process from its fork to its end: close everything, lock everything, then load and serve."""

import gc
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

from trajsmith.environments.programs import load_program
from trajsmith.environments.sandbox import audit, lockdown
from trajsmith.environments.sandbox.codec import encode_content
from trajsmith.environments.sandbox.serialization import (
    CHANNEL,
    HEADER,
    HELLO,
    PROGRESS,
    FrameReader,
    RawReply,
    ReplyStatus,
    Request,
    make_sender,
    read_frames,
    split_words,
)
from trajsmith.environments.sandbox.serve import (
    CallTimeout,
    RequestLimits,
    Timer,
    WorkerServer,
    cut_text,
    describe_exception,
    describe_spec,
    hide_modules,
    make_fault,
)
from trajsmith.environments.sandbox.virtual import VirtualSources
from trajsmith.environments.sandbox.warm_up import fill_free_chunks
from trajsmith.records import EnvironmentFault, InputError

_HIDDEN = split_words("""
    _ctypes _posixsubprocess _socket array ctypes faulthandler mmap resource select socket subprocess
    trajsmith.environments.sandbox.codec trajsmith.environments.sandbox.landlock trajsmith.environments.sandbox.limits
    trajsmith.environments.sandbox.lockdown
    trajsmith.environments.sandbox.namespaces trajsmith.environments.sandbox.seccomp
    trajsmith.environments.sandbox.serve
    trajsmith.environments.sandbox.syscalls trajsmith.environments.sandbox.warm_up
    trajsmith.environments.sandbox.worker trajsmith.environments.sandbox.zygote
""")
"""Modules that foreign code has no use for; a courtesy only, the kernel layers do not depend on it."""


_LONGEST_ERROR = 1000
"""Characters of what is wrong with an environment's files."""
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


def worker_main(channel: int, progress: int | None, options: WorkerOptions, world: VirtualSources) -> None:
    """Runs in a fresh fork of the zygote; never returns."""
    try:
        memory = _take_over(channel, progress)
        timer = Timer()
        timer.install()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the processes of plays
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        wake = audit.install(frozenset(sys.modules), options.events) if "audit" in options.layers else _asleep
        say = make_sender(CHANNEL)
        try:
            lockdown.lock_worker(options.layers, options.limits, _announce if options.forks else None)
        except lockdown.LayerMissing as error:
            say(str(error).encode())
            os.read(CHANNEL, 1)  # until the parent has heard it and lets go
            os._exit(0)
        say(HELLO)
        if "hide" in options.layers:
            hide_modules(_HIDDEN)
            sys.modules["__main__"] = ModuleType("__main__")
        incoming = read_frames(CHANNEL)
        server = _load(incoming, timer, world, wake)
        gc.collect()
        gc.freeze()  # plays that are forked from here share what there is
        gc.set_threshold(200_000, 50, 1000)
        if options.forks:
            fill_free_chunks()
        if server is not None:
            (_fork_plays if options.forks else _serve)(server, memory, options)
        os._exit(0)
    finally:
        os._exit(_OWN_ERROR)


def _announce(listener: int) -> None:
    """Pass a descriptor to the parent, before the lock forbids to."""
    with socket.socket(fileno=os.dup(CHANNEL)) as channel:
        socket.send_fds(channel, [HEADER.pack(0)], [listener])


def _serve(server: WorkerServer, memory: memoryview | None, options: WorkerOptions) -> None:
    server.run(progress=memory)


def _take_over(channel: int, progress: int | None) -> memoryview | None:
    """Keep the channel as descriptor 3 and the progress as memory; close all else. Stdio leads nowhere already."""
    memory = None if progress is None else lockdown.map_shared_memory(progress, PROGRESS.size)
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
    server, reply = _loaded(request, kind, orjson.loads(payload), limits, timer, world, wake)
    make_sender(CHANNEL)(msgspec.msgpack.encode([reply]))
    return server


def _loaded(
    request: Request, kind: str, payload: Any, limits: RequestLimits, timer: Timer, world: VirtualSources, wake: Any
) -> tuple[WorkerServer | None, RawReply]:
    try:
        try:
            timer.start(limits.load_seconds)
            world.set(b"load", 0)
            program = load_program(kind, payload)
            content = describe_spec(program)
            return WorkerServer(program, limits, timer, world, wake), (request[0], ReplyStatus.OK, content)
        finally:
            timer.disarm()
    except InputError as error:
        return None, (request[0], ReplyStatus.INPUT, encode_content(cut_text(str(error), _LONGEST_ERROR)))
    except EnvironmentFault as fault:
        return None, make_fault(request, fault.kind, fault.message)
    except CallTimeout:
        return None, make_fault(request, "start", f"loading took more than {limits.load_seconds:g} s of CPU time")
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        message = describe_exception(error, timer, limits.load_seconds)
        return None, make_fault(request, "start", f"loading it: {message}")


def _fork_plays(server: WorkerServer, memory: memoryview | None, options: WorkerOptions) -> None:
    """Fork a process for each play. This process has run foreign code, so no data and no channel of a play comes here;
    only without the seccomp layer, where nothing is promised, the channel comes with the request.
    """
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, CHANNEL)
    guarded = "seccomp" in options.layers
    reader, send = FrameReader(), make_sender(CHANNEL)
    descriptors: list[int] = []
    while True:
        frame = reader.frame()
        if frame is None:
            data, passed = (os.read(CHANNEL, 4096), []) if guarded else socket.recv_fds(channel, 4096, 1)[:2]
            if not data:
                return
            reader.feed(data)
            descriptors += passed
            continue
        request: Request = msgspec.msgpack.decode(frame)[0]
        try:
            child = os.fork()
            reply: RawReply = request[0], ReplyStatus.OK, encode_content(child)
        except OSError as error:
            child, reply = -1, make_fault(request, "limit", f"no process for the play: {error}")
        if child == 0:
            _play_main(descriptors, server, options)
        for descriptor in descriptors:
            os.close(descriptor)
        descriptors = []
        send(msgspec.msgpack.encode([reply]))


def _play_main(descriptors: list[int], server: WorkerServer, options: WorkerOptions) -> None:
    try:
        for descriptor in descriptors:
            _take_over(descriptor, None)
        lockdown.take_channel(options.layers)
        server.run()
        os._exit(0)
    finally:
        os._exit(_OWN_ERROR)
