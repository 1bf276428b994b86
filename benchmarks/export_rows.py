"""What an export costs as a whole command, by the number of workers: wall, CPU of all processes, peak memory of each.

    .venv/bin/python benchmarks/export_rows.py                       # a few minutes, 2 GB of disk
    .venv/bin/python benchmarks/export_rows.py --sizes 10000 --workers 1 2 --format openai
    .venv/bin/python benchmarks/export_rows.py --run runs/quickstart # records of a run that is there

The records are those of a small run, written again and again under new seeds and ids. The command is `trajsmith export`
in processes of its own: imports, environments, reading, comparing hashes, rows, files, report. It says the load of the
machine before each command, and whether the datasets are equal.
"""

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from trajsmith.records import JsonObject, Record, Task, Trajectory, Verdict, add_checksum

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "quickstart.yaml"
CHAINS = 200
RECORDS = ("varied", "trajectories", "verdicts")
POLL_SECONDS = 0.2


def make_run(directory: Path) -> None:
    """A small run, verified but not exported."""
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.runner import run_pipeline
    from trajsmith.pipeline.yaml_settings import dump_settings

    settings = load_config(CONFIG, [f"run={directory}", f"sample.count={CHAINS}"])
    asyncio.run(run_pipeline(RunDirectory.create(directory, dump_settings(settings))))


def repeat_run(source: Path, target: Path, judged: int) -> None:
    """Write a run with so many judged trajectories, none of which has the id of another."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("dataset", "gallery", "exports", "*.jsonl"))
    files = [(target / f"{name}.jsonl").open("wb") for name in RECORDS]
    try:
        for lines in itertools.islice(_repeat_plays(source), judged):
            for file, line in zip(files, lines, strict=True):
                file.write(line)
    finally:
        for file in files:
            file.close()


def _repeat_plays(source: Path) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Give lines of task (empty where it is that of the play before), trajectory and verdict, without an end."""
    tasks, trajectories, verdicts = (
        [json.loads(line) for line in (source / f"{name}.jsonl").read_bytes().splitlines()] for name in RECORDS
    )
    by_id = {task["id"]: task for task in tasks}
    for number in itertools.count():
        before = ""
        for played, verdict in zip(trajectories, verdicts, strict=True):
            task = by_id[played["task_id"]]
            task = name_line(Task, task | {"seed": task["seed"] + number})
            play = name_line(Trajectory, played | {"task_id": task["id"]})
            judged = name_line(Verdict, verdict | {"trajectory_id": play["id"], "task_id": task["id"]})
            first, *others = (add_checksum(orjson.dumps(line)) for line in (task, play, judged))
            yield (first if task["id"] != before else b"", *others)
            before = task["id"]


def name_line(kind: type[Record], content: JsonObject) -> JsonObject:
    """The JSON of a record with the id that its content must have."""
    named = {key: value for key, value in content.items() if key != "checksum"}
    return named | {"id": kind.compute_id(named)}


def measure(run: Path, workers: int, name: str | None) -> dict[str, Any]:
    """Export in processes of its own; CPU and memory are those that the kernel counted."""
    config = run / "config.yaml"
    config.write_text(re.sub(r"^  workers: .*$", f"  workers: {workers}", config.read_text(), flags=re.MULTILINE))
    command = [sys.executable, "-m", "trajsmith", "export", str(run), *(["--format", name] if name else [])]
    load, before, start = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peaks: dict[int, int] = {}
    while process.poll() is None:
        for pid in [process.pid, *_list_children(process.pid)]:
            peaks[pid] = max(peaks.get(pid, 0), _read_peak(pid))
        time.sleep(POLL_SECONDS)
    if process.returncode:
        raise SystemExit(process.stderr.read().decode() if process.stderr else "the export failed")
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    driver = peaks.pop(process.pid)
    folder = run / (f"exports/{name}" if name else "dataset") / "data"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(folder.iterdir()))).hexdigest()
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"load": load, "wall": wall, "cpu": cpu, "driver": driver, "worker": max(peaks.values(), default=0),
            "digest": digest}  # fmt: skip


def _list_children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it has ended
        return []


def _read_peak(pid: int) -> int:
    """Return the highest resident size of a process in MiB; 0 if it has ended."""
    try:
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(peak[1]) // 1024 if peak else 0


def main() -> None:
    """Measure every size and number of workers, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--format", help="A format in place of dataset, card and report.")
    parser.add_argument("--run", type=Path, help="A verified run whose records are repeated; a new one without.")
    options = parser.parse_args()
    columns = ("judged", "accepted", "workers", "load", "wall s", "CPU s", "judged/s", "judged/CPU s", "driver MiB")
    table = Table(*columns, "worker MiB", "equal")
    with tempfile.TemporaryDirectory() as scrap:
        source = options.run or Path(scrap) / "small"
        if options.run is None:
            make_run(source)
        for size in options.sizes:
            run = Path(scrap) / f"run-{size}"
            repeat_run(source, run, size)
            accepted = sum(orjson.loads(line)["accepted"] for line in (run / "verdicts.jsonl").open("rb"))
            first = ""
            for workers in options.workers:
                figures = measure(run, workers, options.format)
                first = first or figures["digest"]
                table.add_row(
                    f"{size:,}", f"{accepted:,}", str(workers), f"{figures['load']:.1f}", f"{figures['wall']:.1f}",
                    f"{figures['cpu']:.1f}", f"{size / figures['wall']:,.0f}", f"{size / figures['cpu']:,.0f}",
                    str(figures["driver"]), str(figures["worker"] or ""), "yes" if figures["digest"] == first else "NO",
                )  # fmt: skip
            shutil.rmtree(run)
    Console().print(table)


if __name__ == "__main__":
    main()
