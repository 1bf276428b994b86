"""Environment checker: examines any environment without a model."""

from trajsmith.envcheck.check_session import CheckPlan, CheckSession
from trajsmith.envcheck.conformance import STATES, ConformanceRecord, record_conformance, replay_conformance
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
    "STATES",
    "CaseEvidence",
    "CaseStep",
    "CheckCase",
    "CheckPlan",
    "CheckSession",
    "CloseableSource",
    "ConformanceRecord",
    "EnvironmentReport",
    "Finding",
    "FindingReplay",
    "LeakReportingSource",
    "ReopenableSource",
    "StartState",
    "StaticallyCheckedSource",
    "check_environment",
    "record_conformance",
    "render_reports_html",
    "replay_conformance",
    "replay_finding",
]
