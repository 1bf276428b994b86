"""Difficulty of tasks, measured by playing: pass rates of named solvers, and the label that they give a task."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from trajsmith.records import Difficulty, FrozenModel, SolverAttempt
from trajsmith.records.journal import read_lines

ATTEMPTS = "attempts.jsonl"
"""File of a run that has the plays of solvers."""
AGREEING = 2
"""Plays that must pass before a task counts as solvable (Agent-World 3.1.1: two of five)."""
HARD, EASY = 1 / 3, 2 / 3
"""Pass rates below which a task is hard, and from which it is easy."""
UNMEASURED = "unmeasured"
"""Label of a task that no solver has played often enough."""


class TaskDifficulty(FrozenModel):
    """Pass rates of the solvers on one task."""

    task_id: str
    rates: dict[str, float]
    """Solver to the share of its scored plays that passed."""
    passed: int
    plays: int
    """Scored plays."""

    @property
    def rate(self) -> float:
        """Return the mean of the solvers' pass rates."""
        return sum(self.rates.values()) / len(self.rates)

    @property
    def label(self) -> Difficulty:
        """Return the difficulty: `unsolved` if fewer than two plays passed, `trivial` if all did."""
        if self.passed < AGREEING:
            return "unsolved"
        if self.passed == self.plays:
            return "trivial"
        return "hard" if self.rate < HARD else "medium" if self.rate < EASY else "easy"


def read_attempts(file: Path, every_version: bool = False) -> list[SolverAttempt]:
    """Read the plays of a run, of each solver those of the version that was written last; none if there is no file.

    Of several lines on one play, as after a fault of a model's server, the last one counts.

    Args:
        file: The file.
        every_version: Read the plays of all versions.

    Raises:
        InputError: A line is something else.
    """
    lines = [SolverAttempt.from_line(line, f"{file}:{number}") for number, line, _ in read_lines(file)]
    newest = {one.solver: one.version for one in lines}
    plays = {(one.task_id, one.solver, one.version, one.sample): one for one in lines}
    return [one for one in plays.values() if every_version or one.version == newest[one.solver]]


def measure_difficulty(attempts: Iterable[SolverAttempt]) -> dict[str, TaskDifficulty]:
    """Return the difficulty of each task with at least two scored plays, by id in order of the first play."""
    plays = defaultdict[str, dict[str, list[bool]]](lambda: defaultdict(list))
    for attempt in attempts:
        if attempt.passed is not None:
            plays[attempt.task_id][attempt.solver].append(attempt.passed)
    measured = {}
    for name, solvers in plays.items():
        scored = [passed for outcomes in solvers.values() for passed in outcomes]
        if len(scored) >= AGREEING:
            rates = {solver: sum(outcomes) / len(outcomes) for solver, outcomes in sorted(solvers.items())}
            measured[name] = TaskDifficulty(task_id=name, rates=rates, passed=sum(scored), plays=len(scored))
    return measured
