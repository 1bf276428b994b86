"""`pathlib` for foreign code: pure paths, with the operations that reach a file going to the directory in memory."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

from trajsmith.environments.adapters.agentworld.memory import Files
from trajsmith.environments.adapters.agentworld.streams import open_file

Current = Callable[[], Files]
"""The files of the play that is being called."""


def build_path_class(current: Current) -> type:
    """A `Path` class over whatever files are current."""

    class Path(PurePosixPath):
        __slots__ = ()

        @classmethod
        def cwd(cls) -> "Path":
            return cls(current().root)

        def open(
            self,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: Any = None,
            newline: Any = None,
        ) -> Any:
            return open_file(current(), self, mode, newline)

        def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
            with open_file(current(), self) as file:
                return str(file.read())

        def read_bytes(self) -> bytes:
            return current().read(current().locate(self)).encode()

        def write_text(self, data: str, encoding: Any = None, errors: Any = None, newline: Any = None) -> int:
            current().write(current().locate(self), data)
            return len(data)

        def write_bytes(self, data: bytes) -> int:
            current().write(current().locate(self), data.decode())
            return len(data)

        def exists(self) -> bool:
            return self.is_file() or self.is_dir()

        def is_file(self) -> bool:
            return _test_path(current().is_file, current(), self)

        def is_dir(self) -> bool:
            return _test_path(current().is_directory, current(), self)

        def is_symlink(self) -> bool:
            return False

        def iterdir(self) -> Iterator["Path"]:
            return iter([self / name for name in current().entries(current().locate(self))])

        def rglob(self, pattern: str) -> Iterator["Path"]:
            return self.glob(f"**/{pattern}")

        def glob(self, pattern: str) -> Iterator["Path"]:
            return iter([self / name for name in glob_paths(current(), current().locate(self), pattern)])

        def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
            current().make_directory(current().locate(self), parents, exist_ok)

        def rmdir(self) -> None:
            current().remove_directory(current().locate(self))

        def unlink(self, missing_ok: bool = False) -> None:
            if not missing_ok or self.exists():
                current().remove(current().locate(self))

        def touch(self, mode: int = 0o666, exist_ok: bool = True) -> None:
            if not exist_ok or not self.exists():
                open_file(current(), self, "x").close()

        def rename(self, target: Any) -> "Path":
            current().move(current().locate(self), current().locate(target))
            return type(self)(target)

        replace = rename

        def absolute(self) -> "Path":
            return type(self)(current().root) / self

        def resolve(self, strict: bool = False) -> "Path":
            files = current()
            return type(self)(files.root) / files.locate(self)

        def expanduser(self) -> "Path":
            return self

        def stat(self, *, follow_symlinks: bool = True) -> SimpleNamespace:
            return stat_path(current(), self)

    return Path


def stat_path(files: Files, path: object) -> SimpleNamespace:
    """Size and times of a file; the times are all the same, there is no clock in a directory in memory."""
    name = files.locate(path)
    size = 0 if files.is_directory(name) else len(files.read(name).encode())
    return SimpleNamespace(st_size=size, st_mtime=0.0, st_ctime=0.0, st_atime=0.0, st_mode=0o644)


def glob_paths(files: Files, below: str, pattern: str) -> list[str]:
    """Files and directories below a directory, relative to it, that match a pattern with `*`, `?`, `[]` and `**`."""
    start = f"{below}/" if below else ""
    relative = {name[len(start) :] for name in files.names() if name.startswith(start)}
    relative |= {"/".join(name.split("/")[:depth]) for name in relative for depth in range(1, name.count("/") + 1)}
    return sorted(name for name in relative if _matches(name.split("/"), pattern.strip("/").split("/")))


def _matches(names: list[str], patterns: list[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_matches(names[skip:], patterns[1:]) for skip in range(len(names) + 1))
    return bool(names) and fnmatch(names[0], patterns[0]) and _matches(names[1:], patterns[1:])


def _test_path(question: Callable[[str], bool], files: Files, path: object) -> bool:
    try:
        return question(files.locate(path))
    except FileNotFoundError:
        return False
