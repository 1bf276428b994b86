"""Folder that is replaced atomically."""

import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from trajsmith.records import InputError, RunError

DATA = "data"


class AtomicFolder:
    """Files are written into `part`, beside `directory`; leaving the context normally puts them in place.

    Leaving it with an exception discards them. If the process dies, `directory` is what it was before.

    Args:
        directory: The folder; an older export there is replaced.
        content: Name of the subfolder by which an export is known.

    Raises:
        InputError: `directory` is a file.
        RunError: `directory` holds something else than an export.
    """

    def __init__(self, directory: str | Path, content: str = DATA) -> None:
        self.directory = Path(directory)
        self.content = content
        self.part = self.directory.with_name(f".{self.directory.name}.part")
        self._old = self.directory.with_name(f".{self.directory.name}.old")
        self._discarded = False

    def __enter__(self) -> Self:
        self._refuse_foreign_folder()
        if self._old.exists() and not self.directory.exists():
            self._old.rename(self.directory)  # an earlier export died between the two renames of the commit
        shutil.rmtree(self.part, ignore_errors=True)
        (self.part / self.content).mkdir(parents=True)
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
        """A folder with something else in it is not ours to replace."""
        if not self.directory.exists():
            return
        if not self.directory.is_dir():
            raise InputError(f"{self.directory} is a file; give a folder for the dataset")
        names = {path.name for path in self.directory.iterdir()}
        if names and self.content not in names:
            raise RunError(f"{self.directory} holds something that is no dataset; choose another folder or empty it")
