"""Every variant on the bundled environments: how many can be made, and whether the labels hold when they are played.

    .venv/bin/python benchmarks/variants.py              # about two minutes
    .venv/bin/python benchmarks/variants.py --count 90   # the table of docs/variants.md
    .venv/bin/python benchmarks/variants.py --run runs/variants

`right` are plays of the scripted agent, which does what is right about the twist; all should be accepted. `naive` are
plays of an agent that does not notice it; none should be.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from trajsmith.environments.injected_faults import inject_faults
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.engine import summarize_stage
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import Task, Trajectory, Verdict
from trajsmith.usersim import Dialogue, PlaySettings, build_scripted_user
from trajsmith.usersim.naive_agent import NaiveAgent
from trajsmith.verify import verify_trajectory

CONFIG = Path(__file__).parents[1] / "configs" / "variants.yaml"


@dataclass
class VariantRow:
    """Result of one variant."""

    dropped: Counter[str] = field(default_factory=Counter)
    derived: int = 0
    right: int = 0
    """Plays of the scripted agent that were accepted."""
    naive: int = 0
    """Plays of the naive agent that were accepted."""
    seen: list[int] = field(default_factory=list)
    """Characters of what the tools returned in a play."""


def make_run(directory: Path, count: int) -> RunDirectory:
    config = load_config(CONFIG, [f"run={directory / 'run'}", f"sample.count={count}"])
    run = RunDirectory.create(directory / "run", dump_settings(config))
    asyncio.run(run_pipeline(run, NullProgress()))
    return run


async def naive(world: RunContext, task: Task) -> Verdict:
    """The verdict on a play of the agent that does not notice."""
    place, state = world.place(task.environments[0]), world.state(task.initial_state)
    async with place.session() as session:
        agent, user = (
            NaiveAgent(task, place.wording, 0),
            build_scripted_user(task, place.spec, place.wording, state, 0),
        )
        dialogue = Dialogue(place.spec, task, state, inject_faults(session, task), agent, user, PlaySettings(), 0)
        played = await dialogue.play()
        return await verify_trajectory(task, played, state, session, world.config.verify, None, place.wording)


def shown(trajectory: Trajectory) -> int:
    return sum(len(message.content) for message in trajectory.messages if message.role == "tool")


async def rows_of(run: RunDirectory) -> dict[str, VariantRow]:
    world = await RunContext.reopen(load_config(run.config_path), run)
    rows: dict[str, VariantRow] = {}
    for task, trajectory, verdict in join_verdicts(run):
        row = rows.setdefault(task.variant, VariantRow())
        row.derived += 1
        row.right += verdict.accepted
        row.seen.append(shown(trajectory))
        if task.twist is not None:
            row.naive += (await naive(world, task)).accepted
    for reason, number in summarize_stage(run, "vary").dropped.items():
        variant, _, why = reason.partition(": ")
        rows.setdefault(variant, VariantRow()).dropped[why] += number
    return rows


def table(rows: dict[str, VariantRow]) -> Table:
    rich_table = Table(
        "variant", "tried", "made", "right", "naive", "tool results", "most often dropped for", title="variants"
    )
    for name, row in sorted(rows.items()):
        mean = sum(row.seen) / len(row.seen) if row.seen else 0
        tried, why = row.derived + row.dropped.total(), row.dropped.most_common(1)
        naively = "" if name == "base" else str(row.naive)
        reason = f"{why[0][0]} {why[0][1]}" if why else ""
        rich_table.add_row(
            name, str(tried), str(row.derived), str(row.right), naively, f"{mean:,.0f} characters", reason
        )
    variant_rows = [row for name, row in rows.items() if name != "base"]
    sums = [sum(getattr(row, name) for row in variant_rows) for name in ("derived", "right", "naive")]
    rich_table.add_section()
    rich_table.add_row(
        "all but base", str(sum(r.derived + r.dropped.total() for r in variant_rows)), *map(str, sums), "", ""
    )
    return rich_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40, help="chains of the run")
    parser.add_argument("--run", type=Path, help="a run with variants, instead of one that is made and thrown away")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = RunDirectory.open(arguments.run) if arguments.run else make_run(Path(folder), arguments.count)
        Console().print(table(asyncio.run(rows_of(run))))


if __name__ == "__main__":
    main()
