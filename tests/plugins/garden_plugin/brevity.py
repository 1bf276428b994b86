"""A reward."""

from trajsmith.verify.rewards import REWARDS


@REWARDS.register("brevity")
def brevity(evidence, settings):
    return None if evidence.is_undecidable else 1 / (1 + evidence.calls)
