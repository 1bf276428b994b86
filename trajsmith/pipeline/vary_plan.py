"""Inputs of the stage that derives variants: which tasks get which ones."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from trajsmith.pipeline.raw_records import RawReader
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import TASKS
from trajsmith.pipeline.top_up_rounds import TopUpRound
from trajsmith.querygen.vary import choose_variants
from trajsmith.records import Task, TaskHeader, derive_seed, read_records

VaryInput: TypeAlias = tuple[Task, str | None]


MOST_VARIANTS = 2
"""Variants of one task in a run: more would tell the same story again and again."""


class VaryPlan:
    """Pairs of a task and a variant's name, the task itself (None) first; with a known length."""

    def __init__(self, context: RunContext, rounds: Sequence[TopUpRound] = (), raw: bool = False) -> None:
        """`rounds` say from which task on which variants are made; without them, those of the configuration.

        `raw` leaves the tasks as lines, for another process to parse.
        """
        self.raw = raw
        self.run = context.run
        self.rates = dict(context.config.vary.rates)
        self.rounds = rounds

    def __len__(self) -> int:
        """Exact: which variants a task gets follows from its seed, so only the heads of the tasks are read."""
        return sum(1 + len(names) for _, names in self._chosen(TaskHeader))

    def __iter__(self) -> Iterator[tuple[str, VaryInput]]:
        for task, names in self._chosen(RawReader(Task) if self.raw else Task):
            yield task.id, (task, None)
            for name in names:
                yield f"{task.id}.{name}", (task, name)

    def _chosen(self, kind: Any) -> Iterator[tuple[Any, list[str]]]:
        """Every written task, read as `kind` says, with the variants that are derived from it."""
        for number, task in enumerate(read_records(self.run.file(TASKS), kind)):
            now = next((each for each in reversed(self.rounds) if each.tasks <= number), None)
            names = choose_variants(task.seed, now.rates if now else self.rates)
            yield task, sorted(names, key=lambda name: derive_seed(task.seed, "variant order", name))[:MOST_VARIANTS]
