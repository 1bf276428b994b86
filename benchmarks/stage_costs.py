"""Costs of the pipeline: CPU per accepted trajectory and stage, wall time, and peak memory over the length of a run.

    .venv/bin/python benchmarks/stage_costs.py                         # a few minutes
    .venv/bin/python benchmarks/stage_costs.py --sizes 500 2000 10000  # the whole memory curve, about half an hour

Every measurement is a process of its own, on all bundled environments, in a run directory that is thrown away.
CPU is user plus system time of that process; memory is the highest resident size that the kernel saw.
"""

import argparse
import asyncio
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
CONFIG = ROOT / "configs" / "quickstart.yaml"
EXPORT = "export"
OPEN = "start"
"""Everything before the first stage: imports, environments, initial states, the tool graph."""

Measured = dict[str, Any]


def measure(size: int, seed: int, directory: Path) -> Measured:
    """Run the pipeline in this process, stage by stage, and read the clocks and the peak memory after each."""
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.engine import run_stage
    from trajsmith.pipeline.progress import NullProgress
    from trajsmith.pipeline.record_joins import TaskCandidates
    from trajsmith.pipeline.run_context import RunContext
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.runner import export_run
    from trajsmith.pipeline.stages import ChainPlan, list_stages, make_stages
    from trajsmith.pipeline.vary_plan import VaryPlan
    from trajsmith.pipeline.yaml_settings import dump_settings

    overrides = [f"run={directory / 'run'}", f"sample.count={size}", f"seed={seed}"]
    run = RunDirectory.create(directory / "run", dump_settings(load_config(CONFIG, overrides)))
    cpu: dict[str, float] = {}
    peak: dict[str, float] = {}
    before, start = 0.0, time.monotonic()

    def lap(name: str) -> None:
        nonlocal before
        now = time.process_time()
        cpu[name], before = now - before, now
        peak[name] = peak_mib()

    async def line() -> int:
        config = load_config(run.config_path)
        world = await RunContext.open(config, run)
        await world.prepare_graph()
        lap(OPEN)
        stages = make_stages(world)
        inputs: dict[str, Any] = {"sample": ChainPlan(world), "vary": VaryPlan(world), "verify": TaskCandidates(run)}
        for name in list_stages(config):
            await run_stage(stages[name], run, inputs.get(name), config.engine.concurrency)
            lap(name)
        accepted = (await export_run(run, world, NullProgress())).funnel["accepted"]
        lap(EXPORT)
        return accepted

    with run.lock():
        accepted = asyncio.run(line())
    return {"accepted": accepted, "wall": time.monotonic() - start, "cpu": cpu, "peak": peak}


def peak_mib() -> float:
    """Highest resident size of this process so far (the kernel counts in KiB, on macOS in bytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def in_own_process(size: int, seed: int, scratch: Path | None) -> Measured:
    """Measure in a fresh process, so that neither memory nor caches carry over."""
    with tempfile.TemporaryDirectory(prefix="trajsmith-bench-", dir=scratch) as directory:
        command = [sys.executable, __file__, "--child", directory, "--count", str(size), "--seed", str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    measured: Measured = json.loads(done.stdout)
    return measured


def cpu_table(runs: list[Measured]) -> Table:
    """Median over the runs of the CPU milliseconds per accepted trajectory."""
    table = Table(
        "stage", "CPU ms per accepted", "share", title=f"{runs[0]['accepted']} trajectories, median of {len(runs)} runs"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    per_stage = {
        name: median(1000 * run["cpu"][name] / run["accepted"] for run in runs)
        for name in runs[0]["cpu"]
        if name != OPEN
    }
    total = sum(per_stage.values())
    for name, value in per_stage.items():
        table.add_row(name, f"{value:.2f}", f"{value / total:.0%}")
    table.add_section()
    table.add_row("all stages", f"{total:.2f}", "")
    table.add_row("start, once per run (ms)", f"{median(1000 * run['cpu'][OPEN] for run in runs):.0f}", "")
    table.add_row("wall time of the run (s)", f"{median(run['wall'] for run in runs):.1f}", "")
    return table


def memory_table(measurements: Iterable[tuple[int, Measured]]) -> Table:
    """Peak memory after each stage, for runs of several lengths. A line that streams has equal rows."""
    rows = list(measurements)
    stages = list(rows[0][1]["peak"])
    table = Table("chains", "accepted", *stages, "wall s", "ms CPU each", title="peak RSS in MiB, up to each stage")
    for column in table.columns:
        column.justify = "right"
    for size, run in rows:
        cpu = 1000 * sum(run["cpu"].values()) / run["accepted"]
        peaks = [f"{run['peak'][stage]:.0f}" for stage in stages]
        table.add_row(f"{size:,}", f"{run['accepted']:,}", *peaks, f"{run['wall']:.0f}", f"{cpu:.1f}")
    if len(rows) > 1:
        (small, first), (large, last) = rows[0], rows[-1]
        grown = max(last["peak"].values()) - max(first["peak"].values())
        table.caption = f"{grown:+.0f} MiB for {large - small:,} more: {1024 * grown / (large - small):+.2f} KiB each"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="chains of the CPU measurement (200)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of the CPU measurement; the median counts (3)")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[100, 400, 1000], help="run lengths of the memory curve"
    )
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--scratch", type=Path, help="where the runs are written (the system's temporary directory)")
    parser.add_argument("--json", type=Path, help="also write the raw figures to this file")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options.count, options.seed, options.child)))
        return
    out = Console(width=max(Console().width, 110))
    out.print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, seed {options.seed}")
    runs = [in_own_process(options.count, options.seed, options.scratch) for _ in range(options.repeat)]
    if runs:
        out.print(cpu_table(runs))
    curve = [(size, in_own_process(size, options.seed, options.scratch)) for size in sorted(options.sizes)]
    if curve:
        out.print(memory_table(curve))
    if options.json:
        options.json.write_text(json.dumps({"cpu": runs, "memory": curve}, indent=2), "utf-8")


if __name__ == "__main__":
    main()
