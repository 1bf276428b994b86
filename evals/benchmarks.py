"""Benchmarks by name: tasks from elsewhere, with the environments that they are played on. None is built in."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol

from pydantic import AfterValidator

from trajsmith.evals.episodes import EvalContext
from trajsmith.records import Registry, Task


class Benchmark(Protocol):
    """A function that gives tasks to play; their checks and gold states score the episodes."""

    async def __call__(self, limit: int | None) -> tuple[Sequence[Task], Mapping[str, EvalContext]]:
        """Return at most `limit` tasks of each environment, and what each environment is evaluated with, by name."""


BENCHMARKS: Registry[Benchmark] = Registry("benchmarks", {})
BenchmarkName = Annotated[str, AfterValidator(BENCHMARKS.check_name)]
