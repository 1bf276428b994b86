"""Sums of products of numbers that give recorded amounts."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from trajsmith.envgen.traces.expressions import Expr
from trajsmith.envgen.traces.operations import Linear


def fit_linear(numbers: list[tuple[Expr, list[float]]], wanted: list[float], agree: float = 0.9) -> Linear | None:
    """Return the smallest sum of at most three products of numbers that gives the wanted ones."""
    count = len(wanted)
    need = max(3, int(agree * count))
    singles: list[tuple[Expr, ...]] = [(expr,) for expr, _ in numbers]
    columns = [list(shown) for _, shown in numbers]
    for (first, a), (second, b) in itertools.combinations_with_replacement(numbers[:40], 2):
        if first is not second:
            singles.append((first, second))
            columns.append([x * y for x, y in zip(a, b, strict=True)])
    unique: dict[tuple[float, ...], int] = {}
    for place, column in enumerate(columns):
        if any(column):
            unique.setdefault(tuple(column), place)
    places = list(unique.values())

    matrix = np.array([columns[p] for p in places], dtype=float)
    target = np.array(wanted, dtype=float)
    if not len(places):
        return None

    def hits(residual: Any) -> Any:
        return (np.abs(residual) < 1e-4).sum(axis=-1)

    best: tuple[float, Linear] | None = None

    def offer(terms: list[tuple[float, int]]) -> None:
        nonlocal best
        expr = Linear(tuple((_nice(f), singles[places[p]] if p >= 0 else ()) for f, p in terms))
        cost = expr.size() + sum(0.0 if abs(f) == 1 else 1.0 for f, _ in terms)
        if best is None or cost < best[0]:
            best = (cost, expr)

    for place in range(len(places)):
        ratios = [t / v for t, v in zip(wanted, matrix[place], strict=True) if v]
        for factor in {_nice(r) for r in ratios[:6]}:
            if factor and hits(target - factor * matrix[place]) >= need:
                offer([(factor, place)])
    if best is not None:
        return best[1]
    for place in range(len(places)):
        for factor in (1.0, -1.0):
            constants, counts = np.unique(np.round(target - factor * matrix[place], 4), return_counts=True)
            if counts.max() >= need:
                offer([(factor, place), (float(constants[counts.argmax()]), -1)])
    if best is not None:
        return best[1]
    factors = _guess_factors(wanted)
    for place in range(len(places)):
        for factor in factors:
            residual = target - factor * matrix[place]
            for sign in (1.0, -1.0, *factors):
                agreeing = hits(residual - sign * matrix)
                for other in np.nonzero(agreeing >= need)[0]:
                    if int(other) != place:
                        offer([(factor, place), (sign, int(other))])
    if best is not None:
        return best[1]
    return _fit_three(matrix, target, need, offer, lambda: best)


def _fit_three(
    matrix: Any, target: Any, need: int, offer: Callable[[list[tuple[float, int]]], None], best: Callable[[], Any]
) -> Linear | None:
    """Fit three columns by least squares over pairs with the one column that the target follows most."""

    count = len(target)
    if count < 6 or len(matrix) < 3:
        return None
    norms = np.linalg.norm(matrix, axis=1)
    closeness = np.abs(matrix @ target) / np.where(norms == 0, 1, norms)
    leads = np.argsort(-closeness)[:25]
    others = np.argsort(-closeness)[: min(len(matrix), 400)]
    for lead in leads:
        for first, second in itertools.combinations(others, 2):
            if lead in (first, second):
                continue
            chosen = matrix[[lead, first, second]].T
            try:
                solution = np.linalg.solve(chosen[[0, count // 2, count - 1]], target[[0, count // 2, count - 1]])
            except np.linalg.LinAlgError:
                continue
            factors = [_nice(float(x)) for x in solution]
            if all(factors) and (np.abs(target - chosen @ np.array(factors)) < 1e-4).sum() >= need:
                offer([(factors[0], int(lead)), (factors[1], int(first)), (factors[2], int(second))])
        if best() is not None:
            return best()[1]  # type: ignore[no-any-return]
    return None


def _guess_factors(wanted: list[float]) -> list[float]:
    """Return factors that prices have: one, and the whole numbers that many of the values share."""
    shares = {
        f for f in (2, 5, 10, 20, 25, 30, 50, 100) if sum(abs(w) % f == 0 for w in wanted if w) * 3 >= len(wanted)
    }
    return [1.0, -1.0, *map(float, sorted(shares)), *(-float(f) for f in sorted(shares))]


def _nice(factor: float) -> float:
    rounded = round(float(factor), 4)
    return int(rounded) if float(rounded).is_integer() else rounded
