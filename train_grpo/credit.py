"""Rewards of the user turns of an episode, and the messages that a sample is made of."""

from collections.abc import Sequence
from dataclasses import dataclass

from trajsmith.records import Trajectory, Verdict
from trajsmith.train_grpo.rewards import CANNOT_TELL, has_broken_format


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
    logprobs: list[float] | None = None
    """Of each token, by the engine that drew it; None where it gives none."""


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
