"""The parent's side of a zygote: starting it, and having workers forked."""

import json
import mmap
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass

from trajsmith.environments.sandbox.launchers import SANDBOXES
from trajsmith.environments.sandbox.serialization import PROGRESS
from trajsmith.records import InputError, RunError

_START_SECONDS = 60.0
_ANSWER_SECONDS = 30.0
_END_SECONDS = 2.0
_BUFFER = 1 << 20
NO_PIDFD = (
    "pidfds are missing: a worker could not be ended for sure; use a kernel >= 5.3 and a container that allows "
    "pidfd_open and pidfd_send_signal"
)
_MAIN = """
import json, os, sys
options = json.loads(sys.argv[2])
sys.path[:] = options["path"]
register, os.register_at_fork = os.register_at_fork, lambda **hooks: None
import logging, random, threading
os.register_at_fork = register
from trajsmith.environments.sandbox.zygote import main
main(int(sys.argv[1]), options)
"""
"""What the zygote's Python runs. It starts without `site`, so it is told where modules are.

The standard library's own hooks at a fork are left out: they free locks that no other thread can hold, and draw another
seed for a generator that nobody uses. They would copy 180 pages in every process that is forked from here."""


@dataclass
class ForkedProcess:
    """New process with its channel and shared memory."""

    channel: socket.socket
    progress: mmap.mmap | None
    """Memory in which a worker of many plays marks its progress; it may write anything there."""
    pid: int
    pidfd: int | None
    """None where the system has no pidfds; only mode `unsafe` goes on without."""


@dataclass(frozen=True)
class ZygoteOptions:
    """Options that need a zygote of their own."""

    layers: frozenset[str]
    imports: tuple[str, ...] = ()
    hash_seed: int = 0
    provider: str = "built_in"


class ZygoteProcess:
    """A running zygote. It ends with this process, however that ends."""

    def __init__(self, options: ZygoteOptions) -> None:
        """Start it; it forks once `await_ready` has come back."""
        self.options = options
        self._ready = False
        self._refusal: InputError | RunError | None = None
        """Why it did not start, for everybody who waits for it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        wanted: dict[str, object] = {"layers": sorted(options.layers), "imports": list(options.imports)}
        wanted["parent"] = threading.current_thread() is threading.main_thread()
        wanted["path"] = [path for path in sys.path if path]
        command = [sys.executable, "-s", "-S", "-P", "-B", "-c", _MAIN, str(theirs.fileno()), json.dumps(wanted)]
        self._process = subprocess.Popen(
            SANDBOXES.get(options.provider)(command),
            env={"PYTHONHASHSEED": str(options.hash_seed)}, pass_fds=[theirs.fileno()], cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._control = ours
        self._lock = threading.Lock()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def ready(self) -> bool:
        """It forks workers at once."""
        return self._ready

    def await_ready(self) -> None:
        """Wait until it can fork, for seconds on a busy machine; any number of threads may.

        Raises:
            InputError: A module named under `imports` cannot be imported.
            RunError: A layer is missing on this machine, or Python does not come up.
        """
        with self._lock:
            if self._refusal is None and not self._ready:
                self._refusal = self._read_start_failure()
                self._ready = self._refusal is None
        if self._refusal is not None:
            raise self._refusal

    def fork(self, options: dict[str, object]) -> ForkedProcess:
        """A new worker of this zygote; one that forks its plays needs no memory for its progress.

        Raises:
            RunError: The zygote is gone, or the machine has no more processes.
        """
        channel, theirs = open_channel()
        progress, shared = (None, None) if options["forks"] else open_progress()
        passed = [theirs.fileno()] if shared is None else [theirs.fileno(), shared]
        try:
            with self._lock:
                socket.send_fds(self._control, [b"W" + json.dumps(options).encode()], passed)
                pid = int(self._answer())
        except OSError as error:
            raise RunError(f"the sandbox could not start a worker: {error}") from error
        finally:
            theirs.close()
            if shared is not None:
                os.close(shared)
        return ForkedProcess(channel, progress, pid, self.pidfd(pid))

    def pidfd(self, pid: int) -> int | None:
        """A descriptor that stands for a process in spite of reused numbers."""
        with self._lock:
            self._control.send(b"P%d" % pid)
            message, descriptors, _, _ = socket.recv_fds(self._control, 1 << 12, 1)
        if not message:
            raise RunError("the sandbox's zygote ended")
        return descriptors[0] if descriptors else None

    def end(self, pid: int) -> str:
        """End a worker and all that it forked, and say how it ended."""
        try:
            with self._lock:
                self._control.send(b"S%d" % pid)
                return self._answer().decode()
        except OSError:
            return "it ended with the zygote"

    def close(self) -> None:
        """End it, and with it all of its workers."""
        self._control.close()  # it then ends its workers, and itself
        try:
            self._process.wait(_END_SECONDS if self._ready else 0.0)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()

    def _answer(self) -> bytes:
        data = self._control.recv(1 << 12)
        if not data:
            raise OSError("the zygote ended")
        return data

    def _read_start_failure(self) -> InputError | RunError | None:
        """None if it is ready; else it is closed."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            ready = selector.select(_START_SECONDS)
        answer = self._control.recv(1 << 16) if ready else b"late"
        if answer == b"ready":
            self._control.settimeout(_ANSWER_SECONDS)
            return None
        output = "" if answer else self._read_last_output()
        self.close()
        word, _, detail = answer.decode().partition(" ")
        if word == "missing":
            return InputError(f"sandbox: {detail}; install it, or take it out of `imports`")
        if word == "layer":
            return RunError(f"sandbox: {detail}")
        return RunError(
            f"the sandbox did not start: {output or 'no answer'}; `trajsmith env probe` says what works here"
        )

    def _read_last_output(self) -> str:
        stderr = self._process.stderr
        lines = stderr.read().decode(errors="replace").strip().splitlines() if stderr else []
        return lines[-1] if lines else ""


def open_channel() -> tuple[socket.socket, socket.socket]:
    """A stream pair with room for whole batches: our end, which never blocks, and that of a worker."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    ours.setblocking(False)
    return ours, theirs


def open_progress() -> tuple[mmap.mmap, int]:
    """The memory in which a worker marks its progress, and a descriptor of it."""
    descriptor = os.memfd_create("progress") if hasattr(os, "memfd_create") else _file_descriptor()
    os.ftruncate(descriptor, PROGRESS.size)
    return mmap.mmap(descriptor, PROGRESS.size), descriptor


def _file_descriptor() -> int:
    """Anonymous memory where there is no memfd: a file without a name."""
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def terminate(forked: ForkedProcess) -> None:
    """Kill a process; it may be gone already."""
    with suppress(ProcessLookupError):
        if forked.pidfd is not None:
            signal.pidfd_send_signal(forked.pidfd, signal.SIGKILL)
        else:
            os.kill(forked.pid, signal.SIGKILL)


def release(forked: ForkedProcess) -> None:
    """Close what leads to a process."""
    forked.channel.close()
    if forked.progress is not None:
        forked.progress.close()
    if forked.pidfd is not None:
        os.close(forked.pidfd)
        forked.pidfd = None
