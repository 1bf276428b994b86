"""Tasks of each source on the bundled environments: how many are made, what is in them, and whether the checks hold.

    .venv/bin/python benchmarks/task_sources.py              # 200 tasks of each source, some minutes
    .venv/bin/python benchmarks/task_sources.py --count 40 --sources program

CPU seconds are those of this process, in which all stages run, and of its children that have ended, for the whole run:
sandbox workers that are still alive and the start of Python are not counted.
"""

import argparse
import asyncio
import resource
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.grounding import iterate_leaves
from trajsmith.phrasing import list_value_forms
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.run_directory import GROUNDED, TASKS, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import FromOutput, GoldCall, GroundedChain, Task, Verdict
from trajsmith.records.journal import read_records

CONFIGS = {
    "program": "programs.yaml",
    "long": "long_requests.yaml",
    "state": "state_first.yaml",
    "linked": "linked_worlds.yaml",
}
FOLDER = Path(__file__).parents[1] / "configs"


def measure_cpu() -> float:
    """Return CPU seconds of this process and of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def measure(source: str, count: int, seed: int | None, folder: Path) -> list[tuple[str, str]]:
    """Make a run of one source and return rows of name and figure."""
    path = folder / source
    settings = [
        f"run={path}",
        f"sample.count={count}",
        "engine.workers=1",
        *([f"seed={seed}"] if seed is not None else []),
    ]
    config = load_config(FOLDER / CONFIGS[source], settings)
    run, start = RunDirectory.create(path, dump_settings(config)), measure_cpu()
    asyncio.run(run_pipeline(run, NullProgress()))
    spent = measure_cpu() - start
    every = read_records(run.file(TASKS), Task)
    tasks = [task for task in every if task.source == source or source == "linked"]
    verdicts = {verdict.task_id: verdict for verdict in read_records(run.file(VERDICTS), Verdict)}
    own = [verdicts[task.id] for task in tasks]
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
    stories = {(one.environment, one.scenario) for one in read_records(run.file(GROUNDED), GroundedChain)}
    special = list_crossing(tasks, len(stories)) if source == "linked" else list_operations(tasks)
    return [
        ("asked for", str(count)),
        ("tasks", str(len(tasks))),
        ("dropped", ", ".join(f"{name} {number}" for name, number in dropped.most_common()) or "0"),
        ("with writes", str(writes)),
        *special,
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


def list_operations(tasks: Sequence[Task]) -> list[tuple[str, str]]:
    """Return rows that count what programs do."""
    operations = Counter(name for task in tasks if task.solution for name in set(task.solution.operations))
    names = {"loop": "with loops", "join": "joins across tools", "branch": "branches", "pages": "pages"}
    return [(title, str(operations[name])) for name, title in names.items()]


def list_crossing(tasks: Sequence[Task], stories: int) -> list[tuple[str, str]]:
    """Return rows on arguments whose value comes from a result of another environment.

    Args:
        tasks: Tasks of linked worlds.
        stories: Number of different stories that they tell.
    """
    flows = values = proved = stated = 0
    worlds: dict[str, Counter[str]] = defaultdict(Counter)
    for task in tasks:
        calls, queries = task.gold_calls, " ".join(turn.query for turn in task.turns)
        sources = [
            (call, source, value)
            for call in calls
            for _, source, value in iterate_leaves(call)
            if isinstance(source, FromOutput)
        ]
        crossing = [
            value for call, source, value in sources if find_environment(calls[source.call]) != find_environment(call)
        ]
        flows += len(sources)
        values += len(crossing)
        stated += sum(any(form in queries for form in list_value_forms(value)) for value in crossing)
        proved += task.audit.made.get("crossing", 0) if task.audit else 0
        worlds[task.environments[0]].update(tasks=1, crossing=bool(crossing))
    shares = ", ".join(f"{name} {count['crossing']} of {count['tasks']}" for name, count in sorted(worlds.items()))
    total = max(1, len(tasks))
    crossed = sum(count["crossing"] for count in worlds.values())
    return [
        ("with a value that crosses", f"{crossed} of {len(tasks)} ({100 * crossed / total:.0f} %)"),
        ("values from results, those that cross", f"{flows}, {values}"),
        ("crossing values with another value executed", f"{proved} of {values}"),
        ("crossing values that the user says", str(stated)),
        ("stories told", str(stories)),
        ("by world", shares),
    ]


def find_environment(call: GoldCall) -> str:
    """Return the environment of a call in a linked world."""
    return call.tool.partition("__")[0]


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
