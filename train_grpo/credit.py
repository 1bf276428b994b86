"""Credit assignment in an episode: rewards of user turns, and advantages of the turns within a group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

from trajsmith.records import Trajectory, Verdict
from trajsmith.train_grpo.rewards import CANNOT_TELL, has_broken_format

EPSILON = 1e-4
"""Added to the standard deviation, as TRL does."""


@dataclass
class ModelStep:
    """One message of the model in an episode."""

    context: list[int]
    """Tokens that it was generated from."""
    ids: list[int]
    """Tokens of the message."""
    turn: int
    """User turn of the task that it belongs to, from 0."""
    start: int
    """Where it begins in the tokens of the episode after its prompt."""
    logprobs: list[float] = field(default_factory=list)
    """Of each token, by the engine that drew it; empty where it gives none."""


def compute_turn_rewards(trajectory: Trajectory, verdict: Verdict, turns: int) -> list[float] | None:
    """Return the reward of each user turn: 1 if its state is right and all its checks pass, else the share of its
    checks times a half; -1 for the turn in which the format broke; 0 for turns that were never played.

    None if nothing can be said of the episode.
    """
    if verdict.outcome in CANNOT_TELL:
        return None
    earned = [0.0] * turns
    for number, turn in enumerate(verdict.turns[:turns]):
        whole = turn.outcome == "completed"
        earned[number] = 1.0 if whole else 0.5 * turn.passed / max(1, turn.checks)
    if has_broken_format(trajectory):
        earned[min(max(0, len(trajectory.turns) - 1), turns - 1)] = -1.0
    return earned


def compute_rewards_to_go(earned: Sequence[float]) -> list[float]:
    """Compute the mean reward from each turn on: a turn affects what comes after it, not what came before."""
    return [sum(earned[turn:]) / (len(earned) - turn) for turn in range(len(earned))]


def compute_turn_advantages(rewards: Sequence[list[float] | None], group: int) -> list[list[float]]:
    """Compute the advantage of every turn: its reward to go against the same turn of the others of its group.

    Args:
        rewards: What each turn of each episode earned; episodes of one task lie together. None teaches nothing.
        group: Episodes per task.
    """
    advantages: list[list[float]] = []
    for start in range(0, len(rewards), group):
        members = [
            None if earned is None else compute_rewards_to_go(earned) for earned in rewards[start : start + group]
        ]
        known = [returns for returns in members if returns is not None]
        advantages += [[] if returns is None else _normalize_against_group(returns, known) for returns in members]
    return advantages


def _normalize_against_group(returns: list[float], group: list[list[float]]) -> list[float]:
    return [_standardize(value, [other[turn] for other in group]) for turn, value in enumerate(returns)]


def _standardize(value: float, values: list[float]) -> float:
    """The value's distance from the mean in standard deviations (of the sample, as TRL's)."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    spread = sqrt(sum((one - mean) ** 2 for one in values) / (len(values) - 1))
    return (value - mean) / (spread + EPSILON)


def compute_step_advantages(
    steps: Sequence[Sequence[ModelStep]], whole: Sequence[float], by_turn: Sequence[list[float]], weight: float
) -> list[list[float]]:
    """Compute the advantage of every message: that of the episode, or with `weight` also that of its turn.

    Args:
        steps: Messages of every episode.
        whole: Advantage of every episode.
        by_turn: Advantages of its turns; empty if nothing can be said.
        weight: 0 for the episode's alone, 1 for the turn's alone.
    """
    advantages = []
    for episode_steps, one, turns in zip(steps, whole, by_turn, strict=True):
        mine = [turns[step.turn] if step.turn < len(turns) else 0.0 for step in episode_steps]
        advantages.append([(1 - weight) * one + weight * value for value in mine])
    return advantages
