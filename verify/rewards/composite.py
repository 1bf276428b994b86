"""Trajectory and state together, less for long ways."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("composite")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """R = alpha * R_traj + (1 - alpha) * R_state - gamma * P_length; EnvFactory, section 3.5.

    R_traj is the share of gold calls that were made, whatever the order of reads and the value of masked arguments
    (`trajsmith.verify.matching`); R_state is 1 if the final state is the gold state; P_length is the number of calls
    beyond those of gold as a share of those of gold, at most 1 (the paper leaves it open). Bounds: -gamma to 1.
    """
    if evidence.is_undecidable or evidence.state_match is None:
        return None
    beyond = max(0, evidence.calls - evidence.gold_calls) / max(1, evidence.gold_calls)
    both = settings.alpha * evidence.trajectory_match + (1 - settings.alpha) * evidence.state_match
    return both - settings.gamma * min(1.0, beyond)
