"""The line, end to end: graph, chains, grounding, tasks, dialogues, verdicts, dataset and report. Design section 5."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from export import DatasetWriter, build_card, build_report, to_row
from trajectory import Dropped, InputError, StageSummary, Summary
from trajsmith.config import RunConfig, load_config
from trajsmith.engine import run_stage, stage_summary
from trajsmith.joined import Played, judged
from trajsmith.journal import count
from trajsmith.progress import NullProgress, Progress
from trajsmith.rundir import RunDirectory
from trajsmith.stages import CHAINS, GROUNDED, ORDER, TASKS, TRAJECTORIES, VERDICTS, ChainPlan, make_stages
from trajsmith.world import World

FILES = {"sampled": CHAINS, "grounded": GROUNDED, "written": TASKS, "played": TRAJECTORIES, "verified": VERDICTS}


async def run_line(run: RunDirectory, progress: Progress | None = None, stages: Sequence[str] = ORDER) -> Summary:
    """Run what is not done yet; safe to call again at any time.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    config = load_config(run.config_path)
    with run.lock():
        world = await World.open(config, run)
        made = make_stages(world)
        for name in stages:
            inputs: Iterable[tuple[str, Any]] | None = None
            if name == "sample":
                inputs = ChainPlan(world)
            elif name == "verify":
                inputs = Played(run)
            await run_stage(made[name], run, inputs, config.engine.concurrency, progress)
        return export_run(run, world, progress or NullProgress())


def export_run(run: RunDirectory, world: World, progress: Progress) -> Summary:
    """Write dataset, card, report and summary from what the run holds, in one pass over the records."""
    config, start = world.config, time.monotonic()
    specs = [place.spec for _, place in sorted(world.places.items())]
    tally = Tally(run, config, world)
    with DatasetWriter(run.file("dataset"), config.export.rows_per_shard) as dataset:
        with progress.stage("export dataset", count(run.file(VERDICTS)), 0, 0) as bar:
            for task, trajectory, verdict in judged(run):
                accepted = verdict.accepted
                if accepted:
                    try:
                        dataset.write(to_row(task, trajectory, verdict, world.places[trajectory.environment].spec))
                        tally.exported += 1
                    except Dropped as drop:
                        tally.refused[drop.reason] += 1
                tally.add(
                    trajectory.environment,
                    verdict.accepted,
                    verdict.reasons,
                    len(trajectory.turns),
                    [e.tool for e in trajectory.events],
                )
                bar.advance(dropped=not accepted)
        summary = tally.summary(time.monotonic() - start)
        statistics = build_report(summary, specs, judged(run), run.file("report.html"), gallery=config.export.gallery)
        dataset.attach("README.md", build_card(summary, specs, statistics, license=config.export.license))
    run.write_json("summary.json", summary.model_dump(mode="json"))
    return summary


class Tally:
    """Counts for the summary, filled while the records stream by."""

    def __init__(self, run: RunDirectory, config: RunConfig, world: World) -> None:
        self.run = run
        self.config = config
        self.exported = 0
        self.refused: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.environments: Counter[str] = Counter(dict.fromkeys(world.places, 0))
        self.coverage = {
            name: Counter({tool.name: 0 for tool in place.spec.tools}) for name, place in world.places.items()
        }
        self.accepted = self.turns = self.calls = 0

    def add(self, environment: str, accepted: bool, reasons: Sequence[str], turns: int, tools: Iterable[str]) -> None:
        if not accepted:
            self.rejected.update(reasons)
            return
        self.accepted += 1
        self.environments[environment] += 1
        self.turns += turns
        for tool in tools:
            self.calls += 1
            self.coverage[environment][tool] += 1

    def summary(self, seconds: float) -> Summary:
        funnel = {
            name: count(self.run.file(file)) if self.run.file(file).is_file() else 0 for name, file in FILES.items()
        }
        funnel |= {"accepted": self.accepted, "exported": self.exported}
        stages = [stage_summary(self.run, name) for name in ORDER]
        stages.append(
            StageSummary(
                name="export",
                read=self.accepted,
                written=self.exported,
                dropped=dict(self.refused),
                seconds=round(seconds, 3),
            )
        )
        return Summary(
            name=self.config.name,
            seed=self.config.seed,
            language="scripted",
            stages=tuple(stages),
            funnel=funnel,
            rejected=dict(self.rejected.most_common()),
            environments=dict(sorted(self.environments.items())),
            coverage={name: dict(counts) for name, counts in sorted(self.coverage.items())},
            mean_turns=round(self.turns / self.accepted, 3) if self.accepted else 0.0,
            mean_calls_per_turn=round(self.calls / self.turns, 3) if self.turns else 0.0,
            wall_seconds=round(sum(stage.seconds for stage in stages), 3),
        )


async def export_only(run: RunDirectory, progress: Progress) -> Summary:
    """Write the dataset and the report again from the records of a run."""
    if not run.file(VERDICTS).is_file():
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    with run.lock():
        return export_run(run, await World.open(load_config(run.config_path), run), progress)
