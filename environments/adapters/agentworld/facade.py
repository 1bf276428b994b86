"""The modules through which foreign code reaches files, over a directory in memory.

Foreign code gets its own built-ins: `open` opens files in memory, and `import os` (or pathlib, io, glob, shutil) gives
a module of the same name with what works there. Everything else is imported as it is. This is no wall (the sandbox is),
but these are the only files that code of this form finds.
"""

import builtins
import glob
import io
import os
import pathlib
import posixpath
import shutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from trajsmith.environments.adapters.agentworld.memory import Files
from trajsmith.environments.adapters.agentworld.paths import Current, build_path_class, glob_paths, stat_path
from trajsmith.environments.adapters.agentworld.streams import open_file

Import = Callable[..., Any]
_OS = ("sep", "linesep", "name", "fspath", "PathLike", "error", "urandom", "extsep", "pathsep", "curdir", "pardir")
_OS_PATH = (
    "join", "basename", "dirname", "split", "splitext", "normpath", "normcase", "isabs", "commonprefix", "commonpath",
    "sep", "expanduser", "expandvars", "splitdrive",
)  # fmt: skip


def build_builtins(current: Current, sibling: Callable[[str], ModuleType | None]) -> dict[str, Any]:
    """Built-ins for foreign modules.

    Args:
        current: The files of the play that is being called.
        sibling: Gives another file of the tools as a module, or None.
    """
    opener = _build_open(current)
    modules = _modules(current, opener)

    def import_(name: str, space: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
        first = name.partition(".")[0]
        module = sibling(name)
        if module is not None:
            return module
        if first in modules and level == 0:
            return modules[name if wanted and name in modules else first]
        return builtins.__import__(name, space, local, wanted, level)

    names = {**vars(builtins), "open": opener, "__import__": import_}
    modules["builtins"] = _module("builtins", names)
    return names


def _build_open(current: Current) -> Callable[..., Any]:
    def open_(
        file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None, newline: Any = None,
        *more: Any,
    ) -> Any:  # fmt: skip
        return open_file(current(), file, mode, newline)

    return open_


def _module(name: str, members: dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


def _modules(current: Current, opener: Callable[..., Any]) -> dict[str, ModuleType]:
    path = build_path_class(current)
    os_path = _module("os.path", _os_path(current))
    pure = {name: vars(pathlib)[name] for name in ("PurePath", "PurePosixPath", "PureWindowsPath")}
    return {
        "os": _module("os", {**_os(current, opener), "path": os_path}),
        "os.path": os_path,
        "posixpath": os_path,
        "pathlib": _module("pathlib", {**pure, "Path": path, "PosixPath": path}),
        "io": _module("io", {**vars(io), "open": opener}),
        "glob": _module("glob", {**_glob(current), "escape": glob.escape}),
        "shutil": _module("shutil", _shutil(current)),
    }


def _os_path(current: Current) -> dict[str, Any]:
    path = build_path_class(current)

    def absolute(name: Any) -> str:
        return posixpath.normpath(posixpath.join(current().root, os.fspath(name)))

    def relative(name: Any, start: Any = ".") -> str:
        return posixpath.relpath(absolute(name), absolute(start))

    return {name: vars(posixpath)[name] for name in _OS_PATH} | {
        "exists": lambda name: path(name).exists(),
        "lexists": lambda name: path(name).exists(),
        "isfile": lambda name: path(name).is_file(),
        "isdir": lambda name: path(name).is_dir(),
        "islink": lambda name: False,
        "getsize": lambda name: stat_path(current(), name).st_size,
        "getmtime": lambda name: stat_path(current(), name).st_mtime,
        "abspath": absolute,
        "realpath": absolute,
        "relpath": relative,
    }


def _os(current: Current, opener: Callable[..., Any]) -> dict[str, Any]:
    path = build_path_class(current)

    def walk(top: Any) -> Iterator[tuple[str, list[str], list[str]]]:
        files, start = current(), current().locate(top)
        entries = files.entries(start)
        folders = [name for name in entries if files.is_directory(posixpath.join(start, name))]
        yield os.fspath(top), folders, [name for name in entries if name not in folders]
        for name in folders:
            yield from walk(posixpath.join(os.fspath(top), name))

    def getenv(name: str, default: Any = None) -> Any:
        return default

    def listdir(name: Any = ".") -> list[str]:
        return current().entries(current().locate(name))

    def mkdir(name: Any, mode: int = 0o777) -> None:
        path(name).mkdir()

    def makedirs(name: Any, mode: int = 0o777, exist_ok: bool = False) -> None:
        path(name).mkdir(parents=True, exist_ok=exist_ok)

    return {name: vars(os)[name] for name in _OS} | {
        "environ": {},
        "getenv": getenv,
        "getcwd": lambda: current().root,
        "listdir": listdir,
        "makedirs": makedirs,
        "mkdir": mkdir,
        "rmdir": lambda name: path(name).rmdir(),
        "remove": lambda name: path(name).unlink(),
        "unlink": lambda name: path(name).unlink(),
        "rename": lambda source, target: _do_nothing(path(source).rename(target)),
        "replace": lambda source, target: _do_nothing(path(source).rename(target)),
        "stat": lambda name: stat_path(current(), name),
        "walk": walk,
        "fsync": _do_nothing,
    }


def _glob(current: Current) -> dict[str, Any]:
    def find(pattern: str, *, root_dir: Any = None, recursive: bool = False) -> list[str]:
        files = current()
        absolute = pattern.startswith("/")
        inside = posixpath.relpath(pattern, files.root) if absolute else pattern
        below = files.locate(root_dir or "")
        names = [] if inside.startswith("..") else glob_paths(files, below, inside)
        return [posixpath.join(files.root, name) if absolute else name for name in names]

    return {"glob": find, "iglob": lambda pattern, **more: iter(find(pattern, **more))}


def _shutil(current: Current) -> dict[str, Any]:
    def copy(source: Any, target: Any) -> Any:
        files: Files = current()
        name = files.locate(target)
        if files.is_directory(name):
            name = posixpath.join(name, posixpath.basename(os.fspath(source)))
        files.write(name, files.read(files.locate(source)))
        return target

    def move(source: Any, target: Any) -> Any:
        copy(source, target)
        current().remove(current().locate(source))
        return target

    return {"copy": copy, "copy2": copy, "copyfile": copy, "move": move, "Error": shutil.Error}


def _do_nothing(_: object) -> None:
    """Return nothing, in place of calls that have no effect here."""
