"""The line, end to end: graph, chains, grounding, tasks, dialogues, verdicts, dataset and report. Design section 5."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from export import DatasetWriter, build_card, build_report, to_row
from trajectory import Dropped, InputError, RunError, StageSummary, Summary, Trajectory, Verdict, canonical_json
from trajsmith.choosing import SELECTION, Choice
from trajsmith.config import RunConfig, load_config
from trajsmith.engine import run_stage, stage_summary
from trajsmith.importing import IMPORT_ORDER, OUTSIDE, imported_files, run_imports
from trajsmith.joined import Played, judged
from trajsmith.journal import count
from trajsmith.progress import NullProgress, Progress
from trajsmith.rounds import Round, load_rounds, next_round, save_rounds
from trajsmith.rundir import RunDirectory, storage_boundary
from trajsmith.stages import CHAINS, GROUNDED, TASKS, TRAJECTORIES, VERDICTS, ChainPlan, make_stages, order
from trajsmith.varying import VaryPlan
from trajsmith.world import World

IMPORT_FILES = {"read": OUTSIDE, "written": TASKS, "played": TRAJECTORIES, "verified": VERDICTS}
FILES = {"sampled": CHAINS, "grounded": GROUNDED, "written": TASKS, "played": TRAJECTORIES, "verified": VERDICTS}


async def run_line(run: RunDirectory, progress: Progress | None = None) -> Summary:
    """Run what is not done yet, then export; safe to call again at any time.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    if imported_files(run):
        return await import_line(run, progress)
    with run.lock():
        world = await World.open(load_config(run.config_path), run)
        choice = await _run_rounds(run, world, progress)
        return export_run(run, world, progress or NullProgress(), choice)


async def _run_rounds(run: RunDirectory, world: World, progress: Progress | None) -> Choice:
    """Run the line once, or, where a number of rows is asked for, until they are there.

    Raises:
        RunError: The budget is spent and something is still missing.
    """
    choice, rounds = Choice(run, world), load_rounds(run, world.config)
    while True:
        if choice.quotas:
            save_rounds(run, rounds)
        await _run_stages(run, world, order(world.config), progress, rounds)
        if choice.quotas is None:
            return choice
        choice.catch_up()
        if not choice.quotas.missing():
            return choice
        try:
            rounds = (*rounds, next_round(run, world.config, rounds, choice))
        except RunError:
            run.write_json("summary.json", _tallied(run, world).model_dump(mode="json"))
            raise


async def import_line(run: RunDirectory, progress: Progress | None = None) -> Summary:
    """Make the calls of imported dialogues again and judge them; what was done is not done twice. Exports nothing.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    with run.lock():
        world = await World.open(load_config(run.config_path), run)
        await run_imports(run, world, progress)
        await _run_stages(run, world, ("verify",), progress)
        summary = _tallied(run, world)
        run.write_json("summary.json", summary.model_dump(mode="json"))
        return summary


async def run_one_stage(run: RunDirectory, name: str, progress: Progress | None = None) -> Summary:
    """Run one stage and export nothing; the stages before it must have run.

    Raises:
        InputError: The records that the stage reads are not there.
        RunError: The run cannot go on; what was committed stays.
    """
    with run.lock():
        world = await World.open(load_config(run.config_path), run)
        await _run_stages(run, world, (name,), progress, load_rounds(run, world.config))
    return _tallied(run, world)


def _tallied(run: RunDirectory, world: World) -> Summary:
    tally = Tally(run, world.config, world)
    for _, trajectory, verdict in judged(run):
        tally.add(trajectory, verdict)
    return tally.summary()


async def _run_stages(
    run: RunDirectory, world: World, names: Sequence[str], progress: Progress | None, rounds: Sequence[Round] = ()
) -> None:
    made = make_stages(world)
    for name in names:
        inputs: Iterable[tuple[str, Any]] | None = None
        if name == "sample":
            inputs = ChainPlan(world, rounds)
        elif name == "vary":
            inputs = VaryPlan(world, rounds)
        elif name == "verify":
            inputs = Played(run)
        await run_stage(made[name], run, inputs, world.config.engine.concurrency, progress)


def export_run(run: RunDirectory, world: World, progress: Progress, choice: Choice | None = None) -> Summary:
    """Write dataset, card, report and summary from what the run holds, in one pass over the records.

    Args:
        choice: What goes into the dataset, from a caller that has it.

    Raises:
        RunError: The disk is full or broken, or no trajectory was accepted.
    """
    config, start = world.config, time.monotonic()
    specs = [place.spec for _, place in sorted(world.places.items())]
    choice = choice or Choice(run, world)
    if choice.active:
        choice.catch_up()
        if choice.quotas and choice.quotas.missing():
            raise RunError(f"not all rows that were asked for are there yet: go on with `trajsmith resume {run.path}`")
        run.write_text(SELECTION, "".join(f"{canonical_json(row).decode()}\n" for row in choice.rows()))
    tally = Tally(run, config, world)
    target = run.file("dataset")
    with storage_boundary(target, run.path), DatasetWriter(target, config.export.rows_per_shard) as dataset:
        with progress.stage("export dataset", count(run.file(VERDICTS)), 0, 0) as bar:
            for task, trajectory, verdict in choice.judged():
                accepted = verdict.accepted
                if accepted:
                    try:
                        dataset.write(to_row(task, trajectory, verdict, world.places[trajectory.environment].spec))
                        tally.exported += 1
                    except Dropped as drop:
                        tally.refused[drop.reason] += 1
                tally.add(trajectory, verdict)
                bar.advance(dropped=not accepted)
        summary = tally.summary(time.monotonic() - start, choice)
        statistics = build_report(
            summary, specs, choice.judged(), run.file("report.html"), gallery=config.export.gallery
        )
        run.write_json("summary.json", summary.model_dump(mode="json"))
        if not dataset.rows:
            raise RunError(f"no trajectory was accepted ({main_reason(summary)}); see {run.file('report.html')}")
        card = build_card(summary, specs, statistics, license=config.export.license)
        dataset.attach("README.md", card + choice.card())
    return summary


def main_reason(summary: Summary) -> str:
    """Why most records were lost, for a run that came to nothing."""
    reasons = Counter({f"rejected: {reason}": number for reason, number in summary.rejected.items()})
    for stage in summary.stages:
        reasons.update({f"{stage.name}: {reason}": number for reason, number in stage.dropped.items()})
    return ", ".join(f"{reason}: {number}" for reason, number in reasons.most_common(2)) or "no chains"


class Tally:
    """Counts for the summary, filled while the records stream by."""

    def __init__(self, run: RunDirectory, config: RunConfig, world: World) -> None:
        self.run = run
        self.config = config
        self.isolation = {name: place.source.isolation for name, place in sorted(world.places.items())}
        self.exported = 0
        self.refused: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.environments: Counter[str] = Counter(dict.fromkeys(world.places, 0))
        self.coverage = {
            name: Counter({tool.name: 0 for tool in place.spec.tools}) for name, place in world.places.items()
        }
        self.accepted = self.turns = self.calls = 0

    def add(self, trajectory: Trajectory, verdict: Verdict) -> None:
        if not verdict.accepted:
            self.rejected.update(verdict.reasons)
            return
        self.accepted += 1
        self.environments[trajectory.environment] += 1
        self.turns += len(trajectory.turns)
        for event in trajectory.events:
            self.calls += 1
            self.coverage[trajectory.environment][event.tool] += 1

    def summary(self, export_seconds: float | None = None, choice: Choice | None = None) -> Summary:
        """What was counted; with a line for the export only where there was one."""
        imported = bool(imported_files(self.run))
        files = IMPORT_FILES if imported else FILES
        funnel = {
            name: count(self.run.file(file)) if self.run.file(file).is_file() else 0 for name, file in files.items()
        }
        funnel |= {"accepted": self.accepted, "exported": self.exported}
        stages = [
            stage_summary(self.run, name) for name in ((*IMPORT_ORDER, "verify") if imported else order(self.config))
        ]
        if choice is not None and choice.active:
            stages.append(choice.stage())
        if export_seconds is not None:
            stages.append(
                StageSummary(
                    name="export",
                    read=self.accepted,
                    written=self.exported,
                    dropped=dict(self.refused),
                    seconds=round(export_seconds, 3),
                )
            )
        return Summary(
            name=self.config.name,
            seed=self.config.seed,
            language="imported" if imported else "scripted",
            stages=tuple(stages),
            funnel=funnel,
            rejected=dict(self.rejected.most_common()),
            environments=dict(sorted(self.environments.items())),
            isolation=self.isolation,
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
