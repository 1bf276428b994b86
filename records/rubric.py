"""Rubrics of tasks (Agent-World 3.1.1): weighted criteria, decided by execution where they can be, else by a judge."""

from typing import Literal

from pydantic import Field

from trajsmith.records.checks import Check
from trajsmith.records.record import FrozenModel

Topic = Literal[
    "effect", "untouched", "policy", "answer", "confirmation", "question", "conduct", "claims", "effort", "format",
    "written", "judged", "installed",
]  # fmt: skip
"""Subject of a criterion: what must have changed, what must not, rules, what must be told, a yes before calls that need
one, what must be asked for, what a variant or the shown tools demand, values that nobody gave, the number of calls,
calls that can be read, and those that a model wrote (decided by execution, or by a judge) or a plug-in added."""
LeftOut = Literal["", "no_judge", "not_examined", "met_by_all", "met_by_none"]
"""Why a criterion does not count in a play: nobody can decide it, or it does not tell the candidates apart."""


class Criterion(FrozenModel):
    """Criterion of a task's rubric."""

    says: str
    about: Topic
    turn: int | None = None
    """Turn that it is about, from 0; None for the whole dialogue."""
    weight: float = Field(1.0, gt=0)
    required: bool = True
    """False for manners such as the number of calls: they count in the weighted reward only."""
    checks: tuple[tuple[int, int], ...] = ()
    """Checks of the task that decide it, as turn and number in it; all must pass."""
    check: Check | None = None
    """Check of its own, run at the end; of criteria that a model wrote."""
    author: str = ""
    """Name of the model that wrote it; empty for one derived from the task."""


class CriterionOutcome(FrozenModel):
    """One criterion, decided for one play."""

    says: str
    about: Topic
    weight: float = 1.0
    required: bool = True
    met: bool | None = None
    """None if nobody could tell."""
    detail: str = ""
    left_out: LeftOut = ""

    @property
    def counts(self) -> bool:
        """Return True if it counts in the rewards of the play."""
        return not self.left_out
