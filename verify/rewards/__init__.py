"""Rewards by name: one file is one reward, a function of the evidence and the settings."""

from trajsmith.verify.rewards._evidence import (
    REWARDS,
    Reward,
    RewardEvidence,
    RewardName,
    RewardSettings,
    find_step_rewards,
    needs_step_labels,
)


def compute_rewards(evidence: RewardEvidence, settings: RewardSettings) -> dict[str, float]:
    """Compute the rewards that the settings name; one that cannot tell is left out, never zero."""
    values = {name: REWARDS.get(name)(evidence, settings) for name in settings.names}
    return {name: round(value, 4) for name, value in values.items() if value is not None}


__all__ = [
    "REWARDS",
    "Reward",
    "RewardEvidence",
    "RewardName",
    "RewardSettings",
    "compute_rewards",
    "find_step_rewards",
    "needs_step_labels",
]
