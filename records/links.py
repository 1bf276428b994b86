"""Work that stays inside a directory, whatever links, pipes and devices somebody has put into it."""

import os
import stat
from pathlib import Path, PurePath

from trajsmith.records.errors import InputError


def open_no_follow(path: Path, flags: int, mode: int = 0o644) -> int:
    """Open a file like `os.open`, but not through a symbolic link.

    Raises:
        OSError: As `os.open`; ELOOP if `path` is a symbolic link.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def refuse_link(folder: Path, relative: PurePath) -> None:
    """Refuse a path below `folder` with a symbolic link, a pipe or a device in it; `folder` itself may be a link.

    Raises:
        InputError: There is one.
    """
    path = folder
    for part in relative.parts:
        path = path / part
        try:
            _refuse_kind(path, path.lstat().st_mode)
        except (OSError, ValueError):  # nothing is there, or nothing can be: whoever opens it says so
            return


def refuse_links(folder: Path) -> None:
    """Refuse a directory tree with a symbolic link, a pipe or a device in it; `folder` may be a link, or not exist.

    Raises:
        InputError: There is one.
    """
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            _refuse_kind(Path(entry.path), entry.stat(follow_symlinks=False).st_mode)
            if entry.is_dir(follow_symlinks=False):
                refuse_links(Path(entry.path))


def _refuse_kind(path: Path, mode: int) -> None:
    if stat.S_ISLNK(mode):
        raise link_error(path)
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # to read a pipe is to wait for who writes it
        raise InputError(f"{path} is neither a file nor a folder: remove it, or put a file in its place")


def link_error(path: Path) -> InputError:
    """Say that a path is a symbolic link, and what to do about it."""
    return InputError(f"{path} is a symbolic link, and nothing is read or written through it: put a copy in its place")
