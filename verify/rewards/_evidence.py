"""Inputs of the reward functions, and their registry."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from trajsmith.records import CheckOutcome, CriterionOutcome, FrozenModel, Outcome, Registry, StepLabel

Reward = Callable[["RewardEvidence", "RewardSettings"], float | None]
"""A pure function to a number, or None where it cannot tell."""

REWARDS: Registry[Reward] = Registry("rewards", "trajsmith.verify.rewards")
_STEP_REWARDS: list[Reward] = []
RewardName = Annotated[str, AfterValidator(REWARDS.check_name)]


def needs_step_labels(reward: Reward) -> Reward:
    """Declare that a reward needs the labels of calls, which take runs of their own; a decorator."""
    _STEP_REWARDS.append(reward)
    return reward


def find_step_rewards(names: Iterable[str]) -> list[str]:
    """Return the names of the rewards that need the labels of calls; all named ones are imported.

    Raises:
        InputError: One cannot be imported.
    """
    return [name for name in names if REWARDS.get(name) in _STEP_REWARDS]


class RewardSettings(FrozenModel):
    """Names and weights of the rewards of a verdict."""

    names: tuple[RewardName, ...] = Field(("checks", "composite", "format_outcome", "rubric"), min_length=1)
    """Rewards that a verdict holds; `trajsmith plugins --kind rewards` lists all."""
    alpha: float = Field(0.5, ge=0, le=1)
    """Weight of the trajectory match in `composite`; that of the state is what is missing to 1."""
    gamma: float = Field(0.1, ge=0)
    """Weight of the length in `composite`."""


@dataclass(frozen=True)
class RewardEvidence:
    """Results of execution for one trajectory.

    Attributes:
        outcome: What was decided.
        checks: Outcome of every check.
        state_match: The final state is the gold state; None if that could not be observed.
        trajectory_match: Share of gold calls that were made.
        gold_calls: Number of gold calls.
        calls: Number of calls that were made, by the agent and by the user.
        errors: Kind of refusal of each call of the agent in order, None where it succeeded.
        criteria: Outcome of every criterion of the task's rubric; empty if it has none.
        step_labels: Labels of the agent's calls in a completed play; None if there are none.
    """

    outcome: Outcome
    checks: Sequence[CheckOutcome]
    state_match: bool | None
    trajectory_match: float
    gold_calls: int
    calls: int
    errors: Sequence[str | None] = ()
    criteria: Sequence[CriterionOutcome] = ()
    step_labels: Sequence[StepLabel] | None = None

    @property
    def is_undecidable(self) -> bool:
        """Return True if the environment or the user broke: that says nothing of the agent."""
        return self.outcome in ("environment_error", "user_error", "undecided")

    def list_criteria(self) -> list[CriterionOutcome]:
        """List the criteria of the rubric; of a task without one, each check is a criterion.

        Empty if the environment or the user broke.
        """
        if self.outcome in ("environment_error", "user_error"):
            return []
        if self.criteria:
            return list(self.criteria)
        return [
            CriterionOutcome(says=check.says, about="installed", met=check.passed, detail=check.detail)
            for check in self.checks
        ]
