"""Rewards of an episode: those of `trajsmith.verify.rewards`, computed from its trajectory and verdict."""

from dataclasses import replace

from trajsmith.records import InputError, Task, Trajectory, Verdict
from trajsmith.verify import build_evidence
from trajsmith.verify.rewards import REWARDS, RewardSettings, compute_rewards, find_step_rewards

CANNOT_TELL = ("environment_error", "undecided", "user_error")
ACCEPTED = "accepted"
"""Reward that is 1 for a play that the pipeline accepts, and 0 otherwise."""


def has_broken_format(trajectory: Trajectory) -> bool:
    """Return True if the episode ended because a message was truncated or held a malformed call."""
    return trajectory.stop_reason == "agent_gave_up"


def compute_episode_reward(name: str, task: Task, trajectory: Trajectory, verdict: Verdict) -> float | None:
    """Compute one reward of an episode; a broken format, which ended it, counts as a malformed call.

    None means that the episode cannot be scored, because the environment or the user broke: it must teach nothing.
    """
    if name == ACCEPTED:
        return None if verdict.outcome in CANNOT_TELL else float(verdict.accepted)
    evidence = build_evidence(task, trajectory, verdict)
    if has_broken_format(trajectory):
        evidence = replace(evidence, errors=[*evidence.errors, "malformed"])
    return compute_rewards(evidence, RewardSettings(names=(name,))).get(name)


def check_reward(name: str) -> str:
    """Return the name of a reward.

    Raises:
        InputError: It is unknown.
    """
    if name != ACCEPTED:
        REWARDS.get(name)
    return name


def check_exported_reward(name: str) -> str:
    """Return the name of a reward for other frameworks, whose episodes have no labels of calls.

    Raises:
        InputError: It is unknown, or needs labels of calls.
    """
    check_reward(name)
    if name != ACCEPTED and find_step_rewards([name]):
        raise InputError(f"reward {name} needs labels of calls, which only `trajsmith grpo` makes: name another one")
    return name


def choose_reward(name: str, task: Task, trajectory: Trajectory, verdict: Verdict) -> float | None:
    """Return a reward of an episode by its name, as GRPO computes it.

    None means that nothing can be said of the agent.
    """
    return None if verdict.outcome in CANNOT_TELL else compute_episode_reward(name, task, trajectory, verdict)
