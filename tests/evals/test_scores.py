"""Scores and intervals against values worked out elsewhere."""

import pytest

from trajsmith.evals import Episode, compute_wilson_interval, score_episodes
from trajsmith.evals.scores import bootstrap_interval, compute_pass_hat_k


def episode(task: str, sample: int = 0, passed: bool | None = True, **more) -> Episode:
    values = {"environment": "bank", "variant": "base", "checks": 1.0, "turns": 1, "calls": 2, "tokens": 10}
    return Episode(task_id=task, sample=sample, passed=passed, trajectory_id="traj_0", **(values | more))


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (60, 100, 0.5020, 0.6906), (0, 0, 0.0, 1.0)],
)
def test_wilson_gives_the_published_intervals(passed, total, low, high):
    assert compute_wilson_interval(passed, total) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(("passed", "total", "k", "chance"), [(2, 4, 2, 1 / 6), (4, 4, 4, 1.0), (1, 4, 2, 0.0)])
def test_pass_hat_k_counts_draws_without_replacement(passed, total, k, chance):
    assert compute_pass_hat_k(passed, total, k) == pytest.approx(chance)


def test_bootstrap_is_repeatable_and_holds_the_mean():
    shares = [0.0, 0.5, 1.0, 1.0, 0.25] * 8
    low, high = bootstrap_interval(shares)
    assert low < sum(shares) / len(shares) < high
    assert (low, high) == bootstrap_interval(shares)


def test_broken_environments_count_neither_way():
    found = score_episodes([episode("a"), episode("b", passed=False, error="no_call"), episode("c", passed=None)])[0]
    assert (found.pass1, found.tasks, found.unscored, found.errors) == (0.5, 2, 1, {"no_call": 1})


def test_several_samples_give_pass_hat_k_and_groups():
    made = [episode("a", 0), episode("a", 1), episode("b", 0, False), episode("b", 1)]
    other = [episode("c", 0, environment="retail", variant="vague"), episode("c", 1, environment="retail")]
    scores = {score.group: score for score in score_episodes([*made, *other])}
    assert scores["bank"].pass1 == 0.75
    assert scores["bank"].pass_k == {2: 0.5}
    assert scores["bank"].pass_k_interval == {2: (0.0, 1.0)}
    assert scores["bank"].checks_interval == (1.0, 1.0)
    assert {"all", "bank", "retail", "retail / vague", "retail / base"} <= set(scores)
