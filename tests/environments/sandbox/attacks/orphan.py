"""Does a worker outlive its parent? Says "ended" or "lives on"."""

import ctypes
import os
import select
import sys
import time
from pathlib import Path

from attacks.deciding import start_decider

from trajsmith.environments.sandbox import lockdown


def main() -> None:
    kind, layers = sys.argv[1], frozenset(sys.argv[2].split(","))
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process
    reads, writes = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.dup2(writes, 3)
        _parent(kind, layers)
        os._exit(0)
    os.close(writes)
    worker = int(os.read(reads, 100))
    os.waitpid(parent, 0)
    sys.stdout.write("ended" if _ends(worker) else "lives on")


def _parent(kind: str, layers: frozenset[str]) -> None:
    """Starts a worker and ends as soon as that is locked."""
    if kind == "late":
        lockdown.arm_parent_death()
    heard, tells = os.pipe()
    child = os.fork()
    if child == 0:
        _worker(kind, layers, tells)
        os._exit(0)
    if kind != "late":
        os.read(heard, 1)
    os.write(3, str(child).encode()) if kind != "session" else None


def _worker(kind: str, layers: frozenset[str], tells: int) -> None:
    if kind == "late":
        time.sleep(0.3)  # the parent is gone by now
    lockdown.lock_worker(layers, lockdown.WorkerLimits(), start_decider() if kind == "session" else None)
    if kind == "session":
        session = os.fork()
        if session:
            os.write(3, str(session).encode())
            select.select([], [], [], 0.2)
            os.write(tells, b"x")
            select.select([], [], [], 0.05)
            os._exit(0)  # the zygote of the environment ends: its session must end too
        lockdown.take_channel(layers)
    else:
        os.write(tells, b"x")
    select.select([], [], [], 60)


def _ends(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    for _ in range(100):
        try:
            if "State:\tZ" in status.read_text():
                return True
        except OSError:
            return True
        time.sleep(0.01)
    os.kill(pid, 9)
    return False


if __name__ == "__main__":
    main()
