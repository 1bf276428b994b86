"""How many rows of each kind a dataset has in the end: settings, shares as whole numbers, and what is still missing."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import floor
from typing import Literal, TypeAlias, get_args

from pydantic import PositiveInt, field_validator

from trajsmith.records import Difficulty, FrozenModel, RunError

Dimension: TypeAlias = Literal["variant", "turns", "environment", "taxonomy", "difficulty"]
EVEN = ("environment", "taxonomy")
"""Dimensions whose strata a run knows by itself."""
DIFFICULTIES = get_args(Difficulty)
Cell: TypeAlias = tuple[str, ...]
"""A stratum of each dimension, in the order of their names."""


class TopUpBudget(FrozenModel):
    """Limits of the top-up rounds."""

    chains: PositiveInt | None = None
    """Chains in all; twenty per wanted row if it is not said."""
    rounds: PositiveInt = 12
    """Rounds of topping up."""


class AcceptSettings(FrozenModel):
    """Size of the dataset and its strata."""

    count: PositiveInt
    """Rows of the dataset, exactly."""
    by: dict[Dimension, dict[str, float] | Literal["even"]] = {}
    """Shares of the strata; every dimension is met on its own. Turns may end with an open one ("4+"). Difficulties are
    those that `trajsmith calibrate` measured; `taxonomy: even` is even over groups on similar topics."""
    budget: TopUpBudget = TopUpBudget()

    @field_validator("by")
    @classmethod
    def _positive(cls, by: dict[Dimension, dict[str, float] | Literal["even"]]) -> object:
        for name, shares in by.items():
            if shares == "even" and name not in EVEN:
                raise ValueError(f'{name}: give a share for each; "even" is for environments')
            if shares != "even" and name == "taxonomy":
                raise ValueError('taxonomy: say "even": its groups are those of trajsmith env taxonomy')
            if name == "turns" and isinstance(shares, dict):
                wrong = next((label for label in shares if not re.fullmatch(r"\d+\+?", label)), None)
                if wrong is not None:
                    raise ValueError(f'turns: {wrong!r} is no number of turns: say "3", or "4+" for four and more')
            if name == "difficulty" and isinstance(shares, dict):
                wrong = next((label for label in shares if label not in DIFFICULTIES), None)
                if wrong is not None:
                    raise ValueError(f"difficulty: there is no {wrong!r}; there are: {', '.join(DIFFICULTIES)}")
            if isinstance(shares, dict) and (not shares or min(shares.values()) <= 0):
                raise ValueError(f"{name}: shares must be above 0")
        return by

    def shares(self, environments: Iterable[str], groups: Iterable[str] = ()) -> dict[str, dict[str, float]]:
        """The shares, with the environments, or the groups of the taxonomy, spelled out."""
        even = {"environment": sorted(environments), "taxonomy": sorted(set(groups))}
        return {
            name: dict.fromkeys(even[name], 1.0) if shares == "even" else dict(shares)
            for name, shares in self.by.items()
            if shares
        }


class Quotas:
    """Number of rows wanted per stratum, and the best selection from the available rows.

    Every dimension has its own shares, so that a row fills one stratum of each. Taking rows as they come would lock:
    the rows that are left may fill no two open strata at once. An integer programme over the cells (variant x turns x
    environment) finds the largest choice that oversteps no share.
    """

    def __init__(self, count: int, by: Mapping[str, Mapping[str, float]]) -> None:
        self.count = count
        self.wanted = {name: apportion(count, shares) for name, shares in sorted(by.items())}
        self.available: Counter[Cell] = Counter()

    def cell(self, labels: Mapping[str, str]) -> Cell | None:
        """The cell of a row, or None if no share wants it."""
        strata = tuple(find_stratum(labels[name], wanted) for name, wanted in self.wanted.items())
        wants = all(label in wanted for label, wanted in zip(strata, self.wanted.values(), strict=True))
        return strata if wants else None

    def solve(self) -> dict[Cell, int]:
        """Rows to take of each cell; as many as possible."""
        import numpy as np
        from scipy.optimize import Bounds, LinearConstraint, milp

        cells = sorted(self.available)
        if not cells:
            return {}
        limits = [
            (place, label, number)
            for place, wanted in enumerate(self.wanted.values())
            for label, number in wanted.items()
        ]
        rows = [[1.0] * len(cells), *([float(cell[place] == label) for cell in cells] for place, label, _ in limits)]
        most = [self.count, *(number for _, _, number in limits)]
        solution = milp(
            -np.ones(len(cells)),
            integrality=np.ones(len(cells)),
            bounds=Bounds(0, [self.available[cell] for cell in cells]),
            constraints=LinearConstraint(np.array(rows), -np.inf, np.array(most, dtype=float)),
        )
        if solution.x is None:
            raise RunError(f"accept: the shares could not be worked out: {solution.message}")
        return {cell: round(value) for cell, value in zip(cells, solution.x, strict=True)}

    def missing(self) -> dict[str, dict[str, int]]:
        """Dimension to stratum to the number that is still missing; empty if nothing is."""
        plan = self.solve()
        if sum(plan.values()) >= self.count:
            return {}
        short: dict[str, dict[str, int]] = {"all": {"rows": self.count - sum(plan.values())}}
        for place, (name, wanted) in enumerate(self.wanted.items()):
            have = {label: sum(number for cell, number in plan.items() if cell[place] == label) for label in wanted}
            short[name] = {label: number - have[label] for label, number in wanted.items() if have[label] < number}
        return {name: labels for name, labels in short.items() if labels}


def find_stratum(label: str, wanted: Mapping[str, int]) -> str:
    """The stratum that a label belongs to: itself, or an open one such as "4+"."""
    if label in wanted or not label.isdigit():
        return label
    return next((name for name in wanted if name.endswith("+") and int(label) >= int(name[:-1])), label)


def apportion(count: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Whole numbers that sum to `count`, by the largest remainder; shares need not sum to one."""
    total = sum(shares.values())
    exact = {name: count * share / total for name, share in shares.items()}
    whole = {name: floor(value) for name, value in exact.items()}
    rest = sorted(shares, key=lambda name: (whole[name] - exact[name], name))
    for name in rest[: count - sum(whole.values())]:
        whole[name] += 1
    return whole
