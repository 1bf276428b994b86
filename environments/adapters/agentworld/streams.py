"""Open files of a directory in memory: what `open` gives to foreign code."""

import errno
import io
from collections.abc import Callable
from typing import Any

from trajsmith.environments.adapters.agentworld.memory import Files

Save = Callable[[str], None]


class MemoryText(io.StringIO):
    """A text file. What was written becomes the file's text when it is flushed or closed."""

    encoding = "utf-8"

    def __init__(self, name: str, mode: str, text: str, newline: str | None, save: Save | None) -> None:
        super().__init__("" if mode[0] in "wx" else text, newline=newline if save is None else "")
        self.name = name
        self.mode = mode  # type: ignore[misc]
        self._save = save
        self._readable = mode[0] == "r" or "+" in mode
        if mode[0] == "a":
            self.seek(0, io.SEEK_END)

    def readable(self) -> bool:
        return self._readable

    def writable(self) -> bool:
        return self._save is not None

    def read(self, size: int | None = -1, /) -> str:
        self._check(self._readable, "not readable")
        return super().read(size)

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        self._check(self._readable, "not readable")
        return super().readline(size)

    def __next__(self) -> str:  # type: ignore[override]
        self._check(self._readable, "not readable")
        return super().__next__()

    def write(self, text: str, /) -> int:
        self._check(self._save is not None, "not writable")
        if self.mode[0] == "a":
            self.seek(0, io.SEEK_END)
        return super().write(text)

    def flush(self) -> None:
        super().flush()
        if self._save is not None:
            self._save(self.getvalue())

    def close(self) -> None:
        if not self.closed:
            self.flush()
        super().close()

    def _check(self, allowed: bool, fault: str) -> None:
        if not allowed:
            raise io.UnsupportedOperation(fault)


class MemoryBytes(io.BytesIO):
    """A file in binary mode; its bytes must be UTF-8 text when it is closed."""

    def __init__(self, name: str, mode: str, text: str, save: Save | None) -> None:
        super().__init__(b"" if mode[0] in "wx" else text.encode())
        self.name = name
        self.mode = mode  # type: ignore[misc]
        self._save = save
        if mode[0] == "a":
            self.seek(0, io.SEEK_END)

    def writable(self) -> bool:
        return self._save is not None

    def write(self, data: Any, /) -> int:
        if self._save is None:
            raise io.UnsupportedOperation("not writable")
        return super().write(data)

    def flush(self) -> None:
        super().flush()
        if self._save is not None:
            self._save(self.getvalue().decode())

    def close(self) -> None:
        if not self.closed:
            self.flush()
        super().close()


def open_file(files: Files, file: object, mode: str = "r", newline: str | None = None) -> MemoryText | MemoryBytes:
    """Open a file of a directory in memory, as the built-in `open` does.

    Raises:
        OSError: There is no such file, or it cannot be opened like this.
        ValueError: The mode is none.
    """
    kinds = [letter for letter in mode if letter in "rwax"]
    if len(kinds) != 1 or set(mode) - set("rwaxbt+") or ("b" in mode and "t" in mode):
        raise ValueError(f"invalid mode: {mode!r}")
    mode = kinds[0] + mode.replace(kinds[0], "")
    name = files.locate(file)
    writes = mode[0] != "r" or "+" in mode
    if mode[0] == "x" and (files.is_file(name) or files.is_directory(name)):
        raise FileExistsError(errno.EEXIST, "File exists", str(file))
    if writes:
        files.check_writable(name)
    text = "" if mode[0] in "wxa" and not files.is_file(name) else files.read(name)
    if mode[0] in "wx" or (mode[0] == "a" and not files.is_file(name)):
        files.write(name, "")
    save = (lambda text: files.write(name, text)) if writes else None
    if "b" in mode:
        return MemoryBytes(str(file), mode, text, save)
    return MemoryText(str(file), mode, text, newline, save)
