"""The checks of the environment checker; each states one property of good environments."""

from trajsmith.envcheck.checks.argument_effects import ArgumentsArrive, ExactAmounts
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.boundaries import Boundaries
from trajsmith.envcheck.checks.call_contract import (
    Crash,
    OutputSchema,
    Reachable,
    RefusalReason,
    RefusedChange,
    SlowTool,
    UnmarkedRefusal,
)
from trajsmith.envcheck.checks.deadlines import LastDay, PastDays
from trajsmith.envcheck.checks.declared_effects import ReadOnlyEffect, SilentWrite, WriteEffect
from trajsmith.envcheck.checks.determinism import (
    ClockIndependence,
    Determinism,
    NoSideEffects,
    ProcessIndependence,
    SessionIsolation,
    StaticGate,
)
from trajsmith.envcheck.checks.invariants import FACT_CHECKS
from trajsmith.envcheck.checks.list_results import ListCompleteness, ListFilters, ListLengths
from trajsmith.envcheck.checks.overwrites import Overwrites
from trajsmith.envcheck.checks.repeated_actions import EndedTwice, UndoRestores
from trajsmith.envcheck.checks.result_consistency import AnsweredNamesExist, AnswersMatchState, RemainingNotNegative
from trajsmith.envcheck.checks.save_restore import RestoredState, StateRoundTrip
from trajsmith.envcheck.checks.schema_conformance import SignatureMatchesSchema, ValidSchemas, ValidStarts
from trajsmith.envcheck.checks.stated_limits import ParameterLimits, SameNumbers, StatedLimits
from trajsmith.envcheck.checks.unknown_identifiers import UnknownIdentifier
from trajsmith.envcheck.checks.unused_inputs import InertParameter, LostText

CHECKS: tuple[Check, ...] = (
    ValidStarts(),
    ValidSchemas(),
    SignatureMatchesSchema(),
    Crash(),
    OutputSchema(),
    RefusalReason(),
    UnmarkedRefusal(),
    RefusedChange(),
    ReadOnlyEffect(),
    WriteEffect(),
    SilentWrite(),
    *FACT_CHECKS,
    UnknownIdentifier(),
    ArgumentsArrive(),
    LostText(),
    ExactAmounts(),
    InertParameter(),
    ListLengths(),
    ListFilters(),
    ListCompleteness(),
    Boundaries(),
    StatedLimits(),
    ParameterLimits(),
    SameNumbers(),
    LastDay(),
    PastDays(),
    Overwrites(),
    EndedTwice(),
    UndoRestores(),
    AnswersMatchState(),
    AnsweredNamesExist(),
    RemainingNotNegative(),
    Determinism(),
    ClockIndependence(),
    ProcessIndependence(),
    SessionIsolation(),
    NoSideEffects(),
    StaticGate(),
    StateRoundTrip(),
    RestoredState(),
    Reachable(),
    SlowTool(),
)

__all__ = ["CHECKS", "Check", "Suspicion"]
