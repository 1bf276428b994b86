"""How good the checks are, what verifying costs, and what pruning finds, on all bundled environments.

    .venv/bin/python benchmarks/verification.py                      # about a minute
    .venv/bin/python benchmarks/verification.py --count 200          # the tables of docs/verification.md
    .venv/bin/python benchmarks/verification.py --run runs/quickstart

Without `--run` a run is made and thrown away. CPU is that of this process.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from _injection import injected
from rich.console import Console
from rich.table import Table

from trajsmith.cli.tasks_audit import build_audit_tables
from trajsmith.pipeline.check_audit import audit_run
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import Task, Trajectory, derive_seed
from trajsmith.verify import prune_trajectory, replay_trajectory, verify_trajectory

CONFIG = Path(__file__).parents[1] / "configs" / "quickstart.yaml"
STATE_KINDS = ("argument", "doubled", "extra", "swapped", "undone")
"""Kinds of mutants whose final state is wrong, or whose reads are; answers are judged apart."""


@dataclass
class Pruning:
    """Counts of calls that were put in."""

    trajectories: int = 0
    injected: int = 0
    removed: int = 0
    necessary: int = 0
    """Calls that were there before and are gone."""
    broken: int = 0
    """Pruned trajectories that do not replay."""
    rejected: list[str] = field(default_factory=list)


def make_run(directory: Path, count: int, seed: int) -> RunDirectory:
    """Make a run on all bundled environments in which no task was left out because its checks were weak."""
    overrides = [f"run={directory / 'run'}", f"sample.count={count}", f"seed={seed}"]
    overrides += ["write.audit.mutants=0", "write.audit.equivalents=0"]
    run = RunDirectory.create(directory / "run", dump_settings(load_config(CONFIG, overrides)))
    asyncio.run(run_pipeline(run))
    return run


async def verifying(run: RunDirectory) -> Table:
    """CPU of verifying, by length of the trajectory."""
    world = await RunContext.reopen(load_config(run.config_path), run)
    spent: dict[str, list[tuple[int, float]]] = {}
    for task, trajectory, _ in join_verdicts(run):
        async with world.places[trajectory.environment].session() as session:
            start = time.process_time()
            await verify_trajectory(task, trajectory, world.state(task.initial_state), session, world.config.verify)
            calls = len(trajectory.events)
            group = "up to 7 calls" if calls < 8 else "8 to 15 calls" if calls < 16 else "16 calls and more"
            spent.setdefault(group, []).append((calls, 1000 * (time.process_time() - start)))
    table = Table("trajectories", "number", "mean calls", "CPU ms each", "CPU ms per 16 calls", title="verifying")
    for group, rows in sorted(spent.items(), key=lambda item: item[1][0][0]):
        calls, milliseconds = (sum(column) / len(rows) for column in zip(*rows, strict=True))
        table.add_row(group, str(len(rows)), f"{calls:.1f}", f"{milliseconds:.1f}", f"{16 * milliseconds / calls:.1f}")
    return table


async def pruning(run: RunDirectory, each: int, seed: int) -> Table:
    """Inject calls, prune, count."""
    world = await RunContext.reopen(load_config(run.config_path), run)
    by_kind: dict[str, Pruning] = {}
    for task, trajectory, verdict in join_verdicts(run):
        if verdict.accepted:
            await _prune_one(world, task, trajectory, each, seed, by_kind.setdefault(trajectory.environment, Pruning()))
    table = Table(
        "environment", "trajectories", "injected", "removed", "share", "necessary removed", "do not replay",
        title="pruning",
    )  # fmt: skip
    rows = [*sorted(by_kind.items()), ("all", _sum(list(by_kind.values())))]
    for name, one in rows:
        share = f"{100 * one.removed / max(1, one.injected):.1f} %"
        figures = (one.trajectories, one.injected, one.removed, share, one.necessary, one.broken)
        table.add_row(name, *map(str, figures))
    return table


async def _prune_one(
    world: RunContext, task: Task, trajectory: Trajectory, each: int, seed: int, counts: Pruning
) -> None:
    state = world.state(task.initial_state)
    async with world.places[trajectory.environment].session() as session:
        rng = random.Random(derive_seed(seed, trajectory.id))
        longer, calls = await injected(trajectory, state, session, each, rng)
        verdict = await verify_trajectory(task, longer, state, session, world.config.verify)
        if not verdict.accepted:
            counts.rejected.append(trajectory.id)
            return
        shorter = prune_trajectory(longer, verdict.pruned)
        before, after = (Counter(_key(event.tool, event.arguments) for event in one.events)
                         for one in (trajectory, shorter))  # fmt: skip
        counts.trajectories += 1
        counts.injected += len(calls)
        counts.necessary += (before - after).total()
        counts.removed += len(calls) - (after - before).total()
        counts.broken += bool((await replay_trajectory(shorter, state, session)).mismatches)


def _key(tool: str, arguments: object) -> str:
    return f"{tool} {arguments!r}"


def _sum(parts: list[Pruning]) -> Pruning:
    total = Pruning()
    for part in parts:
        total.trajectories += part.trajectories
        total.injected += part.injected
        total.removed += part.removed
        total.necessary += part.necessary
        total.broken += part.broken
    return total


def measure(run: RunDirectory, options: argparse.Namespace, out: Console) -> None:
    """Print all tables of one run."""
    start = time.process_time()
    audits = asyncio.run(audit_run(run, options.mutants, None, NullProgress()))
    spent = time.process_time() - start
    for table in build_audit_tables(audits):
        out.print(table)
    tasks = sum(one.tasks for one in audits.values())
    out.print(f"auditing: {1000 * spent / max(1, tasks):.0f} CPU ms per task with {options.mutants} mutants")
    mutants = sum(one.mutants[kind] for one in audits.values() for kind in STATE_KINDS)
    caught = sum(one.caught[kind] for one in audits.values() for kind in STATE_KINDS)
    out.print(f"wrong runs of kinds that change the state accepted: {mutants - caught} of {mutants}")
    for one in audits.values():
        for title, entries in (("escaped", one.escaped), ("weak", one.weak), ("not tested", one.undecided)):
            for name, reason in entries:
                out.print(f"{title}: {name}: {reason}", markup=False, soft_wrap=True)
    out.print(asyncio.run(verifying(run)))
    out.print(asyncio.run(pruning(run, options.inject, options.seed)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=80, help="chains of the run that is made (80)")
    parser.add_argument("--run", type=Path, help="a run that is there, in place of one that is made")
    parser.add_argument("--mutants", type=int, default=40, help="wrong runs per task (40)")
    parser.add_argument("--inject", type=int, default=3, help="calls put into each trajectory (3)")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    out = Console(width=max(Console().width, 110))
    if options.run:
        measure(RunDirectory.open(options.run), options, out)
        return
    with tempfile.TemporaryDirectory(prefix="trajsmith-bench-") as directory:
        measure(make_run(Path(directory), options.count, options.seed), options, out)


if __name__ == "__main__":
    main()
