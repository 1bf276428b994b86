"""The checks of the doctor, one statement about good environments each."""

from envgen.doctor.checks.again import Clock, Determinism, Gate, Isolation, LeftBehind, Process
from envgen.doctor.checks.answers import AnsweredNames, Answers, Remaining
from envgen.doctor.checks.arguments import Amounts, Arrives
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.boundaries import Boundaries
from envgen.doctor.checks.calls import Crash, Output, Reachable, Reason, RefusedChange, Slow
from envgen.doctor.checks.days import LastDay, PastDays
from envgen.doctor.checks.effects import Effect, SilentWrite, Writes
from envgen.doctor.checks.invariants import FACT_CHECKS
from envgen.doctor.checks.lists import Complete, Filters, Lengths
from envgen.doctor.checks.overwrites import Overwrites
from envgen.doctor.checks.repeats import Twice, Undo
from envgen.doctor.checks.saved import RoundTrip, Saved
from envgen.doctor.checks.schema import Schemas, Signature, Starts
from envgen.doctor.checks.stated import ParameterLimits, SameNumbers, StatedLimits
from envgen.doctor.checks.unknown import Unknown
from envgen.doctor.checks.vain import Inert, Lost

CHECKS: tuple[Check, ...] = (
    Starts(),
    Schemas(),
    Signature(),
    Crash(),
    Output(),
    Reason(),
    RefusedChange(),
    Effect(),
    Writes(),
    SilentWrite(),
    *FACT_CHECKS,
    Unknown(),
    Arrives(),
    Lost(),
    Amounts(),
    Inert(),
    Lengths(),
    Filters(),
    Complete(),
    Boundaries(),
    StatedLimits(),
    ParameterLimits(),
    SameNumbers(),
    LastDay(),
    PastDays(),
    Overwrites(),
    Twice(),
    Undo(),
    Answers(),
    AnsweredNames(),
    Remaining(),
    Determinism(),
    Clock(),
    Process(),
    Isolation(),
    LeftBehind(),
    Gate(),
    RoundTrip(),
    Saved(),
    Reachable(),
    Slow(),
)

__all__ = ["CHECKS", "Check", "Suspicion"]
