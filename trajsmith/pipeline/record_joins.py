"""Reading the record files of a run together, as streams: none of them is ever held in memory."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from trajsmith.pipeline.raw_records import RawReader
from trajsmith.pipeline.run_directory import TRAJECTORIES, VERDICTS, RunDirectory, find_written_tasks
from trajsmith.records import (
    RecordLookup,
    RunError,
    Task,
    TaskHeader,
    Trajectory,
    Verdict,
    count_records,
    has_records,
    read_records,
    read_whole_records,
)

AnyTask = TypeVar("AnyTask", Task, TaskHeader)


class JudgedTrajectory(NamedTuple):
    """One trajectory with its task and its verdict."""

    task: Task
    trajectory: Trajectory
    verdict: Verdict


class PlayedPairs:
    """Pairs of task and trajectory, in the order of the trajectories."""

    def __init__(self, run: RunDirectory, raw: bool = False) -> None:
        """`raw` leaves the records as lines, for another process to parse."""
        self.run = run
        self.raw = raw

    def __len__(self) -> int:
        return count_records(self.run.file(TRAJECTORIES))

    def __iter__(self) -> Iterator[tuple[str, tuple[Task, Trajectory]]]:
        return _pairs(self.run, *((RawReader(Task), RawReader(Trajectory)) if self.raw else (Task, Trajectory)))

    def find(self, names: Iterable[str]) -> list[tuple[str, tuple[Task, Trajectory]]]:
        """Return the pairs of some trajectories, in their order; ids of none are left out.

        Raises:
            InputError: A record is damaged.
            RunError: A task is missing.
        """
        if not has_records(self.run.file(TRAJECTORIES)):
            return []
        path = find_written_tasks(self.run)
        with self.run.open_lookup(TRAJECTORIES) as plays, self.run.open_lookup(path.name) as tasks:
            lines = sorted(line for line in map(plays.find_line, dict.fromkeys(names)) if line is not None)
            trajectories = [Trajectory.from_line(line.data, TRAJECTORIES) for line in lines]
            return [(played.id, (_find_task(tasks, path.name, played), played)) for played in trajectories]


def _find_task(tasks: RecordLookup, file: str, trajectory: Trajectory) -> Task:
    task = tasks.find(trajectory.task_id, Task)
    if task is None:
        raise RunError(f"{TRAJECTORIES}: task {trajectory.task_id} of {trajectory.id} is not in {file}")
    return task


def _pairs(run: RunDirectory, kind: Any, played: Any = Trajectory) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Every trajectory with its task, which are read as `kind` and `played` say."""
    path = find_written_tasks(run)
    tasks = read_records(path, kind)
    task: Any = None
    for trajectory in read_whole_records(run.file(TRAJECTORIES), played):
        while task is None or task.id != trajectory.task_id:
            task = next(tasks, None)
            if task is None:
                raise RunError(f"{TRAJECTORIES}: task {trajectory.task_id} of {trajectory.id} is not in {path.name}")
        yield trajectory.id, (task, trajectory)


class TaskCandidates:
    """Tasks with all their candidates, in the order of the trajectories."""

    def __init__(self, run: RunDirectory, raw: bool = False) -> None:
        """`raw` leaves the records as lines, for another process to parse."""
        self.run = run
        self.raw = raw

    def __iter__(self) -> Iterator[tuple[str, tuple[Task, tuple[Trajectory, ...]]]]:
        pairs = (pair for _, pair in PlayedPairs(self.run, self.raw))
        for name, group in groupby(pairs, key=lambda pair: pair[0].id):
            candidates = list(group)
            yield name, (candidates[0][0], tuple(trajectory for _, trajectory in candidates))


def join_verdicts(run: RunDirectory) -> Iterator[JudgedTrajectory]:
    """Task, trajectory and verdict together; trajectories without a verdict come last and are left out."""
    return (JudgedTrajectory(*parts) for parts in _judged(run, Task))


def join_verdict_heads(run: RunDirectory) -> Iterator[tuple[TaskHeader, Trajectory, Verdict]]:
    """The same with as much of the tasks as rows and statistics need; the whole task when it is asked for."""
    return _judged(run, TaskHeader)


def _judged(run: RunDirectory, kind: type[AnyTask]) -> Iterator[tuple[AnyTask, Trajectory, Verdict]]:
    if not has_records(run.file(VERDICTS)):
        return
    verdicts = read_whole_records(run.file(VERDICTS), Verdict)
    for (_, (task, trajectory)), verdict in zip(_pairs(run, kind), verdicts, strict=False):
        if verdict.trajectory_id != trajectory.id:
            raise RunError(f"{VERDICTS}: {verdict.id} belongs to {verdict.trajectory_id}, not to {trajectory.id}")
        yield task, trajectory, verdict
    for verdict in verdicts:
        raise RunError(f"{VERDICTS}: {verdict.id} belongs to {verdict.trajectory_id}, which is not in {TRAJECTORIES}")
