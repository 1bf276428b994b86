"""All or nothing."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("rubric")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """1 if every check passes, else 0; Agent-World, "Structured Verifiable Reward", both of its cases.

    One that fails decides; where none fails and some could not tell, nobody can.
    """
    if evidence.outcome in ("environment_error", "user_error") or not evidence.checks:
        return None
    passed = [check.passed for check in evidence.checks]
    if False in passed:
        return 0.0
    return None if None in passed else 1.0
