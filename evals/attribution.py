"""Which training rows moved which tasks: shares of the rows against gains of the groups, over the rounds of an arena.

Both arms of a round train on as many rows, drawn differently. What one arm had more of until a round, against how much
better it passes a group of tasks there, is one point of a line through zero. Of all kinds of rows the one that fits a
group best is its effect, if chance does not explain the slope and no single round carries it alone. Kinds that fit as
well, because their shares changed alike, cannot be told apart from it, and few rounds say nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Literal

from trajsmith.evals.round_comparison import Z, compute_change
from trajsmith.evals.weak_groups import FALSE_DISCOVERIES
from trajsmith.records import FrozenModel

Label = tuple[str, str]
"""Dimension and name."""
Point = tuple[float, float]
"""Mean difference of a round, and its standard error."""
LEAST_ROUNDS = 3
LEAST_SHARE = 0.03
"""A kind of rows counts if the arms' shares of it differ so much in some round."""
LEAST_TASKS = 20
"""Tasks of a group, over all rounds."""
RIVAL = 3.84
"""Difference of two fits (chi-square, one degree of freedom) up to which neither is the better one."""
MOST_SHOWN = 60


class RoundRows(FrozenModel):
    """Rows and outcomes of one round."""

    number: int
    targeted: dict[Label, float]
    control: dict[Label, float]
    """Kind of rows to its share, of either arm."""
    outcomes: tuple[tuple[frozenset[Label], float], ...]
    """Groups of each task that both arms played, and targeted minus control: 1, 0 or -1."""


class ShareChange(FrozenModel):
    """Kind of rows of which the arms had different shares."""

    dimension: str
    name: str
    differences: tuple[float, ...]
    """Targeted minus control, by round."""


class RowEffect(FrozenModel):
    """A group of tasks that was passed more often, or less, the more rows of a kind an arm had had."""

    group_dimension: str
    group: str
    dimension: str
    rows: str
    tasks: int
    effect: float
    """Change of the pass rate for 10 % of a round's rows."""
    low: float
    high: float
    """95 % interval."""
    q: float
    """p after control of false discoveries over all tested pairs."""
    verdict: Literal["attributed", "not to be told apart"]
    alike: tuple[str, ...] = ()
    """Other kinds of rows that fit as well."""


class Attribution(FrozenModel):
    """Effects of training rows, as far as the rounds of an arena show any."""

    says: str
    rounds: int
    tested: int = 0
    shares: tuple[ShareChange, ...] = ()
    effects: tuple[RowEffect, ...] = ()


def attribute_gains(rounds: Sequence[RoundRows]) -> Attribution:
    """Return which kinds of rows moved which groups of tasks, or that there is too little to say.

    Args:
        rounds: All rounds with a control arm, in their order.
    """
    differences = _collect_differences(rounds)
    shares = tuple(
        ShareChange(dimension=label[0], name=label[1], differences=tuple(round(one, 4) for one in row))
        for label, row in sorted(differences.items(), key=lambda item: -max(map(abs, item[1])))
    )[:MOST_SHOWN]
    if len(rounds) < LEAST_ROUNDS:
        says = (
            f"too little to say which rows moved which tasks: {len(rounds)} of at least {LEAST_ROUNDS} "
            f"rounds with a control arm are there; shares of {len(differences)} kinds of rows changed together"
        )
        return Attribution(says=says, rounds=len(rounds), shares=shares)
    exposures = {label: _accumulate(row) for label, row in differences.items()}
    effects, tested = _find_effects(rounds, exposures)
    clear = sum(one.verdict == "attributed" for one in effects)
    says = f"{clear} effects of one kind of rows, and {len(effects) - clear} of kinds that cannot be told apart"
    if not effects:
        says = f"too little to say which rows moved which tasks: none of {tested} pairs differs from chance"
    return Attribution(says=says, rounds=len(rounds), tested=tested, shares=shares, effects=effects[:MOST_SHOWN])


def count_shares(rows: Sequence[Mapping[str, Sequence[str]]]) -> dict[Label, float]:
    """Return the share of each kind among rows that are given by their groups."""
    counts = Counter((dimension, name) for row in rows for dimension, names in row.items() for name in set(names))
    return {label: number / len(rows) for label, number in counts.items()}


def _collect_differences(rounds: Sequence[RoundRows]) -> dict[Label, list[float]]:
    labels = sorted({label for one in rounds for label in (*one.targeted, *one.control)})
    rows = {label: [one.targeted.get(label, 0.0) - one.control.get(label, 0.0) for one in rounds] for label in labels}
    return {label: row for label, row in rows.items() if max(map(abs, row)) >= LEAST_SHARE}


def _accumulate(row: Sequence[float]) -> list[float]:
    """Return what an arm had had more of until each round: models are trained on from round to round."""
    return [sum(row[: number + 1]) for number in range(len(row))]


def _find_effects(
    rounds: Sequence[RoundRows], exposures: Mapping[Label, list[float]]
) -> tuple[tuple[RowEffect, ...], int]:
    """Return the effects that chance does not explain, one for a group, and the number of tested pairs."""
    from scipy.stats import false_discovery_control, norm

    fits: list[tuple[Label, int, list[Point | None], dict[Label, tuple[float, float]]]] = []
    for group, tasks, points in _iter_groups(rounds):
        lines = {label: fit for label, row in exposures.items() if (fit := _fit(points, row)) is not None}
        fits.append((group, tasks, points, lines))
    p = [float(2 * norm.sf(abs(slope / error))) for *_, lines in fits for slope, error in lines.values()]
    adjusted = iter(false_discovery_control(p)) if p else iter(())
    effects = []
    for group, tasks, points, lines in fits:
        q = {label: float(next(adjusted)) for label in lines}
        scores = {label: (slope / error) ** 2 for label, (slope, error) in lines.items()}
        best = max(scores, key=lambda label: scores[label], default=None)
        if best is None or q[best] > FALSE_DISCOVERIES or not _holds_without_any_round(points, exposures[best]):
            continue
        slope, error = lines[best]
        alike = [label for label in scores if label != best and scores[label] >= scores[best] - RIVAL]
        effects.append(
            RowEffect(
                group_dimension=group[0],
                group=group[1],
                dimension=best[0],
                rows=best[1],
                tasks=tasks,
                effect=round(slope / 10, 4),
                low=round((slope - Z * error) / 10, 4),
                high=round((slope + Z * error) / 10, 4),
                q=q[best],
                verdict="not to be told apart" if alike else "attributed",
                alike=tuple(f"{dimension} {name}" for dimension, name in alike),
            )
        )
    return tuple(sorted(effects, key=lambda one: (one.verdict, one.q, one.group))), len(p)


def _iter_groups(rounds: Sequence[RoundRows]) -> Iterator[tuple[Label, int, list[Point | None]]]:
    """Yield each group of tasks, its tasks, and by round its mean difference with the standard error."""
    labels = sorted({label for one in rounds for groups, _ in one.outcomes for label in groups})
    for label in labels:
        values = [[outcome for groups, outcome in one.outcomes if label in groups] for one in rounds]
        tasks = sum(map(len, values))
        if tasks >= LEAST_TASKS:
            yield label, tasks, [_measure(one) if one else None for one in values]


def _measure(outcomes: Sequence[float]) -> Point:
    change = compute_change(outcomes)
    return change.mean, (change.high - change.low) / (2 * Z)


def _fit(points: Sequence[Point | None], exposure: Sequence[float]) -> tuple[float, float] | None:
    """Return slope and standard error of the weighted line through zero; None where the shares say nothing."""
    used = [(point, x) for point, x in zip(points, exposure, strict=True) if point is not None]
    weight = sum(x * x / point[1] ** 2 for point, x in used)
    if len(used) < LEAST_ROUNDS or weight <= 0:
        return None
    return sum(x * point[0] / point[1] ** 2 for point, x in used) / weight, 1 / sqrt(weight)


def _holds_without_any_round(points: Sequence[Point | None], exposure: Sequence[float]) -> bool:
    """Return True if the slope has one sign whichever round is left out."""
    signs = set()
    for left_out in range(len(points)):
        total = sum(
            x * point[0] / point[1] ** 2
            for number, (point, x) in enumerate(zip(points, exposure, strict=True))
            if point is not None and number != left_out
        )
        signs.add((total > 0) - (total < 0))
    return len(signs) == 1 and 0 not in signs
