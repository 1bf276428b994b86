"""Verdicts: what execution says of a trajectory."""

from typing import ClassVar, Literal

from trajectory.record import Frozen, Record

Outcome = Literal["completed", "partial", "agent_error", "environment_error", "user_error", "undecided"]


class CheckOutcome(Frozen):
    """One check, run. `passed` is None if the check itself could not tell (it crashed, a service was out)."""

    says: str
    kind: str
    passed: bool | None = None
    detail: str = ""


class Verdict(Record):
    """What was decided about one trajectory, and why."""

    PREFIX: ClassVar[str] = "verdict"

    trajectory_id: str
    task_id: str
    environment: str
    outcome: Outcome
    checks: tuple[CheckOutcome, ...]
    state_match: bool | None = None
    """Final state equals the gold state; None if it could not be observed."""
    replay_match: bool | None = None
    """Replay from the initial state gave the same state hashes; None if replay was not possible."""
    trajectory_match: float
    """Share of gold calls found among the calls made, in order."""
    rewards: dict[str, float] = {}
    accepted: bool
    reasons: tuple[str, ...] = ()
    """Why it was not accepted; empty if it was."""
