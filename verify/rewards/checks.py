"""Share of checks passed."""

from verify.rewards._evidence import Evidence, RewardSettings


def reward(evidence: Evidence, settings: RewardSettings) -> float | None:
    """Passed checks as a share of those that could tell; EnvScaler, section 4.2, equation 10. Bounds: 0 to 1."""
    if evidence.outcome in ("environment_error", "user_error"):
        return None
    told = [check.passed for check in evidence.checks if check.passed is not None]
    return sum(told) / len(told) if told else None
