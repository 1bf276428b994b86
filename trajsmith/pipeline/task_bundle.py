"""Tasks of a run as a folder that plays elsewhere: configuration, environments, initial states and tasks."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from trajsmith.environments.composite import NAME_SEPARATOR
from trajsmith.environments.linked import list_worlds
from trajsmith.environments.sources import EnvironmentSettings, find_python_file
from trajsmith.export.hub import TASKS_OF_DATASET
from trajsmith.pipeline.config import ExportSettings, RunConfig, load_config
from trajsmith.pipeline.dataset_selection import iter_accepted
from trajsmith.pipeline.hub_runs import check_foreign_config
from trajsmith.pipeline.run_context import RunContext
from trajsmith.pipeline.run_directory import TASKS, TRAJECTORIES, VERDICTS, RunDirectory
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import InputError, RunError, Task, storage_boundary

BESIDE = ("phrases*.yaml", "scenarios*.yaml")
"""Files beside the phrasebook of a Python environment that go with it; it lies beside the environment if not named."""


async def find_environment_settings(run: RunDirectory) -> dict[str, EnvironmentSettings]:
    """Return the configuration's entry of each environment of a run, by the environment's name.

    Raises:
        InputError: An environment needs more than a folder can hold.
    """
    config = load_config(run.config_path)
    context = await RunContext.reopen(config, run)
    entries = dict(zip(context.places, config.environments, strict=True))
    for name, entry in entries.items():
        if entry.kind not in ("library", "python") and entry.linked not in list_worlds():
            raise InputError(
                f"environment {name} comes by `{entry.kind}`, and a task of its own can hold only bundled environments "
                "and Python files: export a run of those"
            )
    return entries


def write_task_bundle(
    run: RunDirectory,
    tasks: Sequence[Task],
    entries: Mapping[str, EnvironmentSettings],
    folder: Path,
    place: PurePosixPath,
) -> None:
    """Write a run directory that holds some of the tasks of a run.

    Args:
        run: Run of the tasks.
        tasks: The tasks, in the order of the run.
        entries: Of `find_environment_settings`.
        folder: Empty or new folder.
        place: Where the folder will stand when it is used; files of environments are named by it.
    """
    config = load_config(run.config_path)
    names = [part for task in tasks for name in task.environments for part in name.split(NAME_SEPARATOR)]
    used = tuple(_take_files(entries[name], folder, place) for name in dict.fromkeys(names))
    folder.mkdir(parents=True, exist_ok=True)
    own = RunConfig(
        name=config.name,
        seed=config.seed,
        language=config.language,
        environments=used,
        run=Path(str(place)),
        export=ExportSettings(split=config.export.split),
    )
    (folder / "config.yaml").write_text(dump_settings(own), "utf-8")
    bundle = RunDirectory(folder)
    for state in dict.fromkeys(task.initial_state for task in tasks):
        bundle.put_state(run.get_state(state))
    (folder / TASKS).write_bytes(b"".join(task.to_line() for task in tasks))
    (folder / "environments").mkdir(exist_ok=True)
    for name in dict.fromkeys(names):
        for file in run.file("environments").glob(f"{name}.*json"):
            shutil.copyfile(file, folder / "environments" / file.name)


def _take_files(entry: EnvironmentSettings, folder: Path, place: PurePosixPath) -> EnvironmentSettings:
    """Copy what an entry names, and return the entry that names the copies."""
    books = [path for path in (entry.phrases, entry.scenarios) if path is not None]
    if entry.python is None and not books:
        return entry
    source, name = (None, "") if entry.python is None else find_python_file(entry.python)
    stem = entry.library or entry.kind if source is None else source.stem
    target, there = folder / "files" / stem, Path(str(place)) / "files" / stem
    target.mkdir(parents=True, exist_ok=True)
    words = entry.phrases or source
    beside = (path for pattern in BESIDE for path in words.parent.glob(pattern)) if words is not None else ()
    named = (file for path in books for file in path.parent.glob(f"{path.stem}*{path.suffix}"))
    for path in (*([] if source is None else [source]), *beside, *entry.state_files, *named):
        shutil.copyfile(path, target / path.name)
    update = {
        "python": None if source is None else f"{there / source.name}{':' if name else ''}{name}",
        "state_files": tuple(there / path.name for path in entry.state_files),
        "phrases": entry.phrases and there / entry.phrases.name,
        "scenarios": entry.scenarios and there / entry.scenarios.name,
    }
    return entry.model_copy(update=update)


def write_dataset_tasks(run: RunDirectory, folder: Path) -> int:
    """Write the tasks behind the accepted rows of a run into `run/` of its dataset, and return their number.

    `trajsmith push` uploads them with the rows; `hub:owner/name` names such a run where a run is only read. Tasks that
    the selection of the run left out, such as contaminated ones, are not among them.

    Raises:
        InputError: An environment needs more than a folder can hold, or settings that others' tasks may not have.
        RunError: No play was accepted.
    """
    entries = asyncio.run(find_environment_settings(run))
    accepted = list(iter_accepted(run))
    if not accepted:
        raise RunError(f"{run.path}: no play was accepted")
    tasks = list({judged.task.id: judged.task for judged in accepted}.values())
    part, target = folder / f".{TASKS_OF_DATASET}.part", folder / TASKS_OF_DATASET
    with storage_boundary(folder):
        shutil.rmtree(part, ignore_errors=True)
        write_task_bundle(run, tasks, entries, part, PurePosixPath())
        check_foreign_config(part / "config.yaml", str(run.path))
        (part / TRAJECTORIES).write_bytes(b"".join(judged.trajectory.to_line() for judged in accepted))
        (part / VERDICTS).write_bytes(b"".join(judged.verdict.to_line() for judged in accepted))
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    return len(tasks)
