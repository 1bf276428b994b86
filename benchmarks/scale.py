"""A run in one process, with workers, and in shards: CPU, wall, memory, and whether the records are equal.

    python benchmarks/scale.py --count 400

CPU is that of all processes; what else the machine did meanwhile stands in the load that is printed.
"""

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
RECORDS = ("chains", "grounded", "tasks", "varied", "trajectories", "verdicts")


def measure(commands: list[list[str]]) -> tuple[float, float, float]:
    """Run commands one after the other; CPU seconds of all processes, wall seconds, largest process so far in MiB."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for command in commands:
        subprocess.run([sys.executable, "-m", "trajsmith", *command], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.monotonic() - start, after.ru_maxrss / 1024


def hash_records(run: Path) -> str:
    """Hash of all records of a run."""
    return hashlib.sha256(b"".join((run / f"{name}.jsonl").read_bytes() for name in RECORDS)).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="chains")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--shards", type=int, default=2)
    arguments = parser.parse_args()
    size = ["--set", f"sample.count={arguments.count}"]
    table = Table(
        "run", "CPU s", "wall s", "wall / first", "largest process, MiB", "records", title=f"{arguments.count} chains"
    )
    expected, first = "", 0.0
    with tempfile.TemporaryDirectory(prefix="trajsmith-scale-") as scratch:
        folder = Path(scratch)
        plans: dict[str, tuple[Path, list[list[str]]]] = {}
        for workers in arguments.workers:
            path = folder / f"w{workers}"
            command = ["run", "quickstart", "--run", str(path), *size, "--set", f"engine.workers={workers}"]
            plans[f"{workers} workers"] = path, [command]
        parts = [folder / f"part{number}" for number in range(1, arguments.shards + 1)]
        commands = [
            [
                "run",
                "quickstart",
                "--run",
                str(part),
                *size,
                "--set",
                "engine.workers=1",
                "--shard",
                f"{number}/{len(parts)}",
            ]
            for number, part in enumerate(parts, start=1)
        ]
        merged = folder / "merged"
        plans[f"{len(parts)} shards in turn, merged"] = (
            merged,
            [*commands, ["merge", *map(str, parts), "--out", str(merged)]],
        )
        for name, (path, todo) in plans.items():
            cpu, wall, size_mib = measure(todo)
            first, digest = first or wall, hash_records(path)
            expected = expected or digest
            row = f"{cpu:.1f}", f"{wall:.1f}", f"{wall / first:.2f}", f"{size_mib:.0f}"
            table.add_row(name, *row, "equal" if digest == expected else "DIFFERENT")
    console = Console()
    console.print(table)
    console.print(f"{os.cpu_count()} logical cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
