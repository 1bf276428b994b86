"""What an export costs: CPU per row and format, peak memory over the number of rows, and the size of the report.

    .venv/bin/python benchmarks/export_rows.py                       # a few minutes
    .venv/bin/python benchmarks/export_rows.py --sizes 1000 100000 --formats trl

The records are those of a small run, given again and again under new seeds and ids, so that reading them is part of
the work and no disk is filled. CPU is user plus system time of a process of its own; memory is the highest resident
size that the kernel saw.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.records import JsonObject, Summary, Task, Trajectory, Verdict, content_hash
from trajsmith.records.record import Record

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "quickstart.yaml"
CHAINS = 200
RECORDS = ("varied", "trajectories", "verdicts")


def make_run(directory: Path) -> None:
    """A small run, verified but not exported."""
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.runner import run_pipeline
    from trajsmith.pipeline.yaml_settings import dump_settings

    settings = load_config(CONFIG, [f"run={directory}", f"sample.count={CHAINS}"])
    asyncio.run(run_pipeline(RunDirectory.create(directory, dump_settings(settings))))


def repeated(directory: Path, rows: int) -> Iterator[list[bytes]]:
    """Lines of task, trajectory and verdict; each time round the task has another seed, and all have new ids."""
    tasks, trajectories, verdicts = (
        [json.loads(line) for line in (directory / f"{name}.jsonl").read_bytes().splitlines()] for name in RECORDS
    )
    by_id = {task["id"]: task for task in tasks}
    triples = [
        (by_id[played["task_id"]], played, verdict) for played, verdict in zip(trajectories, verdicts, strict=True)
    ]
    for number in range(rows):
        task, trajectory, verdict = triples[number % len(triples)]
        again = name_line(Task, task | {"seed": task["seed"] + number // len(triples)})
        played = name_line(Trajectory, trajectory | {"task_id": again["id"]})
        judged = name_line(Verdict, verdict | {"trajectory_id": played["id"]})
        yield [json.dumps(line).encode() for line in (again, played, judged)]


def name_line(kind: type[Record], content: JsonObject) -> JsonObject:
    """The JSON of a record with the id that its content must have."""
    fixed = {key: value for key, value in content.items() if key not in ("id", *kind.VOLATILE)}
    return content | {"id": f"{kind.PREFIX}_{content_hash(fixed, 16)}"}


def measure(directory: Path, rows: int, formats: list[str]) -> dict[str, float]:
    """Export in this process; gives CPU seconds of reading, exporting and reporting, and peak memory."""
    from trajsmith.export import FormatSettings, MultiFormatWriter, ReportBuilder, SplitSettings
    from trajsmith.pipeline.format_export import load_stored_specs
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.records import TaskHeader

    run = RunDirectory.open(directory)
    specs, out = load_stored_specs(run), directory / "bench"
    report, clock = ReportBuilder(list(specs.values())), time.process_time
    cpu = {"read": 0.0, "export": 0.0, "report": 0.0}
    targets = {name: out / name for name in formats}
    out.mkdir(exist_ok=True)
    with MultiFormatWriter(targets, run.get_state, SplitSettings(validation=0.05), FormatSettings()) as matrix:
        _import_writers()
        for task_line, trajectory_line, verdict_line in repeated(directory, rows):
            start = clock()
            task, verdict = TaskHeader.from_line(task_line), Verdict.from_line(verdict_line)
            trajectory = Trajectory.from_line(trajectory_line)
            read = clock()
            if verdict.accepted:
                matrix.add(task, trajectory, verdict, specs[trajectory.environment])
            written = clock()
            report.add(task, trajectory, verdict)
            cpu["read"] += read - start
            cpu["export"] += written - read
            cpu["report"] += clock() - written
    last = clock()
    report.write(_summary(), out / "report.html")
    cpu["report"] += clock() - last
    exported = sum(writer.rows for writer in matrix.writers.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**cpu, "rows": exported, "peak": peak, "report_mib": (out / "report.html").stat().st_size / 2**20}


def _import_writers() -> None:
    import datasets  # noqa: F401
    import pyarrow.parquet  # noqa: F401


def _summary() -> Summary:
    return Summary(name="benchmark", seed=0, language="scripted", stages=(), funnel={"accepted": 1, "played": 1})


def main() -> None:
    """Measure every size and format in a process of its own, and print the table."""
    sys.path[0] = str(Path(__file__).parents[1])  # beside this file lie scripts with the names of packages
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--formats", nargs="+", default=["trl"])
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        directory, rows, name = options.one
        print(json.dumps(measure(Path(directory), int(rows), [name])))
        return
    table = Table("format", "trajectories", "rows", "read ms", "export ms", "report ms", "rows/s", "all/s", "peak MiB")
    with tempfile.TemporaryDirectory() as scrap:
        make_run(Path(scrap) / "run")
        for name in options.formats:
            for size in options.sizes:
                command = [sys.executable, __file__, "--one", f"{scrap}/run", str(size), name]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                table.add_row(*_cells(name, size, json.loads(done.stdout)))
    Console().print(table)


def _cells(name: str, size: int, figures: dict[str, float]) -> list[str]:
    each = [1000 * figures[part] / size for part in ("read", "export", "report")]
    rates = [f"{figures['rows'] / figures['export']:,.0f}", f"{1000 / sum(each):,.0f}"]
    return [
        name,
        f"{size:,}",
        f"{figures['rows']:,}",
        *(f"{one:.3f}" for one in each),
        *rates,
        f"{figures['peak']:.0f}",
    ]


if __name__ == "__main__":
    main()
