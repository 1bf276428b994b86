"""Whatever happens to the parent or the zygote, no process of the sandbox is left."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
SCRIPT = Path(__file__).with_name("plays_until_killed.py")


def alive(session: int) -> list[int]:
    """Processes of a session that are not dead already."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def gone(session: int) -> bool:
    deadline = time.monotonic() + 20
    while alive(session):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("victim", ["parent", "zygote"])
@pytest.mark.parametrize("how", ["spin in C", "sleep"])
@pytest.mark.parametrize("mode", ["default", "process", "strict", "unsafe"])
def test_nothing_outlives_its_parent(mode: str, how: str, victim: str) -> None:
    process = subprocess.Popen([sys.executable, SCRIPT, mode, how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        session = int(process.stdout.readline())
        assert len(alive(session)) >= 2
        os.kill(process.pid if victim == "parent" else session, signal.SIGKILL)
        assert gone(session)
    finally:
        process.kill()
        process.communicate()
