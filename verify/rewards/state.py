"""The final state alone."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("state")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """1 if the final state is the gold state and every turn was played, else 0; EnvFactory's state reward."""
    return None if evidence.is_undecidable else float(evidence.state_match is True)
