"""Record files of a run in the form that fits their size: compressed when they are large and nothing is added to them.

A stage that has to add something makes its file plain again, so every command works on either form.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from trajsmith.pipeline.config import EngineSettings
from trajsmith.pipeline.progress import NullProgress, RunProgress
from trajsmith.pipeline.repairs import FAILED, FAILED_VERDICTS
from trajsmith.pipeline.run_directory import (
    CHAINS,
    GROUNDED,
    TASKS,
    TRAJECTORIES,
    VARIED,
    VERDICTS,
    RunDirectory,
    describe_unfinished,
)
from trajsmith.pipeline.trace_import import OUTSIDE
from trajsmith.records import (
    SAME_COMMAND,
    InputError,
    build_compressed_path,
    compress_records,
    find_form,
    open_records,
    restore_records,
)

RECORD_FILES = (CHAINS, OUTSIDE, GROUNDED, TASKS, VARIED, FAILED, FAILED_VERDICTS, TRAJECTORIES, VERDICTS)
MIB = 1 << 20


class FileForm(NamedTuple):
    """Form of one record file."""

    name: str
    plain: int
    """Bytes of its lines."""
    stored: int
    """Bytes on the disk."""


def compress_large_files(
    run: RunDirectory, engine: EngineSettings, progress: RunProgress | None = None, names: Iterable[str] = RECORD_FILES
) -> None:
    """Compress files of finished stages that are larger than the engine keeps plain. Needs the run's lock.

    Raises:
        RunError: The disk is full.
    """
    if engine.compress_above_mb is None:
        return
    for name in names:
        path = run.file(name)
        if path.is_file() and path.stat().st_size > engine.compress_above_mb * MIB:
            _compress(run, path, progress or NullProgress(), run.again)


def compress_run(run: RunDirectory, progress: RunProgress) -> list[FileForm]:
    """Compress all record files of a finished run, and return what they are now; killed, the same call goes on.

    Raises:
        InputError: The run is not finished, or a line is no record.
        RunError: The disk is full, or another process writes the run.
    """
    with run.lock():
        if unfinished := describe_unfinished(run):
            raise InputError(unfinished)
        for path in map(run.file, RECORD_FILES):
            if path.is_file() and path.stat().st_size:
                _compress(run, path, progress, SAME_COMMAND)
        return list_forms(run)


def restore_run(run: RunDirectory, progress: RunProgress) -> list[FileForm]:
    """Make all record files of a run plain, and return what they are now; killed, the same call goes on.

    Raises:
        InputError: A file is damaged.
        RunError: The disk is full, or another process writes the run.
    """
    with run.lock():
        for path in map(run.file, RECORD_FILES):
            if build_compressed_path(path).is_file():
                with open_records(path) as source:
                    size = source.size
                with _show(progress, "decompress", path, size) as notice:
                    restore_records(path, run.build_part_path(path), notice)
        return list_forms(run)


def list_forms(run: RunDirectory) -> list[FileForm]:
    """Return the record files that a run has, as they are stored."""
    forms: list[FileForm] = []
    for path in map(run.file, RECORD_FILES):
        form = find_form(path)
        if form is not None:
            with open_records(path) as source:
                forms.append(FileForm(str(form.relative_to(run.path)), source.size, form.stat().st_size))
    return forms


def _compress(run: RunDirectory, path: Path, progress: RunProgress, again: str) -> None:
    with _show(progress, "compress", path, path.stat().st_size) as notice:
        compress_records(path, run.build_part_path(path), notice, again)


@contextmanager
def _show(progress: RunProgress, verb: str, path: Path, size: int) -> Iterator[Callable[[int], None]]:
    """Show the progress on one file in whole MiB."""
    done = 0
    with progress.stage(f"{verb} {path.name} (MiB)", size // MIB, 0, 0) as bar:

        def notice(count: int) -> None:
            nonlocal done
            whole = (done + count) // MIB - done // MIB
            done += count
            if whole:
                bar.advance(count=whole)

        yield notice
