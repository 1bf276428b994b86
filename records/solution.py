"""Solutions of programmatic tasks: the program as Python text, its answer, and sentences that tell it."""

from typing import Literal

from trajsmith.records.canonical import JsonValue
from trajsmith.records.record import FrozenModel

TaskSource = Literal["chain", "program", "long", "state"]
"""Where a task starts: a sampled chain of tools (EnvFactory), a solution program (Agent-World 3.1.1), a program with
many calls, or a change of the state that is asked for (EnvScaler 4.1, AWM 3.2)."""


class ProgramSolution(FrozenModel):
    """Solution program of a task, proved by execution."""

    python: str
    """Python text that defines `solve(call)`; empty for a task that no program was written for."""
    operations: tuple[str, ...] = ()
    """Kinds of its operations: "list", "loop", "keep", "join", "write", "sum"."""
    answer: JsonValue = None
    """The structured answer; None where the request asks for changes only."""
    sentences: tuple[str, ...] = ()
    """Sentences that tell it, any of which will do."""
