"""What a round of training changed: weak groups and all other tasks, before, after, and in the control arm."""

from collections.abc import Mapping, Sequence
from math import sqrt

from trajsmith.evals.observations import EpisodeObservation
from trajsmith.records import FrozenModel
from trajsmith.toolgraph import PlanTarget

WEAK, OTHERS, ALL = "weak groups", "other tasks", "all tasks"
Z = 1.96
"""Standard deviations of a 95 % interval."""


class Change(FrozenModel):
    """Difference of two pass rates on the same tasks."""

    mean: float
    low: float
    high: float
    """95 % interval of the difference of paired shares (Bonett and Price 2012), which has a width also if all agree."""


class GroupChange(FrozenModel):
    """One group of tasks in a round; all models played the same tasks, which no model was trained or diagnosed on."""

    name: str
    dimension: str = ""
    """Empty for weak groups, others and all together."""
    tasks: int
    before: float
    after: float
    """Shares of the tasks that passed, with the models before and after the targeted training."""
    gain: Change
    control: float | None = None
    """Share that passed after training on as many rows that were drawn without the plan."""
    advantage: Change | None = None
    """Targeted minus control."""


def compare_round(
    before: Sequence[EpisodeObservation],
    after: Sequence[EpisodeObservation],
    control: Sequence[EpisodeObservation] | None,
    targets: Sequence[PlanTarget],
) -> list[GroupChange]:
    """Compare the models of a round on the tasks that all of them were scored on.

    Args:
        before: Episodes of the model that the round began with.
        after: Episodes of the model trained on targeted rows.
        control: Episodes of the control arm; None without one.
        targets: Groups that the rows were made for.

    Returns:
        Weak groups together, the other tasks, all tasks, then every target; groups without a task have zero tasks.
    """
    arms = [_list_outcomes(one) for one in (before, after, control) if one is not None]
    groups = {one.task: {(kind, name) for kind, names in one.groups.items() for name in names} for one in after}
    tasks = sorted(set.intersection(*(set(arm) for arm in arms)))
    labels = [(target.dimension, target.name) for target in targets]
    weak = [task for task in tasks if groups[task].intersection(labels)]
    members: list[tuple[str, str, Sequence[str]]] = [
        ("", WEAK, weak),
        ("", OTHERS, sorted(set(tasks) - set(weak))),
        ("", ALL, tasks),
        *((*label, [task for task in tasks if label in groups[task]]) for label in labels),
    ]
    return [_compare_group(dimension, name, some, arms) for dimension, name, some in members]


def _list_outcomes(observations: Sequence[EpisodeObservation]) -> dict[str, float]:
    """Return the first scored outcome of each task."""
    outcomes: dict[str, float] = {}
    for one in observations:
        if one.passed is not None:
            outcomes.setdefault(one.task, float(one.passed))
    return outcomes


def _compare_group(dimension: str, name: str, tasks: Sequence[str], arms: Sequence[Mapping[str, float]]) -> GroupChange:
    before, after = arms[:2]
    control = arms[2] if len(arms) > 2 else None
    return GroupChange(
        name=name,
        dimension=dimension,
        tasks=len(tasks),
        before=_mean([before[task] for task in tasks]),
        after=_mean([after[task] for task in tasks]),
        gain=compute_change([after[task] - before[task] for task in tasks]),
        control=None if control is None else _mean([control[task] for task in tasks]),
        advantage=None if control is None else compute_change([after[task] - control[task] for task in tasks]),
    )


def compute_change(differences: Sequence[float]) -> Change:
    """Return the mean of paired differences of passing, each 1, 0 or -1, with its interval."""
    total = len(differences)
    better, worse = (sum(one == sign for one in differences) for sign in (1.0, -1.0))
    up, down = (better + 1) / (total + 2), (worse + 1) / (total + 2)
    half = Z * sqrt((up + down - (up - down) ** 2) / (total + 2))
    low, high = max(-1.0, up - down - half), min(1.0, up - down + half)
    return Change(mean=_mean(differences), low=round(low, 4), high=round(high, 4))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
