"""The rubric, all or nothing."""

from trajsmith.records import CriterionOutcome
from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings


@REWARDS.register("rubric")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """1 if every required criterion is met, else 0; Agent-World 3.2.1, "Structured Verifiable Reward", both cases.

    One that is not met decides; where all others are met and one could not be decided, nobody can tell. Of the criteria
    that do not tell the candidates apart, those that all meet change nothing, and one for a judge that none meets is
    dropped. One that execution proved on the gold run and that none meets still decides: the candidates are all wrong.
    """
    decided = [each.met for each in evidence.list_criteria() if each.required and _decides(each)]
    if False in decided:
        return 0.0
    return None if not decided or None in decided else 1.0


def _decides(criterion: CriterionOutcome) -> bool:
    if criterion.left_out == "met_by_none":
        return criterion.about != "judged"
    return criterion.counts or criterion.left_out == "met_by_all"
