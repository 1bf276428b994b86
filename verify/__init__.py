"""State checks and their own tests, replay, verdicts, rewards, pruning, selection, fidelity of the user, the judge."""

from verify.auditing import AuditSettings, audit_task
from verify.checks import audit, checks_of, derive_checks, run_check
from verify.code_checks import CodeChecks
from verify.fidelity import user_faults
from verify.judge import JUDGE, Judge, JudgeSettings, open_questions
from verify.matching import trajectory_match
from verify.pruning import pruned
from verify.selection import select_best
from verify.settings import VerifySettings
from verify.verdicts import Replay, replay, verify_trajectory

__all__ = [
    "JUDGE",
    "AuditSettings",
    "CodeChecks",
    "Judge",
    "JudgeSettings",
    "Replay",
    "VerifySettings",
    "audit",
    "audit_task",
    "checks_of",
    "derive_checks",
    "open_questions",
    "pruned",
    "replay",
    "run_check",
    "select_best",
    "trajectory_match",
    "user_faults",
    "verify_trajectory",
]
