"""The doctor: examines any environment without a model."""

from envgen.doctor.abilities import Closing, Gated, Looking, Reopening
from envgen.doctor.case import Case, Evidence, Finding, Start, Step
from envgen.doctor.exam import Exam, Plan
from envgen.doctor.page import page
from envgen.doctor.replay import Replay, replay
from envgen.doctor.report import Report, examine

__all__ = [
    "Case",
    "Closing",
    "Evidence",
    "Exam",
    "Finding",
    "Gated",
    "Looking",
    "Plan",
    "Reopening",
    "Replay",
    "Report",
    "Start",
    "Step",
    "examine",
    "page",
    "replay",
]
