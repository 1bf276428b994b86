"""How trajectories are verified."""

from environments.sandbox.settings import SandboxSettings
from trajectory import Frozen
from verify.code_checks import CHECK_SANDBOX
from verify.rewards import RewardSettings


class VerifySettings(Frozen):
    """How trajectories are verified and selected."""

    rewards: RewardSettings = RewardSettings()
    """Which rewards a verdict has, and their weights."""
    prune: bool = True
    """Take calls out of accepted trajectories that were not needed."""
    best: bool = True
    """Accept only the best candidate of each task."""
    sandbox: SandboxSettings = CHECK_SANDBOX
    """How check functions that somebody wrote are run."""
