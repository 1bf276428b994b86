"""`trajsmith calibrate`: solvers play the tasks of a run, and their plays say how hard each task is."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from trajsmith.evals import (
    ATTEMPTS,
    AmbiguousTask,
    ModelSolver,
    ScriptedSolver,
    Solver,
    TaskDifficulty,
    attempt_task,
    find_ambiguous_tasks,
    measure_difficulty,
    read_attempts,
)
from trajsmith.evals.evaluate import await_all
from trajsmith.models import BudgetSettings, ModelSettings, RoleSettings, RolesSettings, read_checkpoint_info
from trajsmith.models.registry import ModelRegistry
from trajsmith.pipeline.config import RunConfig, load_config
from trajsmith.pipeline.eval_contexts import open_eval_contexts, split_tasks
from trajsmith.pipeline.evaluation import SAMPLING, open_local_model
from trajsmith.pipeline.progress import NullProgress, RunProgress, StageBar
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import (
    AppendFile,
    FrozenModel,
    InputError,
    JsonObject,
    RunError,
    SolverAttempt,
    Task,
    content_hash,
)
from trajsmith.usersim import FaultSettings
from trajsmith.verify import count_criteria_by_outcome

FOLDER = "calibration"
"""Folder of a run in which models of solvers keep their replies and costs."""


class CalibrationSettings(FrozenModel):
    """Solvers of a calibration, and their plays."""

    solvers: tuple[str, ...]
    """Each `scripted`, `scripted:RATE`, `MODEL@URL`, a name among the run's `models`, or the folder of a model."""
    runs: int = 5
    """Plays per task and solver (Agent-World 3.1.1: five)."""
    limit: int | None = None
    """At most so many tasks of each environment."""
    concurrency: int = 8
    """Plays at a time."""
    temperature: float = 1.0
    """Of models."""
    max_tokens: int = 512
    """Of one message of a model."""


@dataclass
class CalibrationReport:
    """Difficulty of the tasks of a run, and ambiguous ones among them."""

    tasks: int
    difficulties: dict[str, TaskDifficulty]
    ambiguous: list[AmbiguousTask]
    solvers: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Solver to its plays that passed, that were scored, and that say nothing."""
    not_started: dict[str, str] = field(default_factory=dict)
    """Solver to the reason why it could not play."""
    criteria: Counter[str] = field(default_factory=Counter)
    """Criteria of all rubrics that were decided in two plays or more: those that tell plays apart ("discriminating"),
    and those that all plays of their task meet, or none does."""


@dataclass(frozen=True)
class _OpenedSolver:
    solver: Solver
    registry: ModelRegistry | None = None


async def calibrate_run(
    run: RunDirectory, settings: CalibrationSettings, progress: RunProgress | None = None
) -> CalibrationReport:
    """Play what is missing and report on all plays of the run.

    Every finished play is a line of `attempts.jsonl`; a stopped calibration goes on with the same call.

    Raises:
        InputError: The run has no tasks, or a solver is written wrongly.
        RunError: No solver starts, or the plays cannot be written.
    """
    config = load_config(run.config_path)
    tasks = list(split_tasks(run, "all", settings.limit))
    if not tasks:
        raise InputError(f"{run.path} has no tasks that solvers could play")
    opened, refused = await _open_solvers(settings, config, run)
    try:
        await _play(run, tasks, [one.solver for one in opened], settings, progress or NullProgress())
    finally:
        for one in opened:
            if one.registry is not None:
                await one.registry.close()
            elif isinstance(one.solver, ModelSolver):
                await one.solver.model.close()
    return build_report(run, tasks, refused)


def build_report(run: RunDirectory, tasks: Sequence[Task], refused: dict[str, str]) -> CalibrationReport:
    """Build the report on the plays that a run has.

    Args:
        run: The run.
        tasks: The tasks that the report is about.
        refused: Solvers that could not play, with the reason.
    """
    wanted = {task.id: task for task in tasks}
    attempts = [attempt for attempt in read_attempts(run.file(ATTEMPTS)) if attempt.task_id in wanted]
    report = CalibrationReport(
        len(tasks), measure_difficulty(attempts), find_ambiguous_tasks(wanted, attempts), not_started=refused
    )
    plays: dict[str, list[tuple[bool | None, ...]]] = defaultdict(list)
    for attempt in attempts:
        plays[attempt.task_id].append(attempt.criteria)
    for decided in plays.values():
        report.criteria.update(count_criteria_by_outcome(decided))
    for name in dict.fromkeys(attempt.solver for attempt in attempts):
        outcomes = [attempt.passed for attempt in attempts if attempt.solver == name]
        scored = [passed for passed in outcomes if passed is not None]
        report.solvers[name] = sum(scored), len(scored), len(outcomes) - len(scored)
    return report


async def _play(
    run: RunDirectory,
    tasks: Sequence[Task],
    solvers: Sequence[Solver],
    settings: CalibrationSettings,
    progress: RunProgress,
) -> None:
    import asyncio

    file, room = run.file(ATTEMPTS), asyncio.Semaphore(settings.concurrency)
    wanted = [(task, solver, sample) for task in tasks for solver in solvers for sample in range(settings.runs)]
    contexts = await open_eval_contexts(run)

    async def play(task: Task, solver: Solver, sample: int, out: AppendFile, bar: StageBar) -> None:
        async with room:
            attempt = await attempt_task(task, contexts[task.environments[0]], solver, sample)
        out.append(attempt.to_line())
        bar.advance(dropped=attempt.passed is None)

    try:
        with AppendFile(file, f"the same trajsmith calibrate {run.path}", lock=True) as out:
            out.cut_torn_line()
            plays = read_attempts(file, every_version=True)
            _make_newest(file, solvers, plays, out)
            done = {(one.task_id, one.solver, one.version, one.sample) for one in plays if not one.should_retry}
            missing = [one for one in wanted if (one[0].id, one[1].name, one[1].version, one[2]) not in done]
            with progress.stage("play tasks with solvers", len(wanted), len(wanted) - len(missing), 0) as bar:
                await await_all(play(*one, out, bar) for one in missing)
    finally:
        contexts.context.code_checks.close()


def _make_newest(file: Path, solvers: Sequence[Solver], plays: Sequence[SolverAttempt], out: AppendFile) -> None:
    """Write a play of each solver again whose version has plays but was not the last one that played."""
    newest = {one.solver: one.version for one in read_attempts(file)}
    for solver in solvers:
        own = [one for one in plays if (one.solver, one.version) == (solver.name, solver.version)]
        if own and newest[solver.name] != solver.version:
            out.append(own[-1].to_line())


async def _open_solvers(
    settings: CalibrationSettings, config: RunConfig, run: RunDirectory
) -> tuple[list[_OpenedSolver], dict[str, str]]:
    """Open the solvers; those that do not start are named with the reason.

    Raises:
        RunError: None starts.
    """
    opened, refused = list[_OpenedSolver](), dict[str, str]()
    for text in dict.fromkeys(settings.solvers):
        try:
            opened.append(await _open_solver(text, settings, config, run))
        except (InputError, RunError) as error:
            refused[text] = str(error)
    if not opened:
        raise RunError("no solver starts: " + "; ".join(f"{name}: {reason}" for name, reason in refused.items()))
    return opened, refused


async def _open_solver(text: str, settings: CalibrationSettings, config: RunConfig, run: RunDirectory) -> _OpenedSolver:
    kind, sign, rest = text.partition(":")
    if kind == "scripted":
        return _OpenedSolver(build_scripted_solver(text, _parse_rate(text, rest) if sign else 0.0))
    sampling = RoleSettings(temperature=settings.temperature, max_tokens=settings.max_tokens)
    name, sign, url = text.rpartition("@")
    served = ModelSettings(model=name, base_url=url) if sign and "://" in url else config.models.get(text)
    if served is not None:
        folder = run.file(FOLDER) / content_hash(text, 8)
        folder.mkdir(parents=True, exist_ok=True)
        roles = RolesSettings(agent=sampling.model_copy(update={"model": text}))
        registry = ModelRegistry({text: served}, roles, BudgetSettings(), folder, "the same trajsmith calibrate")
        try:
            await registry.run_preflight(["agent"])
        except BaseException:
            await registry.close()
            raise
        described = served.model_dump(mode="json", include=SAMPLING) | sampling.model_dump(mode="json")
        solver = ModelSolver(text, _hash_version(described), registry.require_role_model("agent"))
        return _OpenedSolver(solver, registry)
    folder = Path(text)
    if not folder.is_dir():
        raise InputError(
            f"{text} is no solver: write scripted, scripted:0.1, MODEL@URL, a name among the run's models, or the "
            "folder of a model"
        )
    shown = read_checkpoint_info(text).tools
    described = {"files": _hash_files(folder), **sampling.model_dump(mode="json"), "tools": shown}
    model = open_local_model(text, settings.max_tokens, settings.temperature, settings.concurrency)
    return _OpenedSolver(ModelSolver(text, _hash_version(described), model, past_reasoning=True))


def build_scripted_solver(name: str, rate: float) -> ScriptedSolver:
    """Return the scripted agent that makes a mistake at each gold call with probability `rate`."""
    faults = FaultSettings()
    try:
        package = version("trajsmith")
    except PackageNotFoundError:  # a checkout that was never installed
        package = ""
    described = {"package": package, "rate": rate, "faults": faults.model_dump()}
    return ScriptedSolver(name, _hash_version(described), rate, faults)


def _parse_rate(text: str, rate: str) -> float:
    try:
        value = float(rate)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{text}: write the rate of mistakes as a number from 0 to 1, for example scripted:0.1")
    return value


def _hash_version(described: JsonObject) -> str:
    return content_hash(described, 12)


def _hash_files(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(file.name.encode())
        with file.open("rb") as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()[:16]
