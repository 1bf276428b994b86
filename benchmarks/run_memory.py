"""Memory of a long run: does it grow with its length? Peaks of driver and largest worker, by thirds of each stage.

    python benchmarks/run_memory.py --count 4000 --workers 2

Resident sizes are read every few seconds, so peaks between two readings are missed.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
MIB = 2**20


@dataclass(frozen=True)
class MemorySample:
    """Resident MiB of the processes of a run at one moment."""

    stage: str
    seconds: float
    driver: float
    worker: float
    """The largest of the other processes; 0 without workers."""


class StageReader(threading.Thread):
    """Follows the output of a run: which stage it is in."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        super().__init__(daemon=True)
        self.process, self.stage, self.lines = process, "start", []

    def run(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines = [*self.lines[-40:], line]
            if ": started" in line:
                self.stage = line.split(":")[0]


def read_memory(driver: psutil.Process) -> tuple[float, float]:
    """Read the resident MiB of a process and of the largest one below it."""
    sizes = [0.0]
    for child in driver.children(recursive=True):
        try:
            sizes.append(child.memory_info().rss / MIB)
        except psutil.NoSuchProcess:
            continue
    return driver.memory_info().rss / MIB, max(sizes)


def watch_run(command: list[str], every: float) -> tuple[list[MemorySample], list[str]]:
    """Run a command to its end; return the readings and the last lines of its output.

    Raises:
        SystemExit: The command fails.
    """
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, driver, readings = StageReader(process), psutil.Process(process.pid), []
    output.start()
    while process.poll() is None:
        try:
            readings.append(MemorySample(output.stage, time.monotonic() - start, *read_memory(driver)))
        except psutil.NoSuchProcess:
            break
        time.sleep(every)
    code = process.wait()
    output.join()
    if code:
        raise SystemExit("".join(output.lines) + f"the run ended with {code}")
    return readings, output.lines


def build_table(readings: list[MemorySample], title: str) -> Table:
    """Build the table of peaks: for each stage the first, second and last third of its time."""
    table = Table("stage", "minutes", "driver, thirds", "driver", "largest worker, thirds", "worker", title=title)
    for stage in dict.fromkeys(reading.stage for reading in readings):
        rows = [reading for reading in readings if reading.stage == stage]
        thirds = [part for part in (rows[len(rows) * n // 3 : len(rows) * (n + 1) // 3] for n in range(3)) if part]
        drivers = [max(reading.driver for reading in part) for part in thirds]
        workers = [max(reading.worker for reading in part) for part in thirds]
        table.add_row(
            stage,
            f"{(rows[-1].seconds - rows[0].seconds) / 60:.1f}",
            " ".join(f"{value:.0f}" for value in drivers),
            f"{max(drivers):.0f}",
            " ".join(f"{value:.0f}" for value in workers),
            f"{max(workers):.0f}",
        )
    return table


def main() -> None:
    """Run the quick start with many chains, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=4000, help="chains")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between readings")
    parser.add_argument("--run", type=Path, help="keep the run here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="trajsmith-memory-") as scratch:
        run = arguments.run or Path(scratch) / "run"
        command = [sys.executable, "-m", "trajsmith", "run", "quickstart", "--run", str(run)]
        command += ["--set", f"sample.count={arguments.count}", "--set", f"engine.workers={arguments.workers}"]
        readings, lines = watch_run(command, arguments.every)
    print("".join(lines))
    Console(width=120).print(build_table(readings, f"{arguments.count} chains, {arguments.workers} workers, MiB"))


if __name__ == "__main__":
    main()
