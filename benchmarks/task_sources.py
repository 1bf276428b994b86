"""Tasks of each source on the bundled environments: how many are made, what is in them, and whether the checks hold.

    .venv/bin/python benchmarks/task_sources.py              # 200 tasks of each source, some minutes
    .venv/bin/python benchmarks/task_sources.py --count 40 --sources program

CPU seconds are those of this process and of its children that have ended, for the whole run: sandbox workers that are
still alive and the start of Python are not counted.
"""

import argparse
import asyncio
import resource
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.run_directory import TASKS, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import Task, Verdict
from trajsmith.records.journal import read_records

CONFIGS = {"program": "programs.yaml", "long": "long_requests.yaml", "state": "state_first.yaml"}
FOLDER = Path(__file__).parents[1] / "configs"


def measure_cpu() -> float:
    """Return CPU seconds of this process and of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(source: str, count: int, seed: int | None, folder: Path) -> list[tuple[str, str]]:
    """Make a run of one source and return rows of name and figure."""
    path = folder / source
    settings = [f"run={path}", f"sample.count={count}", *([f"seed={seed}"] if seed is not None else [])]
    config = load_config(FOLDER / CONFIGS[source], settings)
    run, start = RunDirectory.create(path, dump_settings(config)), measure_cpu()
    asyncio.run(run_pipeline(run, NullProgress()))
    spent = measure_cpu() - start
    tasks = [task for task in read_records(run.file(TASKS), Task) if task.source == source]
    verdicts = {verdict.task_id: verdict for verdict in read_records(run.file(VERDICTS), Verdict)}
    own = [verdicts[task.id] for task in tasks]
    operations = Counter(name for task in tasks if task.solution for name in set(task.solution.operations))
    executed, caught = Counter[str](), Counter[str]()
    equivalent = accepted = 0
    for task in tasks:
        assert task.audit is not None
        executed.update(task.audit.made)
        caught.update(task.audit.caught)
        equivalent += task.audit.equivalent
        accepted += task.audit.accepted
    calls = sorted(len(task.gold_calls) for task in tasks)
    writes = sum(any(call.effect == "write" for call in task.gold_calls) for task in tasks)
    dropped = Counter(summarize_stage(run, "ground").dropped) + Counter(summarize_stage(run, "write").dropped)
    total = max(1, len(tasks))
    return [
        ("asked for", str(count)),
        ("tasks", str(len(tasks))),
        ("dropped", ", ".join(f"{name} {number}" for name, number in dropped.most_common()) or "0"),
        ("with writes", str(writes)),
        ("with loops", str(operations["loop"])),
        ("joins across tools", str(operations["join"])),
        ("branches", str(operations["branch"])),
        ("pages", str(operations["pages"])),
        ("calls: least, median, most", f"{calls[0]}, {calls[len(calls) // 2]}, {calls[-1]}" if calls else "-"),
        ("different requests", str(len({task.turns[0].intent for task in tasks}))),
        ("replayed alike", f"{sum(verdict.replay_match is True for verdict in own)} of {len(own)}"),
        ("plays accepted", f"{sum(verdict.accepted for verdict in own)} of {len(own)}"),
        ("mutants caught", f"{sum(caught.values())} of {sum(executed.values())}"),
        ("equivalents accepted", f"{accepted} of {equivalent}"),
        ("CPU ms a task, whole run", f"{1000 * spent / total:.0f}"),
        (
            "mutants escaped",
            ", ".join(f"{name} {executed[name] - caught[name]}" for name in executed if executed[name] > caught[name]),
        ),
        ("reasons", ", ".join(sorted({reason for verdict in own for reason in verdict.reasons})) or "-"),
    ]


def main() -> None:
    """Print one table per source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="tasks that are asked for, per source")
    parser.add_argument("--seed", type=int, help="another seed than the configuration's")
    parser.add_argument("--sources", nargs="*", default=list(CONFIGS), choices=list(CONFIGS))
    parser.add_argument("--keep", type=Path, help="folder in which the runs stay")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for source in arguments.sources:
            table = Table("figure", "value", title=f"source: {source}")
            for row in measure(source, arguments.count, arguments.seed, arguments.keep or Path(folder)):
                table.add_row(*row)
            Console(width=140).print(table)


if __name__ == "__main__":
    main()
