"""Writing that stays inside a directory, whatever symbolic links somebody has put into it."""

import os
from pathlib import Path, PurePath

from trajsmith.records.errors import InputError


def open_no_follow(path: Path, flags: int, mode: int = 0o644) -> int:
    """Open a file like `os.open`, but not through a symbolic link.

    Raises:
        OSError: As `os.open`; ELOOP if `path` is a symbolic link.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode)


def refuse_link(folder: Path, relative: PurePath) -> None:
    """Refuse a path below `folder` with a symbolic link in it; `folder` itself may be one.

    Raises:
        InputError: There is one.
    """
    path = folder
    for part in relative.parts:
        path = path / part
        if path.is_symlink():
            raise link_error(path)


def refuse_links(folder: Path) -> None:
    """Refuse a directory tree with a symbolic link in it; `folder` itself may be one, or not exist.

    Raises:
        InputError: There is one.
    """
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise link_error(Path(entry.path))
            if entry.is_dir(follow_symlinks=False):
                refuse_links(Path(entry.path))


def link_error(path: Path) -> InputError:
    """Say that a path is a symbolic link, and what to do about it."""
    return InputError(f"{path} is a symbolic link, and nothing is read or written through it: put a copy in its place")
