"""Tasks in a band of pass rates: what a model always or never does gives every episode the same reward."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals import read_episodes
from trajsmith.records import InputError, Task
from trajsmith.train_grpo.settings import PassRateSettings


def select_by_pass_rate(tasks: Sequence[Task], settings: PassRateSettings) -> list[Task]:
    """Return the tasks whose measured rate is in the band, in their order.

    Args:
        tasks: Tasks of the training.
        settings: The band, and where it was measured.

    Raises:
        InputError: There is no evaluation there, it played none of these tasks, or no task is in the band.
    """
    rates = measure_rates(settings.evaluation, settings.measure)
    known = [task for task in tasks if task.id in rates]
    where = f"{settings.evaluation}: "
    if not known:
        raise InputError(
            f"{where}played none of the {len(tasks)} tasks of the training: run `trajsmith eval` on the same run with "
            "split: train, temperature: 1.0 and settings.samples of 4 or more"
        )
    chosen = [task for task in known if settings.low <= rates[task.id] <= settings.high]
    if not chosen:
        below = sum(rates[task.id] < settings.low for task in known)
        raise InputError(
            f"{where}no task has a rate from {settings.low:g} to {settings.high:g} ({below} of {len(known)} below): "
            "widen the band, set pass_rates.measure to checks, or fine-tune the model further"
        )
    return chosen


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
