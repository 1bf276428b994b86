"""The rubric, by weight."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("rubric_weighted")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """Weight of the criteria that are met as a share of those that were decided; Agent-World 3.2.1. Bounds: 0 to 1.

    Criteria that are left out do not count, so that among candidates of one task it says which is better; it is no
    measure of what all of them have in common.
    """
    decided = [each for each in evidence.list_criteria() if each.counts and each.met is not None]
    whole = sum(criterion.weight for criterion in decided)
    return sum(criterion.weight for criterion in decided if criterion.met) / whole if whole else None
