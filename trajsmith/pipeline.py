"""The line, end to end: graph, chains, grounding, tasks, dialogues, verdicts, dataset and report. Design section 5."""

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from chatmodel import ROLES, SCRIPTED, Role
from chatmodel.board import check_models
from export import (
    DatasetWriter,
    FormatSettings,
    Matrix,
    Report,
    Statistics,
    build_card,
    build_plots,
    tool_coverage,
)
from trajectory import (
    EnvironmentSpec,
    InputError,
    RunError,
    Summary,
    canonical_json,
)
from trajsmith.changes import FIRST_OF_ROLE
from trajsmith.choosing import SELECTION, Choice
from trajsmith.config import RunConfig, check_files, load_config
from trajsmith.engine import run_stage
from trajsmith.importing import imported_files, run_imports
from trajsmith.joined import PlayedTasks, judged
from trajsmith.journal import count
from trajsmith.progress import NullProgress, Progress
from trajsmith.rounds import Round, load_rounds, next_round, save_rounds
from trajsmith.rundir import RunDirectory, storage_boundary
from trajsmith.settings import dump_settings
from trajsmith.stages import (
    ORDER,
    VERDICTS,
    ChainPlan,
    check_cast,
    make_stages,
    order,
)
from trajsmith.tally import Tally, main_reason
from trajsmith.varying import VaryPlan
from trajsmith.world import World

MAIN = "trl"
"""Format of the dataset in `dataset/`."""


async def run_line(run: RunDirectory, progress: Progress | None = None) -> Summary:
    """Run what is not done yet, then export; safe to call again at any time.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    if imported_files(run):
        return await import_line(run, progress)
    with run.lock():
        config = load_config(run.config_path)
        async with _opened(config, run, order(config)) as world:
            config.export.split.check(world.places)
            choice = await _run_rounds(run, world, progress)
            return export_run(run, world, progress or NullProgress(), choice)


async def _run_rounds(run: RunDirectory, world: World, progress: Progress | None) -> Choice:
    """Run the line once, or, where a number of rows is asked for, until they are there.

    Raises:
        RunError: The budget is spent and something is still missing.
    """
    _check_strata(world)
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


def _check_strata(world: World) -> None:
    """Find out before any work whether all environments that are asked for are there."""
    wanted = world.config.accept.by.get("environment", {}) if world.config.accept else {}
    for name in wanted if isinstance(wanted, dict) else ():
        if name not in world.places:
            raise InputError(f"accept.by.environment: no environment {name!r}; there are {', '.join(world.places)}")


async def import_line(run: RunDirectory, progress: Progress | None = None) -> Summary:
    """Make the calls of imported dialogues again and judge them; what was done is not done twice. Exports nothing.

    Raises:
        InputError: The configuration cannot be used as it is.
        RunError: The run cannot go on; what was committed stays.
    """
    with run.lock():
        async with _opened(load_config(run.config_path), run, ("verify",)) as world:
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
        config = load_config(run.config_path)
        if name not in order(config):
            raise InputError(f"{run.path} makes no variants: set vary.rates, for example with trajsmith resume --set")
        async with _opened(config, run, (name,)) as world:
            await _run_stages(run, world, (name,), progress, load_rounds(run, config))
    return _tallied(run, world)


def _tallied(run: RunDirectory, world: World) -> Summary:
    tally = Tally(run, world.config, world)
    for _, trajectory, verdict in judged(run):
        tally.add(trajectory, verdict)
    return tally.summary()


@asynccontextmanager
async def _opened(config: RunConfig, run: RunDirectory, stages: Sequence[str]) -> AsyncIterator[World]:
    """The world, with the models that these stages need found in order, and let go of whatever happens."""
    wanted = await check_ready(config, stages)
    world = await World.open(config, run)
    try:
        if wanted:
            await world.board.try_out(wanted)
        yield world
    finally:
        await world.close()


async def check_ready(config: RunConfig, stages: Sequence[str] = ORDER) -> list[Role]:
    """The roles that models play in these stages, after a look at whether those can be used.

    Raises:
        InputError: Key, address or name of a model is wrong, or a prompt or file, or there is nothing to spend.
    """
    check_cast(config)
    check_files(config)
    wanted = [role for role in roles_of(stages) if config.roles.of(role).model != SCRIPTED]
    config.budget.check(wanted)
    await check_models(config.models, config.roles, wanted)
    return wanted


def roles_of(stages: Sequence[str]) -> list[Role]:
    """The roles that speak in these stages; the graph is built before the first chain is drawn."""
    found = ["graph", *stages] if "sample" in stages else list(stages)
    return [role for role in ROLES if FIRST_OF_ROLE[role] in found]


async def _run_stages(
    run: RunDirectory, world: World, names: Sequence[str], progress: Progress | None, rounds: Sequence[Round] = ()
) -> None:
    made = make_stages(world)
    try:
        for name in names:
            inputs: Iterable[tuple[str, Any]] | None = None
            if name == "sample":
                await world.prepare_graph()
                inputs = ChainPlan(world, rounds)
            elif name == "vary":
                inputs = VaryPlan(world, rounds)
            elif name == "verify":
                inputs = PlayedTasks(run)
            await run_stage(made[name], run, inputs, world.config.engine.concurrency, progress)
    finally:
        world.code_checks.close()


def export_run(run: RunDirectory, world: World, progress: Progress, choice: Choice | None = None) -> Summary:
    """Write dataset, card, report and summary from what the run holds, in one pass over the records.

    Args:
        choice: What goes into the dataset, from a caller that has it.

    Raises:
        RunError: The disk is full or broken, or no trajectory was accepted.
    """
    config, start = world.config, time.monotonic()
    choice = choice or Choice(run, world)
    _choose(run, choice)
    settings = config.export
    settings.split.check(world.places)
    specs = {name: place.spec for name, place in sorted(world.places.items())}
    tally, report = Tally(run, config, world), Report(list(specs.values()), settings.gallery)
    target = run.file("dataset")
    targets = {MAIN: target} | {name: run.file(f"exports/{name}") for name in settings.formats if name != MAIN}
    matrix = Matrix(
        targets, world.state, settings.split, FormatSettings(window=settings.window), settings.rows_per_shard
    )
    with storage_boundary(target, run.path), matrix:
        with progress.stage("export dataset", count(run.file(VERDICTS)), 0, 0) as bar:
            for task, trajectory, verdict in choice.judged():
                if verdict.accepted:
                    matrix.add(task, trajectory, verdict, world.place(trajectory.environment).spec)
                tally.add(trajectory, verdict)
                report.add(task, trajectory, verdict)
                bar.advance(dropped=not verdict.accepted)
        dataset = matrix.writers[MAIN]
        tally.exported, tally.refused = dataset.rows, matrix.dropped[MAIN]
        summary = tally.summary(time.monotonic() - start, choice)
        report.write(summary, run.file("report.html"))
        run.write_json("summary.json", summary.model_dump(mode="json"))
        if not dataset.rows:
            raise RunError(f"{_nothing(summary, tally)}; see {run.file('report.html')}")
        if config.accept and dataset.rows != config.accept.count:
            refused = ", ".join(f"{reason}: {number}" for reason, number in tally.refused.items())
            raise RunError(
                f"{dataset.rows} of {config.accept.count} rows could be written ({refused}); ask for as many more with "
                f"trajsmith resume {run.path} --set accept.count=..."
            )
        _describe(dataset, config, summary, list(specs.values()), report.statistics, choice.card())
    return summary


def _nothing(summary: Summary, tally: Tally) -> str:
    """Why a dataset has no row: nothing was accepted, or nothing of it could be written."""
    if not tally.refused:
        return f"no trajectory was accepted ({main_reason(summary)})"
    reasons = ", ".join(f"{reason}: {number}" for reason, number in tally.refused.most_common(3))
    return f"none of {tally.accepted} accepted trajectories could be exported ({reasons})"


def _choose(run: RunDirectory, choice: Choice) -> None:
    """Decide what goes into the dataset, and keep what does not with its reason.

    Raises:
        RunError: Rows that were asked for are missing.
    """
    if not choice.active:
        run.file(SELECTION).unlink(missing_ok=True)
        return
    choice.catch_up()
    if choice.quotas and choice.quotas.missing():
        raise RunError(f"not all rows that were asked for are there yet: go on with `trajsmith resume {run.path}`")
    run.write_text(SELECTION, "".join(f"{canonical_json(row).decode()}\n" for row in choice.rows()))


def _describe(
    dataset: DatasetWriter,
    config: RunConfig,
    summary: Summary,
    specs: Sequence[EnvironmentSpec],
    statistics: Statistics,
    chosen: str,
) -> None:
    """Put card, pictures and configuration beside the data; `chosen` is what the card says of the choice."""
    plots = build_plots(summary, statistics, tool_coverage(summary, specs, statistics))
    for name, picture in plots.items():
        dataset.attach(name, picture)
    shared = config.model_copy(update={"run": Path("runs") / config.run.name})
    dataset.attach("config.yaml", dump_settings(shared, folders=False))
    splits, license = dataset.splits, config.export.license
    card = build_card(summary, specs, statistics, license=license, splits=splits, plots=list(plots))
    dataset.attach("README.md", card + chosen)


async def export_only(run: RunDirectory, progress: Progress) -> Summary:
    """Write the dataset and the report again from the records of a run."""
    if not run.file(VERDICTS).is_file():
        raise InputError(f"{run.path} has no verdicts yet: run `trajsmith resume {run.path}`")
    with run.lock():
        return export_run(run, await World.open(load_config(run.config_path), run), progress)
