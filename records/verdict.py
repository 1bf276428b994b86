"""Verdicts: the result of verifying a trajectory by execution."""

from typing import ClassVar, Literal

from trajsmith.records.canonical import JsonObject
from trajsmith.records.record import FrozenModel, Record
from trajsmith.records.rubric import CriterionOutcome

Outcome = Literal["completed", "partial", "agent_error", "environment_error", "user_error", "undecided"]

BLAME: dict[Outcome, Literal["agent", "environment", "user", "undecided"] | None] = {
    "completed": None,
    "partial": "agent",
    "agent_error": "agent",
    "environment_error": "environment",
    "user_error": "user",
    "undecided": "undecided",
}
"""Outcome to whose fault it is."""


class CheckOutcome(FrozenModel):
    """One check, run. `passed` is None if the check itself could not tell (it crashed, a service was out)."""

    says: str
    kind: str
    passed: bool | None = None
    detail: str = ""


class JudgeOpinion(FrozenModel):
    """Judgment of a model where execution could not decide, or beside it to measure the agreement."""

    model: str
    outcome: Outcome
    """`undecided` if it gave no usable answer."""
    questions: tuple[str, ...]
    """What execution left open; empty if it was asked only to compare."""
    decisive: bool
    """True if the verdict's outcome is the judge's."""
    reasoning: str = ""


class TurnVerdict(FrozenModel):
    """Verdict on one turn."""

    outcome: Outcome
    state_match: bool | None = None
    """The state after the turn equals the gold state after it."""
    checks: int
    passed: int
    """Checks that passed; one that could not tell is not among them."""


class PrunedCall(FrozenModel):
    """Call that was removed because the run without it has the same outcome."""

    event: int
    """Index among the events of the trajectory."""
    tool: str
    arguments: JsonObject
    why: str
    """What showed that it is not needed."""


class StepLabel(FrozenModel):
    """Worth of one call of the agent to the outcome, shown by runs without it."""

    event: int
    """Index among the events of the trajectory."""
    label: Literal["needed", "redundant", "harmful", "recovering"]
    why: str
    """What the runs showed."""


class Verdict(Record):
    """Verdict on one trajectory, with its reasons."""

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
    judge: JudgeOpinion | None = None
    prompts: dict[str, str] = {}
    """Prompts that the judge was given: name to hash of the file."""
    turns: tuple[TurnVerdict, ...] = ()
    """One per turn that was played."""
    pruned: tuple[PrunedCall, ...] = ()
    """Calls that the exported row does not have."""
    rubric: tuple[CriterionOutcome, ...] = ()
    """Criteria of the task's rubric; empty if it has none, or if nothing can be said of the agent."""
    step_labels: tuple[StepLabel, ...] | None = None
    """One per call of the agent in an accepted trajectory; None if they were not asked for, or could not be told."""

    @property
    def blame(self) -> Literal["agent", "environment", "user", "undecided"] | None:
        """Return whose fault the outcome is; None if all went well."""
        return BLAME[self.outcome]
