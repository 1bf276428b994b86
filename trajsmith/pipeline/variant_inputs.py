"""Inputs of the stage `vary`: every written task, and one entry per variant of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.querygen.vary import choose_variants
from trajsmith.records import Task, TaskHeader
from trajsmith.records.journal import read_records

if TYPE_CHECKING:
    from trajsmith.pipeline.run_context import RunContext
    from trajsmith.pipeline.top_up_rounds import TopUpRound

TASKS, VARIED = "tasks.jsonl", "varied.jsonl"
AnyTask = TypeVar("AnyTask", Task, TaskHeader)
VaryInput: TypeAlias = tuple[Task, str | None]


class VaryPlan:
    """Pairs of a task and a variant's name, the task itself (None) first; with a known length."""

    def __init__(self, context: "RunContext", rounds: "Sequence[TopUpRound]" = ()) -> None:
        """`rounds` say from which task on which variants are made; without them, those of the configuration."""
        self.run = context.run
        self.rates = dict(context.config.vary.rates)
        self.rounds = rounds

    def __len__(self) -> int:
        """Exact: which variants a task gets follows from its seed, so only the heads of the tasks are read."""
        return sum(1 + len(names) for _, names in self._chosen(TaskHeader))

    def __iter__(self) -> Iterator[tuple[str, VaryInput]]:
        for task, names in self._chosen(Task):
            yield task.id, (task, None)
            for name in names:
                yield f"{task.id}.{name}", (task, name)

    def _chosen(self, kind: type[AnyTask]) -> Iterator[tuple[AnyTask, list[str]]]:
        """Every written task, read as `kind` says, with the variants that are derived from it."""
        for number, task in enumerate(read_records(self.run.file(TASKS), kind)):
            now = next((each for each in reversed(self.rounds) if each.tasks <= number), None)
            yield task, choose_variants(task.seed, now.rates if now else self.rates)


def find_tasks_file(context: "RunContext") -> str:
    """The file of the tasks that are played."""
    return VARIED if context.config.vary.on else TASKS


def find_written_tasks(run: RunDirectory) -> Path:
    """The same of a run that is only looked at."""
    varied = run.file(VARIED)
    return varied if varied.is_file() else run.file(TASKS)
