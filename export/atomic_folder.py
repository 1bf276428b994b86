"""Folder that is replaced atomically."""

import shutil
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Self

from trajsmith.records import InputError, RunError

TASK_FILES = (
    *("config.yaml", "tasks.jsonl", "trajectories.jsonl", "verdicts.jsonl"),
    *("environments/*.json", "states/*.json", "files/*"),
)
"""Patterns of the files of a folder of tasks (`write_task_bundle`)."""


class AtomicFolder:
    """Files are written into `part`, beside `directory`; leaving the context normally puts them in place.

    Leaving it with an exception discards them. If the process dies, `directory` is what it was before.

    Args:
        directory: The folder; an older export there is replaced.
        files: Patterns of the paths in it that an export writes (`*` also stands for slashes).

    Raises:
        InputError: `directory` is a file, or has no name, as `.` has none.
        RunError: `directory` has a file that no export writes.
    """

    def __init__(self, directory: str | Path, files: Sequence[str]) -> None:
        self.directory = Path(directory)
        if self.directory.name in ("", ".."):
            raise InputError(f"{directory} is no name of a folder: it is written beside it first; give its path")
        self._files = (*files, "*__pycache__/*.pyc")
        self.part = self.directory.with_name(f".{self.directory.name}.part")
        self._old = self.directory.with_name(f".{self.directory.name}.old")
        self._discarded = False

    def __enter__(self) -> Self:
        self._refuse_foreign_folder()
        if self._old.exists() and not self.directory.exists():
            self._old.rename(self.directory)  # an earlier export died between the two renames of the commit
        shutil.rmtree(self.part, ignore_errors=True)
        self.part.mkdir(parents=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None and not self._discarded:
                self._finish()
                self._commit()
        finally:
            self._release()
            shutil.rmtree(self.part, ignore_errors=True)

    def discard(self) -> None:
        """Leave everything as it was, though nothing failed."""
        self._discarded = True

    def attach(self, name: str, content: str | bytes) -> None:
        """Put a file beside the data, for example the card as `README.md`; it comes and goes with the data."""
        path = self.part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def _finish(self) -> None:
        """Complete the files in `part`; an exception keeps the old folder."""

    def _release(self) -> None:
        """Close what is open, whatever happened."""

    def _commit(self) -> None:
        shutil.rmtree(self._old, ignore_errors=True)
        if self.directory.exists():
            self.directory.rename(self._old)
        self.part.rename(self.directory)
        shutil.rmtree(self._old, ignore_errors=True)

    def _refuse_foreign_folder(self) -> None:
        """Only what an export wrote is replaced: a single other file keeps the folder."""
        if not self.directory.exists():
            return
        if not self.directory.is_dir():
            raise InputError(f"{self.directory} is a file; give a folder for the dataset")
        for path in self.directory.rglob("*"):
            name = path.relative_to(self.directory).as_posix()
            if not any(fnmatchcase(name, pattern) for pattern in self._files) and (path.is_symlink() or path.is_file()):
                raise RunError(
                    f"{self.directory} holds {name}, which no export writes: choose another folder or move that away"
                )
