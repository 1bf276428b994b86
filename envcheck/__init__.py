"""Environment checker: examines any environment without a model."""

from trajsmith.envcheck.check_session import CheckPlan, CheckSession
from trajsmith.envcheck.finding_replay import FindingReplay, replay_finding
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase, Finding, StartState
from trajsmith.envcheck.report import EnvironmentReport, check_environment, render_reports_html
from trajsmith.envcheck.source_capabilities import (
    CloseableSource,
    LeakReportingSource,
    ReopenableSource,
    StaticallyCheckedSource,
)

__all__ = [
    "CaseEvidence",
    "CaseStep",
    "CheckCase",
    "CheckPlan",
    "CheckSession",
    "CloseableSource",
    "EnvironmentReport",
    "Finding",
    "FindingReplay",
    "LeakReportingSource",
    "ReopenableSource",
    "StartState",
    "StaticallyCheckedSource",
    "check_environment",
    "render_reports_html",
    "replay_finding",
]
