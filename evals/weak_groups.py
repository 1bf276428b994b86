"""Which groups of tasks a model fails more often than the rest explains: tests, false-discovery control, selection.

Groups overlap: a tool belongs to an environment, an edge holds two tools. A group is named only if its failures are
more than the groups named already explain (a noisy-or of a base rate and one rate per named group), and it goes again
where groups named later explain it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

FALSE_DISCOVERIES = 0.05
"""Expected share of false groups among those tested as weak (Benjamini and Hochberg 1995)."""
LEAST_MEMBERS, LEAST_FAILURES = 5, 3
"""Smallest group that is tested."""
MOST_NAMED = 40
ROUNDS = 200
"""Steps of the fit of rates; it stops when they move by less than a ten-thousandth."""


@dataclass(frozen=True)
class WeakGroup:
    """One tested group; `index` is its column."""

    index: int
    episodes: int
    failures: int
    p: float
    """Chance of so many failures if the group failed as the rest does (Fisher's exact test, one-sided)."""
    q: float
    """The same after control of false discoveries over all tested groups."""
    named: bool
    """It fails more often than the other named groups explain."""
    rate: float
    """Chance of failure that the group itself adds, for named groups."""


@dataclass(frozen=True)
class GroupSelection:
    """Outcome of all tests."""

    groups: list[WeakGroup]
    """Tested groups: the named ones first, then by p."""
    base: float
    """Failure rate outside of all named groups."""
    order: list[int]
    """Named groups in the order in which they cover most of the failures that are not covered yet."""
    covered: list[float]
    """Share of the failures that the groups up to each of `order` hold."""


def select_weak_groups(members: "np.ndarray[Any, Any]", failed: "np.ndarray[Any, Any]") -> GroupSelection:
    """Test all groups, and name those that explain the failures.

    Args:
        members: Episodes by groups, True where an episode belongs to a group; earlier columns win where two groups
            have the same episodes.
        failed: Which episodes failed.
    """
    import numpy as np
    from scipy.stats import false_discovery_control, hypergeom

    sizes, failures = members.sum(axis=0), failed.astype(int) @ members
    tested = np.flatnonzero((sizes >= LEAST_MEMBERS) & (sizes < len(failed)) & (failures >= LEAST_FAILURES))
    tested = _drop_copies(members, tested)
    if not len(tested):
        return GroupSelection([], float(failed.mean()) if len(failed) else 0.0, [], [])
    p = hypergeom.sf(failures[tested] - 1, len(failed), int(failed.sum()), sizes[tested])
    p = np.clip(p, 0.0, 1.0)
    q = false_discovery_control(p)
    named, rates, base = _name_groups(members[:, tested], failed)
    groups = [
        WeakGroup(
            int(column), int(sizes[column]), int(failures[column]), float(p[place]), float(q[place]),
            place in named, rates[named.index(place)] if place in named else 0.0,
        )
        for place, column in enumerate(tested)
    ]  # fmt: skip
    order, covered = _cover(members[:, tested], failed, named)
    return GroupSelection(
        sorted(groups, key=lambda group: (not group.named, group.p, group.index)),
        base,
        [int(tested[place]) for place in order],
        covered,
    )


def _drop_copies(members: "np.ndarray[Any, Any]", tested: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the columns without those that hold the same episodes as an earlier one."""
    import numpy as np

    first: dict[bytes, int] = {}
    for column in tested:
        first.setdefault(np.packbits(members[:, column]).tobytes(), int(column))
    return np.array(sorted(first.values()), dtype=int)


def _name_groups(
    members: "np.ndarray[Any, Any]", failed: "np.ndarray[Any, Any]"
) -> tuple[list[int], list[float], float]:
    """Return the places of the groups that explain the failures, with the rate of each, and the base rate."""
    import numpy as np

    columns = members.astype(float)
    sizes = columns.sum(axis=0)
    named: list[int] = []
    removed: set[int] = set()
    base, rates = float(failed.mean()), np.zeros(0)
    while len(named) < MOST_NAMED:
        p = _excess_p(columns, failed, sizes, _predict(columns[:, named], base, rates))
        p[[*named, *removed]] = 1.0
        best = int(np.argmin(p))
        if _adjust_least(p) > FALSE_DISCOVERIES:
            break
        named.append(best)
        base, rates = _fit(columns[:, named], failed)
        while (weakest := _find_explained(columns, failed, sizes, named)) is not None:
            named.remove(weakest)
            removed.add(weakest)
            base, rates = _fit(columns[:, named], failed)
    return named, [float(rate) for rate in rates], base


def _excess_p(
    columns: "np.ndarray[Any, Any]",
    failed: "np.ndarray[Any, Any]",
    sizes: "np.ndarray[Any, Any]",
    chances: "np.ndarray[Any, Any]",
) -> "np.ndarray[Any, Any]":
    """Chance of each group's failures if every episode failed with its predicted chance.

    The binomial with the mean chance has at least the variance of the sum of unequal ones, so the test is on the safe
    side (Hoeffding 1956).
    """
    import numpy as np
    from scipy.stats import binom

    return np.asarray(binom.sf(failed @ columns - 1, sizes, (chances @ columns) / np.maximum(sizes, 1)))


def _adjust_least(p: "np.ndarray[Any, Any]") -> float:
    """Return the smallest p after control of false discoveries."""
    import numpy as np
    from scipy.stats import false_discovery_control

    return float(np.min(false_discovery_control(np.clip(p, 0.0, 1.0))))


def _find_explained(
    columns: "np.ndarray[Any, Any]", failed: "np.ndarray[Any, Any]", sizes: "np.ndarray[Any, Any]", named: list[int]
) -> int | None:
    """Return a named group whose failures the other named ones explain."""
    worst: tuple[float, int] | None = None
    for place in named[:-1]:
        others = [one for one in named if one != place]
        chances = _predict(columns[:, others], *_fit(columns[:, others], failed))
        p = float(_excess_p(columns[:, [place]], failed, sizes[[place]], chances)[0])
        if p * len(sizes) > FALSE_DISCOVERIES * len(named) and (worst is None or p > worst[0]):
            worst = p, place
    return worst[1] if worst else None


def _predict(columns: "np.ndarray[Any, Any]", base: float, rates: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Chance of failure of every episode: 1 - (1 - base) * product of (1 - rate) over its named groups."""
    import numpy as np

    return np.asarray(1 - (1 - base) * np.exp(columns @ np.log1p(-np.minimum(rates, 1 - 1e-9))))


def _fit(columns: "np.ndarray[Any, Any]", failed: "np.ndarray[Any, Any]") -> tuple[float, "np.ndarray[Any, Any]"]:
    """Fit base rate and rates of a noisy-or by expectation maximisation."""
    import numpy as np

    keys = columns.astype(np.int64) @ (1 << np.arange(columns.shape[1], dtype=np.int64))
    _, rows, pattern = np.unique(keys, return_index=True, return_inverse=True)  # episodes of the same named groups
    design = np.column_stack([np.ones(len(rows)), columns[rows]])
    sizes = np.bincount(pattern, minlength=len(rows)) @ design
    wrong = np.bincount(pattern, weights=failed, minlength=len(rows))
    causes = np.full(design.shape[1], max(float(failed.mean()), 1e-6) / 2)
    for _ in range(ROUNDS):
        chances = 1 - np.exp(design @ np.log1p(-np.minimum(causes, 1 - 1e-9)))
        moved = causes * (wrong / np.maximum(chances, 1e-12) @ design) / sizes
        moved = np.clip(moved, 1e-9, 1 - 1e-9)
        if np.max(np.abs(moved - causes)) < 1e-4:
            causes = moved
            break
        causes = moved
    return float(causes[0]), causes[1:]


def _cover(
    members: "np.ndarray[Any, Any]", failed: "np.ndarray[Any, Any]", named: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Order the named groups so that each holds most of the failures that those before it do not hold."""
    left, total = failed.copy(), max(1, int(failed.sum()))
    order: list[int] = []
    covered: list[float] = []
    while len(order) < len(named):
        rest = [place for place in named if place not in order]
        best = max(rest, key=lambda place: (int((left & members[:, place]).sum()), -place))
        left &= ~members[:, best]
        order.append(best)
        covered.append(round(1 - int(left.sum()) / total, 4))
    return order, covered
