"""The gold calls alone."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("trajectory")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """Share of gold calls that were made; EnvFactory's trajectory reward. Bounds: 0 to 1."""
    return None if evidence.is_undecidable else evidence.trajectory_match
