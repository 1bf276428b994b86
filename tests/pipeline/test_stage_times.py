"""Times of stages: the CPU of all processes of a run, whatever else the machine does."""

import subprocess
import sys
from pathlib import Path

import pytest

from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.stage_times import (
    StageTimes,
    measure_cpu_seconds,
    read_stage_times,
    sum_stage_times,
    time_file,
    write_stage_times,
)

BUSY = """
import sys, time
while time.process_time() < 0.4:
    pass
print("done", flush=True)
sys.stdin.read()
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
ENOUGH = 0.35
"""CPU seconds of the busy process but for what the clock of the kernel rounds off."""

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="running processes are seen in /proc")


@needs_proc
@pytest.mark.parametrize("command", [["-c", BUSY], ["-c", PARENT, BUSY]], ids=["child", "child of a child"])
def test_processes_below_this_one_count_while_they_run_and_afterwards(command: list[str]) -> None:
    before = measure_cpu_seconds()
    with subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        running = measure_cpu_seconds() - before
    ended = measure_cpu_seconds() - before
    assert ENOUGH < running <= ended + 0.02


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", "name: x\n")


def test_times_are_read_as_they_were_written(run: RunDirectory) -> None:
    assert read_stage_times(run, "play") == StageTimes(0.0, 0.0)
    write_stage_times(run, "play", StageTimes(2.5, None))
    assert read_stage_times(run, "play") == StageTimes(2.5, None)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param({"seconds": 3.0}, StageTimes(3.0, None), id="older_version"),
        pytest.param(["seconds"], StageTimes(), id="no_times"),
        pytest.param({"seconds": "x"}, StageTimes(), id="no_number"),
    ],
)
def test_files_of_times_are_read_whatever_they_hold(run: RunDirectory, stored: object, expected: StageTimes) -> None:
    run.write_json(time_file("play"), stored)
    assert read_stage_times(run, "play") == expected


def test_cpu_is_unknown_if_it_is_of_one_part() -> None:
    assert sum_stage_times([StageTimes(1.0, 0.5), StageTimes(2.0, 1.0)]) == StageTimes(3.0, 1.5)
    assert sum_stage_times([StageTimes(1.0, 0.5), StageTimes(2.0, None)]) == StageTimes(3.0, None)
