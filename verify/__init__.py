"""State checks and their own tests, replay, verdicts, rewards, pruning, selection, fidelity of the user, the judge."""

import sys
from types import ModuleType

from trajsmith.verify.answer_text import select_answer_text
from trajsmith.verify.blocking import verify
from trajsmith.verify.check_audit import AuditSettings, audit_task
from trajsmith.verify.check_author import CHECK_FUNCTION, CHECKLIST
from trajsmith.verify.checks import build_checks, check_gold_run, derive_checks, run_check
from trajsmith.verify.code_checks import CodeCheckRunner
from trajsmith.verify.confirmation import ConfirmationFault, ConfirmationReport, find_confirmation_faults
from trajsmith.verify.discourse import DiscourseModel, get_entity_kind
from trajsmith.verify.discourse_entities import DiscourseEntity
from trajsmith.verify.discourse_resolution import resolve_expression, resolve_values
from trajsmith.verify.fidelity import find_user_faults
from trajsmith.verify.judge import JUDGE, Judge, JudgeSettings, find_open_questions
from trajsmith.verify.matching import compute_trajectory_match
from trajsmith.verify.pruning import prune_trajectory
from trajsmith.verify.reference_check import ReferenceCheck, ReferenceFault
from trajsmith.verify.reference_faults import find_reference_faults, find_task_faults
from trajsmith.verify.rubric_author import RUBRIC, RubricSettings, add_written_criteria
from trajsmith.verify.rubric_comparison import JudgedPlay, drop_common_criteria
from trajsmith.verify.rubric_judge import RUBRIC_JUDGE, RubricJudge
from trajsmith.verify.rubrics import count_criteria_by_outcome, derive_rubric, find_common_criteria
from trajsmith.verify.selection import select_best
from trajsmith.verify.settings import VerifySettings
from trajsmith.verify.spoken_turns import build_gold_turn
from trajsmith.verify.task_checks import CheckAuthor, add_written_checks
from trajsmith.verify.unanswered_questions import UnansweredQuestion, find_unanswered_questions
from trajsmith.verify.undoing import find_undoing_call
from trajsmith.verify.verdicts import ReplayResult, build_evidence, replay_trajectory, verify_trajectory
from trajsmith.verify.written_checks import WrittenCheckSettings

__all__ = [
    "CHECKLIST",
    "CHECK_FUNCTION",
    "JUDGE",
    "RUBRIC",
    "RUBRIC_JUDGE",
    "AuditSettings",
    "CheckAuthor",
    "CodeCheckRunner",
    "ConfirmationFault",
    "ConfirmationReport",
    "DiscourseEntity",
    "DiscourseModel",
    "Judge",
    "JudgeSettings",
    "JudgedPlay",
    "ReferenceCheck",
    "ReferenceFault",
    "ReplayResult",
    "RubricJudge",
    "RubricSettings",
    "UnansweredQuestion",
    "VerifySettings",
    "WrittenCheckSettings",
    "add_written_checks",
    "add_written_criteria",
    "audit_task",
    "build_checks",
    "build_evidence",
    "build_gold_turn",
    "check_gold_run",
    "compute_trajectory_match",
    "count_criteria_by_outcome",
    "derive_checks",
    "derive_rubric",
    "drop_common_criteria",
    "find_common_criteria",
    "find_confirmation_faults",
    "find_open_questions",
    "find_reference_faults",
    "find_task_faults",
    "find_unanswered_questions",
    "find_undoing_call",
    "find_user_faults",
    "get_entity_kind",
    "prune_trajectory",
    "replay_trajectory",
    "resolve_expression",
    "resolve_values",
    "run_check",
    "select_answer_text",
    "select_best",
    "verify",
    "verify_trajectory",
]


class _CallablePackage(ModuleType):
    """The package as the function `trajsmith.verify`, which has the same name."""

    __call__ = staticmethod(verify)


sys.modules[__name__].__class__ = _CallablePackage
