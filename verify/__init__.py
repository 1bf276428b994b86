"""State checks and their own tests, replay, verdicts."""

from verify.checks import audit, derive_checks, run_check
from verify.verdicts import Replay, replay, trajectory_match, verify_trajectory

__all__ = ["Replay", "audit", "derive_checks", "replay", "run_check", "trajectory_match", "verify_trajectory"]
