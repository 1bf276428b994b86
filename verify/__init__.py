"""State checks and their own tests, replay, verdicts, rewards, pruning, selection."""

from verify.auditing import AuditSettings, audit_task
from verify.checks import audit, checks_of, derive_checks, run_check
from verify.code_checks import CodeChecks
from verify.matching import trajectory_match
from verify.pruning import pruned
from verify.selection import select_best
from verify.settings import VerifySettings
from verify.verdicts import Replay, replay, verify_trajectory

__all__ = [
    "AuditSettings",
    "CodeChecks",
    "Replay",
    "VerifySettings",
    "audit",
    "audit_task",
    "checks_of",
    "derive_checks",
    "pruned",
    "replay",
    "run_check",
    "select_best",
    "trajectory_match",
    "verify_trajectory",
]
