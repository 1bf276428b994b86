"""Tasks in a band of pass rates: what a model always or never does gives every episode the same reward."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals import ATTEMPTS, read_attempts, read_episodes
from trajsmith.records import InputError, Task
from trajsmith.train_grpo.settings import PassRateSettings

ALL_SOLVERS = "all"
"""In place of the name of one solver: the plays of all."""


def select_by_pass_rate(tasks: Sequence[Task], settings: PassRateSettings, run: Path) -> list[Task]:
    """Return the tasks whose measured rate is in the band, in their order.

    Args:
        tasks: Tasks of the training.
        settings: The band, and where it was measured.
        run: Run of the tasks, which has the plays of solvers.

    Raises:
        InputError: Nothing was measured there, none of these tasks was played, or no task is in the band.
    """
    if settings.evaluation is not None:
        where, rates = f"{settings.evaluation}: ", measure_rates(settings.evaluation, settings.measure)
    else:
        where, rates = f"{run}: ", measure_solver_rates(run, settings.solver or ALL_SOLVERS, settings.measure)
    known = [task for task in tasks if task.id in rates]
    if not known:
        command = (
            f"`trajsmith calibrate {run} --solver ...`"
            if settings.evaluation is None
            else "`trajsmith eval` on the same run with split: train, temperature: 1.0 and settings.samples from 4"
        )
        raise InputError(f"{where}played none of the {len(tasks)} tasks of the training: run {command}")
    chosen = [task for task in known if settings.low <= rates[task.id] <= settings.high]
    if not chosen:
        below = sum(rates[task.id] < settings.low for task in known)
        raise InputError(
            f"{where}no task has a rate from {settings.low:g} to {settings.high:g} ({below} of {len(known)} below): "
            "widen the band, set pass_rates.measure to checks, or fine-tune the model further"
        )
    return chosen


def measure_solver_rates(run: Path, solver: str, measure: str) -> dict[str, float]:
    """Return the mean of a measure over the scored plays of each task by a solver of `trajsmith calibrate`.

    Tasks that every play passed or every play failed are left out: all episodes of a group would get the same reward.

    Args:
        run: Run directory.
        solver: Name of the solver; `all` takes the plays of all.
        measure: `passed` or `checks`.

    Raises:
        InputError: The solver played nothing of the run.
    """
    attempts = read_attempts(run / ATTEMPTS)
    names = list(dict.fromkeys(attempt.solver for attempt in attempts))
    plays = [one for one in attempts if solver in (ALL_SOLVERS, one.solver) and one.passed is not None]
    if not plays:
        there = f"; there are: {', '.join(names)}" if names else ""
        raise InputError(f"{run}: no plays of solver {solver}{there}: run `trajsmith calibrate {run} --solver ...`")
    passed, values = defaultdict[str, set[bool]](set), defaultdict[str, list[float]](list)
    for play in plays:
        passed[play.task_id].add(bool(play.passed))
        values[play.task_id].append(float(bool(play.passed)) if measure == "passed" else play.checks)
    return {task: sum(rates) / len(rates) for task, rates in values.items() if len(passed[task]) > 1}


def measure_rates(folder: Path, measure: str) -> dict[str, float]:
    """Return the mean of a measure over the scored episodes of each task.

    Args:
        folder: Results of `trajsmith eval`.
        measure: `passed` or `checks`.

    Raises:
        InputError: There are none.
    """
    file = folder / "episodes.jsonl"
    if not file.is_file():
        raise InputError(f"{folder} has no episodes.jsonl: write it with `trajsmith eval`, or leave pass_rates out")
    values = defaultdict[str, list[float]](list)
    for episode in read_episodes(file):
        if episode.passed is not None:
            values[episode.task_id].append(float(episode.passed) if measure == "passed" else episode.checks)
    return {task: sum(rates) / len(rates) for task, rates in values.items()}
