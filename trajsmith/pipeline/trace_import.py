"""`trajsmith import`: dialogues recorded elsewhere become tasks and trajectories of a run, and are judged there.

The files are copied into the run, so that it needs nothing else to go on.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trajsmith.pipeline.engine import PipelineStage, run_stage
from trajsmith.pipeline.progress import RunProgress
from trajsmith.pipeline.run_context import EnvironmentHandle, RunContext
from trajsmith.pipeline.run_directory import COPIED_IMPORTS, TASKS, TRAJECTORIES, RunDirectory
from trajsmith.records import (
    FrozenModel,
    InputError,
    RecordDropped,
    Task,
    TraceDialogue,
    Trajectory,
    content_hash,
    has_records,
    open_whole_file,
    read_records,
    storage_boundary,
)
from trajsmith.verify.traces import build_task, find_mismatched_tasks, read_dialogues, replay_dialogue
from trajsmith.verify.traces.replaying import build_initial_state

IMPORTS, OUTSIDE = "imports.json", "outside.jsonl"
IMPORT_ORDER = ("read", "task", "repeat")
"""Names of the stages that come before `verify`."""


class ImportedFile(FrozenModel):
    """One file that a run imports."""

    name: str
    """Where the copy lies in the run."""
    format: str = "auto"
    tasks: str | None = None
    """Copy of the file with the tasks."""
    environment: str
    """Environment on which its calls are made."""


def load_imported_files(run: RunDirectory) -> list[ImportedFile]:
    """Return the files that a run imports; empty for a run that makes its own dialogues.

    Raises:
        InputError: Its start was cut, or no file could be read.
    """
    listed = _read_list(run)
    if not listed and run.file(COPIED_IMPORTS).is_dir():
        raise InputError(f"{run.path}: no recorded dialogues were copied: start `trajsmith import` again")
    return listed


def _read_list(run: RunDirectory) -> list[ImportedFile]:
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
    listed = _read_list(run)
    if not listed and has_records(run.file(TASKS)):
        raise InputError(f"{run.path} makes dialogues of its own: import into a run directory of its own")
    for path in files:
        for _ in read_dialogues(path, format_name, tasks):  # a wrong format is told before anything is copied
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
    name = f"{COPIED_IMPORTS}/{digest}/{path.name}"
    target = run.file(name)
    if not target.is_file():
        with storage_boundary(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as source, open_whole_file(target) as file:
                shutil.copyfileobj(source, file)
    return name


def _digest(handle: Any) -> str:
    import hashlib

    return hashlib.file_digest(handle, "sha256").hexdigest()


async def run_imports(run: RunDirectory, context: RunContext, progress: RunProgress | None) -> None:
    """Read, make tasks, make the calls again; each from where it stopped."""
    files = load_imported_files(run)
    places = {entry.name.split("/")[-1]: context.places[entry.environment] for entry in files}
    concurrency = context.config.engine.concurrency
    read = PipelineStage("read", _read, OUTSIDE, TraceDialogue, title="read recorded dialogues")
    task = PipelineStage("task", _tasks(run, places), TASKS, Task, OUTSIDE, TraceDialogue, "make gold calls")
    repeat = PipelineStage("repeat", _repeats(context), TRAJECTORIES, Trajectory, title="make recorded calls")
    await run_stage(read, run, _Dialogues(run, files), concurrency, progress)
    await run_stage(task, run, None, concurrency, progress)
    await run_stage(repeat, run, _Pairs(run), concurrency, progress)


async def _read(dialogue: TraceDialogue | RecordDropped) -> Sequence[TraceDialogue]:
    if isinstance(dialogue, RecordDropped):
        raise dialogue
    return (dialogue,)


class _Dialogues:
    """All dialogues of the files, those that do not belong to their task as drops."""

    def __init__(self, run: RunDirectory, files: Sequence[ImportedFile]) -> None:
        self.run = run
        self.files = files

    def __iter__(self) -> Iterator[tuple[str, TraceDialogue | RecordDropped]]:
        for number, entry in enumerate(self.files):
            tasks = self.run.file(entry.tasks) if entry.tasks else None
            dialogues = list(read_dialogues(self.run.file(entry.name), entry.format, tasks))
            wrong = find_mismatched_tasks([one for _, one in dialogues if isinstance(one, TraceDialogue)])
            for name, one in dialogues:
                why = wrong.get(one.id) if isinstance(one, TraceDialogue) else None
                yield f"{number}/{name}", RecordDropped("task_does_not_belong", why) if why else one


def _tasks(run: RunDirectory, places: dict[str, EnvironmentHandle]) -> Any:
    async def work(outside: TraceDialogue) -> Sequence[Task]:
        place = places[outside.file]
        async with place.session() as session:
            state = await build_initial_state(outside, run.get_state(place.states[0]), session)
            run.put_state(state)
            return (await build_task(outside, state, session),)

    return work


class _Pairs:
    """Dialogues with their tasks, in the order of the tasks."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run

    def __iter__(self) -> Iterator[tuple[str, tuple[TraceDialogue, Task]]]:
        dialogues = read_records(self.run.file(OUTSIDE), TraceDialogue)
        for task in read_records(self.run.file(TASKS), Task):
            outside = next(one for one in dialogues if one.id == task.grounded_id)
            yield task.id, (outside, task)


def _repeats(context: RunContext) -> Any:
    async def work(pair: tuple[TraceDialogue, Task]) -> Sequence[Trajectory]:
        outside, task = pair
        async with context.places[task.environments[0]].session() as session:
            return (await replay_dialogue(outside, task, context.state(task.initial_state), session),)

    return work
