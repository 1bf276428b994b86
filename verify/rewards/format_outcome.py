"""Format first, then the outcome of the whole task."""

from trajsmith.verify.rewards._evidence import REWARDS, RewardEvidence, RewardSettings

FORMAT_ERRORS = frozenset({"unknown_tool", "invalid_arguments", "malformed", "not_shown"})


@REWARDS.register("format_outcome")
def reward(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
    """-1 at the first format error, whatever comes after it; else 1 completed, 0.1 partial, 0 otherwise.

    Agent World Model, section 4.1 and appendix A.4: a call of a tool that does not exist, or with arguments that its
    schema forbids, is a format error. A refusal by the environment's rules is none.
    """
    if any(error in FORMAT_ERRORS for error in evidence.errors):
        return -1.0
    if evidence.is_undecidable:
        return None
    return {"completed": 1.0, "partial": 0.1}.get(evidence.outcome, 0.0)
