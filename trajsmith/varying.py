"""The inputs of the stage `vary`: every written task as it is, and once for each variant that is derived from it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from querygen.vary import chosen
from trajectory import Task, TaskHead
from trajsmith.journal import read_records
from trajsmith.rundir import RunDirectory

if TYPE_CHECKING:
    from trajsmith.rounds import Round
    from trajsmith.world import World

TASKS, VARIED = "tasks.jsonl", "varied.jsonl"
AnyTask = TypeVar("AnyTask", Task, TaskHead)
VaryInput: TypeAlias = tuple[Task, str | None]


class VaryPlan:
    """Pairs of a task and a variant's name, the task itself (None) first; with a known length."""

    def __init__(self, world: "World", rounds: "Sequence[Round]" = ()) -> None:
        """`rounds` say from which task on which variants are made; without them, those of the configuration."""
        self.run = world.run
        self.rates = dict(world.config.vary.rates)
        self.rounds = rounds

    def __len__(self) -> int:
        """Exact: which variants a task gets follows from its seed, so only the heads of the tasks are read."""
        return sum(1 + len(names) for _, names in self._chosen(TaskHead))

    def __iter__(self) -> Iterator[tuple[str, VaryInput]]:
        for task, names in self._chosen(Task):
            yield task.id, (task, None)
            for name in names:
                yield f"{task.id}.{name}", (task, name)

    def _chosen(self, kind: type[AnyTask]) -> Iterator[tuple[AnyTask, list[str]]]:
        """Every written task, read as `kind` says, with the variants that are derived from it."""
        for number, task in enumerate(read_records(self.run.file(TASKS), kind)):
            now = next((each for each in reversed(self.rounds) if each.tasks <= number), None)
            yield task, chosen(task.seed, now.rates if now else self.rates)


def tasks_file(world: "World") -> str:
    """The file of the tasks that are played."""
    return VARIED if world.config.vary.on else TASKS


def written_tasks(run: RunDirectory) -> Path:
    """The same of a run that is only looked at."""
    varied = run.file(VARIED)
    return varied if varied.is_file() else run.file(TASKS)
