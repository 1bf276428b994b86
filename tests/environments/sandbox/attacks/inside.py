"""Looks around in the namespaces of a zygote, and prints what it saw as JSON."""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from trajsmith.environments.sandbox import limits, lockdown


def main() -> None:
    reads, writes = os.pipe()
    waits = os.fork()
    if waits == 0:
        os.close(reads)
        _zygote(writes)
        os._exit(7)
    os.close(writes)
    found: dict[str, Any] = json.loads(_line(reads))
    found["exit_code"] = os.waitstatus_to_exitcode(os.waitpid(waits, 0)[1])
    found["after_kill"] = _after_kill() if "missing" not in found else ""
    sys.stdout.write(json.dumps(found))


def _line(descriptor: int) -> bytes:
    text = b""
    while part := os.read(descriptor, 4096):
        text += part
    return text


def _zygote(writes: int) -> None:
    try:
        lockdown.enter_namespaces()
    except lockdown.LayerMissing as error:
        os.write(writes, json.dumps({"missing": str(error)}).encode() + b"\n")
        return
    found: dict[str, Any] = {
        "pid": os.getpid(),
        "uid": os.getuid(),
        "capabilities": limits.get_capabilities(),
        "files": [str(path) for path in Path("/").iterdir()],
        "interfaces": [name for _, name in socket.if_nameindex()],
    }
    try:
        Path("/x").write_text("x")
    except OSError as error:
        found["writing"] = str(error)
    try:
        socket.socket().connect(("127.0.0.1", 9))
    except OSError as error:
        found["connecting"] = os.strerror(error.errno or 0)
    reads, worker = os.pipe()
    child = os.fork()
    if child == 0:
        lockdown.lock_worker(lockdown.LAYERS - {"seccomp"}, lockdown.WorkerLimits(uid=70007))
        said = {"worker_uid": os.getuid(), "worker_capabilities": limits.get_capabilities(), "worker_pid": os.getpid()}
        os.write(worker, json.dumps(said).encode())
        os._exit(0)
    os.close(worker)  # a worker that fails ends what is read of it
    found |= json.loads(_line(reads))
    os.waitpid(child, 0)
    os.write(writes, json.dumps(found).encode() + b"\n")


def _after_kill() -> str:
    """Kill the process that waits for a zygote; the zygote must go too."""
    reads, writes = os.pipe()
    waits = os.fork()
    if waits == 0:
        lockdown.enter_namespaces()
        os.write(writes, b"x")
        signal.pause()
    os.close(writes)
    os.read(reads, 1)
    os.kill(waits, signal.SIGKILL)
    os.waitpid(waits, 0)
    for _ in range(200):  # the last writer of the pipe is the zygote
        if os.get_blocking(reads):
            os.set_blocking(reads, False)
        try:
            return "ended" if os.read(reads, 1) == b"" else "it spoke"
        except BlockingIOError:
            time.sleep(0.01)
    return "lives on"


if __name__ == "__main__":
    main()
