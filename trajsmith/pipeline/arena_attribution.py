"""Rows and outcomes of the rounds of an arena, for the attribution of gains to rows."""

from collections.abc import Sequence
from pathlib import Path

from trajsmith.evals import Attribution, EpisodeObservation, RoundRows, attribute_gains, count_shares, list_groups
from trajsmith.pipeline.dataset_selection import iter_accepted
from trajsmith.pipeline.diagnosis import load_observations
from trajsmith.pipeline.run_directory import RunDirectory

KINDS = ("source", "environment", "skill", "variant", "tool")
"""Dimensions of training rows."""
GROUPS = ("environment", "skill", "variant", "tool")
"""Dimensions of evaluated tasks."""


def attribute_rounds(out: Path, rounds: Sequence[int]) -> Attribution:
    """Return what the finished rounds of an arena with a control arm say of its rows.

    Raises:
        InputError: A round's rows or episodes cannot be read.
    """
    return attribute_gains([load_round(out / f"round-{number}", number) for number in rounds])


def load_round(folder: Path, number: int) -> RoundRows:
    """Read the rows of both arms of a round, and how both models did on its tasks."""
    arms = [load_observations(folder / name / "episodes") for name in ("evaluation", "evaluation-control")]
    targeted, control = (_take_first(arm) for arm in arms)
    outcomes = [
        (
            frozenset((kind, name) for kind in GROUPS for name in one.groups.get(kind, ())),
            float(one.passed is True) - float(control[task].passed is True),
        )
        for task, one in sorted(targeted.items())
        if task in control
    ]
    return RoundRows(
        number=number,
        targeted=_count_rows(folder / "synthesis" / "run"),
        control=_count_rows(folder / "control-synthesis" / "run"),
        outcomes=tuple(outcomes),
    )


def _take_first(observations: Sequence[EpisodeObservation]) -> dict[str, EpisodeObservation]:
    """Return the first scored episode of each task."""
    first: dict[str, EpisodeObservation] = {}
    for one in observations:
        if one.passed is not None:
            first.setdefault(one.task, one)
    return first


def _count_rows(folder: Path) -> dict[tuple[str, str], float]:
    """Return the shares of the kinds of rows that a run was exported with."""
    rows = []
    for task, _, _ in iter_accepted(RunDirectory.open(folder)):
        groups = {"source": (task.source or "chain",), **list_groups(task)}
        rows.append({kind: groups[kind] for kind in KINDS if kind in groups})
    return count_shares(rows)
