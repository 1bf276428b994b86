"""Plays of tasks by named solvers, from which the difficulty of a task is measured (Agent-World 3.1.1)."""

from typing import ClassVar, Literal

from trajsmith.records.record import Record

Difficulty = Literal["unsolved", "hard", "medium", "easy", "trivial"]
"""Label of a task by the share of plays that passed."""


PASSING = frozenset({"timeout", "connection", "rate_limit", "server"})
"""Faults of a model's server that may be gone at the next try."""


class ScoredPlay(Record):
    """One scored play of a task."""

    task_id: str
    sample: int
    """Number among the plays of the same task by the same agent, from 0."""
    passed: bool | None = None
    """None if the environment, the user or the model's server failed: such a play says nothing of the agent."""
    checks: float
    """Share of the checks that passed."""
    error: str = ""
    """What went wrong first, from a small vocabulary; empty if it passed."""
    calls: int

    @property
    def should_retry(self) -> bool:
        """Return True if only the model's server failed, so that resumed work plays the task again."""
        return self.passed is None and self.error.removeprefix("model_") in PASSING


class SolverAttempt(ScoredPlay):
    """One play of a task by a solver."""

    PREFIX: ClassVar[str] = "attempt"
    VOLATILE: ClassVar[frozenset[str]] = frozenset({"date"})

    solver: str
    """Name under which the solver was given, such as "scripted:0.1" or the folder of a model."""
    version: str
    """Hash of what decides how the solver plays: settings and package, or the files of a model."""
    actions: tuple[str, ...] = ()
    """Calls that changed the state, as text, in order of their text."""
    stated: tuple[str, ...] = ()
    """Values of the tools' results that its answers tell, in order of their text."""
    criteria: tuple[bool | None, ...] = ()
    """Of each criterion of the task's rubric, whether it was met; None where nobody could tell."""
    date: str = ""
    """Day of the play, as YYYY-MM-DD."""
