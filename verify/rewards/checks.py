"""Share of checks passed."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("checks")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """Passed checks as a share of those that could tell; EnvScaler, section 4.2, equation 10. Bounds: 0 to 1."""
    if evidence.outcome in ("environment_error", "user_error"):
        return None
    decided = [check.passed for check in evidence.checks if check.passed is not None]
    return sum(decided) / len(decided) if decided else None
