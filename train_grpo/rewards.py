"""Rewards of an episode by name: those of `trajsmith.verify.rewards` as the verdict holds them, and the parts of
EnvFactory's.
"""

from collections.abc import Callable

from trajsmith.records import Trajectory, Verdict

Reward = Callable[[Trajectory, Verdict], float | None]
"""None means that the episode cannot be scored, because the environment or the user broke: it must teach nothing."""
CANNOT_TELL = ("environment_error", "undecided", "user_error")


def has_broken_format(trajectory: Trajectory) -> bool:
    """Return True if the episode ended because a message was truncated or held a malformed call."""
    return trajectory.stop_reason == "agent_gave_up"


def build_verdict_reward(name: str) -> Reward:
    """Return a reward function that reads this reward from the verdict."""
    return lambda trajectory, verdict: verdict.rewards.get(name)


def format_outcome(trajectory: Trajectory, verdict: Verdict) -> float | None:
    """Return -1 for a broken format, which ended the episode; else the verdict's reward (AWM, section 4.1)."""
    return -1.0 if has_broken_format(trajectory) else verdict.rewards.get("format_outcome")


def state(trajectory: Trajectory, verdict: Verdict) -> float | None:
    """Return 1 if the final state is the gold state and every turn was played (EnvFactory's state reward)."""
    return None if verdict.outcome in CANNOT_TELL else float(verdict.state_match is True)


def trajectory_share(trajectory: Trajectory, verdict: Verdict) -> float | None:
    """Return the share of gold calls that were made (EnvFactory's trajectory reward)."""
    return None if verdict.outcome in CANNOT_TELL else verdict.trajectory_match


REWARDS: dict[str, Reward] = {
    "composite": build_verdict_reward("composite"),
    "format_outcome": format_outcome,
    "checks": build_verdict_reward("checks"),
    "rubric": build_verdict_reward("rubric"),
    "state": state,
    "trajectory": trajectory_share,
}
