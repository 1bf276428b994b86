"""Rubrics on tasks of all sources: what right and faulty plays meet, and how many criteria tell candidates apart.

    .venv/bin/python benchmarks/rubrics.py               # configs/four_sources.yaml, 300 tasks, a minute
    .venv/bin/python benchmarks/rubrics.py --config quickstart --count 150 --seed 77

A right play is one without an injected mistake. A faulty play that execution accepts all the same did no harm.
"""

import argparse
import asyncio
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, VARIED, VERDICTS, RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import Task, Trajectory, Verdict
from trajsmith.records.journal import read_records

FOLDER = Path(__file__).parents[1] / "configs"
RIGHT = ("", "not the best candidate")
"""Reasons of plays that execution calls right."""


def make_run(config: str, count: int, seed: int | None, path: Path) -> RunDirectory:
    """Make a run of a bundled configuration."""
    settings = [f"run={path}", f"sample.count={count}", "engine.workers=1"]
    loaded = load_config(FOLDER / f"{config}.yaml", settings + ([f"seed={seed}"] if seed is not None else []))
    run = RunDirectory.create(path, dump_settings(loaded))
    asyncio.run(run_pipeline(run, NullProgress()))
    return run


def measure(run: RunDirectory) -> tuple[list[tuple[str, str]], dict[str, Counter[str]]]:
    """Return rows of name and figure, and the counts of each topic."""
    file = run.file(VARIED) if run.file(VARIED).is_file() else run.file(TASKS)
    tasks = {task.id: task for task in read_records(file, Task)}
    plays = {play.id: play for play in read_records(run.file(TRAJECTORIES), Trajectory)}
    topics: dict[str, Counter[str]] = defaultdict(Counter)
    counts, left, sources = Counter[str](), Counter[str](), Counter[str]()
    for verdict in read_records(run.file(VERDICTS), Verdict):
        if not verdict.rubric:
            continue
        reason = verdict.reasons[0] if verdict.reasons else ""
        accepted = verdict.accepted or reason in RIGHT
        kind = "harmless" if accepted else "rejected"
        kind = kind if plays[verdict.trajectory_id].injected else "right"
        unmet = [each for each in verdict.rubric if each.met is False and each.required]
        counts[kind] += 1
        counts[f"{kind} whole"] += not unmet
        counts[f"{kind} reward 1"] += verdict.rewards.get("rubric") == 1.0
        sources[tasks[verdict.task_id].source or "chain"] += verdict.accepted
        for each in verdict.rubric:
            left[each.left_out] += 1
            topics[each.about].update(
                {"right": kind == "right", "right met": kind == "right" and each.met is True,
                 "faulty failed": kind == "rejected" and each.met is False}
            )  # fmt: skip
    criteria = sum(len(task.rubric) for task in tasks.values())
    failed = counts["rejected"] - counts["rejected whole"]
    rows = [
        ("tasks, criteria", f"{len(tasks)}, {criteria}"),
        ("accepted, by source", ", ".join(f"{name} {number}" for name, number in sorted(sources.items()))),
        ("right plays that meet all required criteria", f"{counts['right whole']} of {counts['right']}"),
        ("rejected faulty plays that fail one", f"{failed} of {counts['rejected']}"),
        ("accepted faulty plays that meet all", f"{counts['harmless whole']} of {counts['harmless']}"),
        ("rejected faulty plays with the whole reward", str(counts["rejected reward 1"])),
        ("criteria in plays: met by all candidates, by none", f"{left['met_by_all']}, {left['met_by_none']}"),
        ("criteria in plays that count", str(left[""])),
    ]  # fmt: skip
    return rows, topics


def main() -> None:
    """Print the figures, and those of each topic."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="four_sources", help="name of a bundled configuration")
    parser.add_argument("--count", type=int, default=300, help="tasks that are asked for")
    parser.add_argument("--seed", type=int, help="another seed than the configuration's")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows, topics = measure(make_run(arguments.config, arguments.count, arguments.seed, Path(folder) / "run"))
    table, by_topic = Table("figure", "value"), Table("topic", "met by right plays", "failed by rejected faulty plays")
    for row in rows:
        table.add_row(*row)
    for topic, counts in sorted(topics.items()):
        by_topic.add_row(topic, f"{counts['right met']} of {counts['right']}", str(counts["faulty failed"]))
    console = Console(width=140)
    console.print(table)
    console.print(by_topic)


if __name__ == "__main__":
    main()
