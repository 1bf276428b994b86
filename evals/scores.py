"""Scores of episodes: pass@1, pass^k and shares, each with a 95 % interval."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb

from trajsmith.evals.episodes import Episode

DRAWS = 2000
"""Bootstrap samples of the tasks."""


@dataclass(frozen=True)
class Score:
    """Aggregated episodes of one group."""

    group: str
    tasks: int
    episodes: int
    unscored: int
    """Episodes in which the environment broke; they count neither way."""
    pass1: float
    low: float
    high: float
    """95 % interval of `pass1`: Wilson's for one episode per task, else by drawing tasks with replacement."""
    pass_k: dict[int, float]
    """k to the chance that k episodes of one task all pass, over the tasks with at least k scored episodes."""
    pass_k_interval: dict[int, tuple[float, float]]
    """95 % interval of each, by drawing tasks with replacement."""
    checks: float
    """Mean share of checks passed."""
    checks_interval: tuple[float, float]
    """95 % interval of it, by drawing tasks with replacement."""
    turns: float
    calls: float
    tokens: float
    errors: dict[str, int]


def compute_wilson_interval(passed: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927); it stays inside 0 to 1 and is right for small numbers."""
    from scipy.stats import binomtest

    if not total:
        return 0.0, 1.0
    interval = binomtest(passed, total).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def compute_pass_hat_k(passed: int, total: int, k: int) -> float:
    """Chance that k episodes drawn from `total` without replacement all passed (tau-bench's pass^k)."""
    return comb(passed, k) / comb(total, k)


def bootstrap_interval(shares: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of a mean over tasks, by drawing tasks with replacement; 0 to 1 without a task."""
    import numpy as np
    from scipy.stats import bootstrap

    if not shares:
        return 0.0, 1.0
    if len(set(shares)) == 1:
        return shares[0], shares[0]
    interval = bootstrap((shares,), np.mean, n_resamples=DRAWS, method="percentile", rng=seed).confidence_interval
    return float(interval.low), float(interval.high)


def score_episodes(episodes: Iterable[Episode]) -> list[Score]:
    """All together, then by environment, then by environment and variant where there are several variants."""
    everything = list(episodes)
    groups: dict[str, list[Episode]] = {"all": everything}
    several = len({episode.variant for episode in everything}) > 1
    for episode in sorted(everything, key=lambda one: (one.environment, one.variant)):
        groups.setdefault(episode.environment, []).append(episode)
        if several:
            groups.setdefault(f"{episode.environment} / {episode.variant}", []).append(episode)
    return [_score(name, members) for name, members in groups.items()]


def _score(group: str, members: Sequence[Episode]) -> Score:
    scored = [episode for episode in members if episode.passed is not None]
    tasks: dict[str, list[bool]] = defaultdict(list)
    checks: dict[str, list[float]] = defaultdict(list)
    for episode in scored:
        tasks[episode.task_id].append(bool(episode.passed))
        checks[episode.task_id].append(episode.checks)
    shares = [sum(outcomes) / len(outcomes) for outcomes in tasks.values()]
    single = all(len(outcomes) == 1 for outcomes in tasks.values())
    by_k = _pass_k(list(tasks.values()))
    low, high = compute_wilson_interval(int(sum(shares)), len(shares)) if single else bootstrap_interval(shares)
    return Score(
        group=group,
        tasks=len(tasks),
        episodes=len(members),
        unscored=len(members) - len(scored),
        pass1=_mean(shares),
        low=low,
        high=high,
        pass_k={k: _mean(chances) for k, chances in by_k.items()},
        pass_k_interval={k: bootstrap_interval(chances) for k, chances in by_k.items()},
        checks=_mean([episode.checks for episode in scored]),
        checks_interval=bootstrap_interval([sum(outcomes) / len(outcomes) for outcomes in checks.values()]),
        turns=_mean([episode.turns for episode in scored]),
        calls=_mean([episode.calls for episode in scored]),
        tokens=_mean([episode.tokens for episode in scored]),
        errors=dict(Counter(episode.error for episode in members if episode.error).most_common()),
    )


def _pass_k(tasks: Sequence[Sequence[bool]]) -> dict[int, list[float]]:
    """k to the chance of every task that has enough episodes."""
    longest = max((len(outcomes) for outcomes in tasks), default=0)
    return {
        k: [compute_pass_hat_k(sum(outcomes), len(outcomes), k) for outcomes in tasks if len(outcomes) >= k]
        for k in range(2, longest + 1)
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
