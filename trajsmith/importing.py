"""`trajsmith import`: dialogues recorded elsewhere become tasks and trajectories of a run, and are judged there.

The files are copied into the run, so that it needs nothing else to go on.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trajectory import Dropped, Frozen, InputError, Task, Trajectory, content_hash
from trajectory.outside import Outside
from trajsmith.engine import Stage, run_stage
from trajsmith.journal import read_records
from trajsmith.progress import Progress
from trajsmith.rundir import RunDirectory, storage_boundary
from trajsmith.stages import TRAJECTORIES
from trajsmith.varying import TASKS
from trajsmith.world import Place, World
from verify.outside import make_task, misfits, play_outside, read_outside
from verify.outside.playing import initial_state

IMPORTS, OUTSIDE = "imports.json", "outside.jsonl"
IMPORT_ORDER = ("read", "task", "repeat")
"""Names of the stages that come before `verify`."""


class ImportedFile(Frozen):
    """One file that a run imports."""

    name: str
    """Where the copy lies in the run."""
    format: str = "auto"
    tasks: str | None = None
    """Copy of the file with the tasks."""
    environment: str
    """Environment on which its calls are made."""


def imported_files(run: RunDirectory) -> list[ImportedFile]:
    """What a run imports; nothing for a run that makes its own dialogues."""
    if not run.file(IMPORTS).is_file():
        return []
    listed: Any = run.read_json(IMPORTS)
    return [ImportedFile.model_validate(entry) for entry in listed]


def add_files(
    run: RunDirectory, files: Sequence[Path], format_name: str, tasks: Path | None, environment: str
) -> list[ImportedFile]:
    """Copy files into a locked run and list them; a file that is there already is not taken twice.

    Raises:
        InputError: A file cannot be read, is in no known format, or the run makes dialogues of its own.
    """
    listed = imported_files(run)
    if not listed and run.file(TASKS).is_file():
        raise InputError(f"{run.path} makes dialogues of its own: import into a run directory of its own")
    for path in files:
        for _ in read_outside(path, format_name, tasks):  # a wrong format is told before anything is copied
            break
        entry = ImportedFile(
            name=_copied(run, path),
            format=format_name,
            tasks=_copied(run, tasks) if tasks else None,
            environment=environment,
        )
        if entry not in listed:
            listed.append(entry)
    run.write_json(IMPORTS, [entry.model_dump(mode="json", exclude_none=True) for entry in listed])
    return listed


def _copied(run: RunDirectory, path: Path) -> str:
    with path.open("rb") as handle:
        digest = content_hash([path.name, _digest(handle)], 12)
    name = f"imports/{digest}/{path.name}"
    target = run.file(name)
    if not target.is_file():
        with storage_boundary(target, run.path):
            target.parent.mkdir(parents=True, exist_ok=True)
            scrap = target.with_suffix(".part")
            shutil.copyfile(path, scrap)
            scrap.replace(target)
    return name


def _digest(handle: Any) -> str:
    import hashlib

    return hashlib.file_digest(handle, "sha256").hexdigest()


async def run_imports(run: RunDirectory, world: World, progress: Progress | None) -> None:
    """Read, make tasks, make the calls again; each from where it stopped."""
    files = imported_files(run)
    places = {entry.name.split("/")[-1]: world.places[entry.environment] for entry in files}
    concurrency = world.config.engine.concurrency
    read = Stage("read", _read, OUTSIDE, Outside, title="read recorded dialogues")
    task = Stage("task", _tasks(run, places), TASKS, Task, OUTSIDE, Outside, "make gold calls")
    repeat = Stage("repeat", _repeats(world), TRAJECTORIES, Trajectory, title="make recorded calls")
    await run_stage(read, run, _Dialogues(run, files), concurrency, progress)
    await run_stage(task, run, None, concurrency, progress)
    await run_stage(repeat, run, _Pairs(run), concurrency, progress)


async def _read(found: Outside | Dropped) -> Sequence[Outside]:
    if isinstance(found, Dropped):
        raise found
    return (found,)


class _Dialogues:
    """All dialogues of the files, those that do not belong to their task as drops."""

    def __init__(self, run: RunDirectory, files: Sequence[ImportedFile]) -> None:
        self.run = run
        self.files = files

    def __iter__(self) -> Iterator[tuple[str, Outside | Dropped]]:
        for number, entry in enumerate(self.files):
            tasks = self.run.file(entry.tasks) if entry.tasks else None
            found = list(read_outside(self.run.file(entry.name), entry.format, tasks))
            wrong = misfits([one for _, one in found if isinstance(one, Outside)])
            for name, one in found:
                why = wrong.get(one.id) if isinstance(one, Outside) else None
                yield f"{number}/{name}", Dropped("task_does_not_belong", why) if why else one


def _tasks(run: RunDirectory, places: dict[str, Place]) -> Any:
    async def work(outside: Outside) -> Sequence[Task]:
        place = places[outside.file]
        async with place.session() as session:
            state = await initial_state(outside, run.get_state(place.states[0]), session)
            run.put_state(state)
            return (await make_task(outside, state, session),)

    return work


class _Pairs:
    """Dialogues with their tasks, in the order of the tasks."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run

    def __iter__(self) -> Iterator[tuple[str, tuple[Outside, Task]]]:
        dialogues = read_records(self.run.file(OUTSIDE), Outside)
        for task in read_records(self.run.file(TASKS), Task):
            outside = next(one for one in dialogues if one.id == task.grounded_id)
            yield task.id, (outside, task)


def _repeats(world: World) -> Any:
    async def work(pair: tuple[Outside, Task]) -> Sequence[Trajectory]:
        outside, task = pair
        async with world.places[task.environments[0]].session() as session:
            return (await play_outside(outside, task, world.state(task.initial_state), session),)

    return work
