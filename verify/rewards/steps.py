"""Share of the calls that were worth making."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings, needs_step_labels

WORTH = frozenset({"needed", "recovering"})


@REWARDS.register("steps")
@needs_step_labels
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """Calls of the agent that are needed or recovering, as a share of its calls. Bounds: 0 to 1.

    The labels come from runs without each call, which need a right end to compare with: a play that fails is 0. A
    completed play without calls is 1, since it makes none in vain. Without labels nobody can tell.
    """
    if evidence.is_undecidable:
        return None
    if evidence.outcome != "completed":
        return 0.0
    if evidence.step_labels is None:
        return None
    worth = [label.label in WORTH for label in evidence.step_labels]
    return sum(worth) / len(worth) if worth else 1.0
