"""Rewards of an episode by name: those of `verify.rewards` as the verdict holds them, and the parts of EnvFactory's."""

from collections.abc import Callable

from trajectory import Trajectory, Verdict

Reward = Callable[[Trajectory, Verdict], float | None]
"""None means that the episode cannot be scored, because the environment or the user broke: it must teach nothing."""
CANNOT_TELL = ("environment_error", "undecided", "user_error")


def broken_format(trajectory: Trajectory) -> bool:
    """True if the episode was ended because a message was cut or held a call that cannot be read."""
    return trajectory.stop_reason == "agent_gave_up"


def named(name: str) -> Reward:
    """A reward that the verdict holds."""
    return lambda trajectory, verdict: verdict.rewards.get(name)


def format_outcome(trajectory: Trajectory, verdict: Verdict) -> float | None:
    """-1 for a broken format, which ended the episode; else the verdict's (AWM, section 4.1)."""
    return -1.0 if broken_format(trajectory) else verdict.rewards.get("format_outcome")


def state(trajectory: Trajectory, verdict: Verdict) -> float | None:
    """1 if the final state is the gold state and every turn was played (EnvFactory's state reward)."""
    return None if verdict.outcome in CANNOT_TELL else float(verdict.state_match is True)


def trajectory_share(trajectory: Trajectory, verdict: Verdict) -> float | None:
    """Share of the gold calls that were made (EnvFactory's trajectory reward)."""
    return None if verdict.outcome in CANNOT_TELL else verdict.trajectory_match


REWARDS: dict[str, Reward] = {
    "composite": named("composite"),
    "format_outcome": format_outcome,
    "checks": named("checks"),
    "rubric": named("rubric"),
    "state": state,
    "trajectory": trajectory_share,
}
