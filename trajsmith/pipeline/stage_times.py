"""Times of stages: wall seconds, and CPU seconds, which stay the same on a machine that other programs share.

Times are volatile, so each stage has a file of its own for them, and no record holds one.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trajsmith.pipeline.run_directory import LEDGER, RunDirectory
from trajsmith.records import InputError

SAVE_SECONDS = 10.0
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
STAT_FIELDS = slice(11, 15)
"""User and system ticks of a process and of its ended children, counted from behind its name in /proc/PID/stat."""


class StageTimes(NamedTuple):
    """Times of one stage, summed over resumed parts."""

    seconds: float = 0.0
    cpu_seconds: float | None = 0.0
    """CPU of the driver and of all processes below it; None if an older version did a part and did not measure it."""


class StopWatch:
    """Measures times from when it is made."""

    def __init__(self) -> None:
        self._start, self._cpu_start = time.monotonic(), measure_cpu_seconds()

    def read(self) -> StageTimes:
        """Return the times since the start."""
        return StageTimes(time.monotonic() - self._start, measure_cpu_seconds() - self._cpu_start)


class StageClock:
    """Times of a stage that runs."""

    def __init__(self, run: RunDirectory, stage: str) -> None:
        self._run = run
        self._stage = stage
        self._before = read_stage_times(run, stage)
        self._watch = StopWatch()
        self._saved = time.monotonic()

    def tick(self) -> None:
        """Save now and then, so that a killed run keeps its times but for a few seconds."""
        if time.monotonic() - self._saved >= SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Write the times so far."""
        self._saved = time.monotonic()
        write_stage_times(self._run, self._stage, sum_stage_times([self._before, self._watch.read()]))


def time_file(stage: str) -> str:
    return f"{LEDGER}/{stage}.time.json"


def sum_stage_times(parts: Sequence[StageTimes]) -> StageTimes:
    """Add up times of parts of a stage; CPU is unknown if that of one part is."""
    cpu = [part.cpu_seconds for part in parts if part.cpu_seconds is not None]
    return StageTimes(sum(part.seconds for part in parts), sum(cpu) if len(cpu) == len(parts) else None)


def write_stage_times(run: RunDirectory, stage: str, times: StageTimes) -> None:
    """Write the times of a stage; an outage may lose them."""
    rounded = {name: None if value is None else round(value, 3) for name, value in times._asdict().items()}
    run.write_json(time_file(stage), rounded, durable=False)


def read_stage_times(run: RunDirectory, stage: str) -> StageTimes:
    """Times that a stage has taken so far; 0 if it has not run. An unreadable file counts as 0, too."""
    if not run.file(time_file(stage)).is_file():
        return StageTimes()
    try:
        stored = run.read_json(time_file(stage))
        cpu = stored.get("cpu_seconds")
        return StageTimes(float(stored["seconds"]), None if cpu is None else float(cpu))
    except (AttributeError, InputError, KeyError, TypeError, ValueError):
        return StageTimes()


def measure_cpu_seconds() -> float:
    """Return user and system seconds of this process and of all processes below it, running or ended.

    Running ones are seen where there is /proc; elsewhere they count once they have ended. Workers of Ray are no
    processes of this machine, or not below this one, and never count.
    """
    own = os.times()
    ended = own.user + own.system + own.children_user + own.children_system
    return ended + sum(_count_ticks(child) for child in _list_children(os.getpid())) / TICKS_PER_SECOND


def _count_ticks(pid: int) -> int:
    """CPU of one process, of its ended children and of the running ones; 0 if it has ended meanwhile."""
    ticks = sum(_count_ticks(child) for child in _list_children(pid))
    with suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        ticks += sum(map(int, stat.rpartition(")")[2].split()[STAT_FIELDS]))
    return ticks


def _list_children(pid: int) -> list[int]:
    """Running children of a process, whichever of its threads started them."""
    children: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (thread / "children").read_text("ascii").split())
    return children
