"""Output files of commands: checks writability before the work and reports full disks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from trajsmith.records import InputError, RunError

Result = TypeVar("Result")


def write_file(target: Path, write: Callable[[Path], Result]) -> Result:
    """Write a file.

    Raises:
        RunError: It cannot be written.
    """
    try:
        return write(target)
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror}") from error


def ensure_writable(target: Path, make: bool = False) -> Path:
    """The path of a file that is going to be written; found out before any work.

    Args:
        make: Make the folder where it is missing.

    Raises:
        InputError: Nothing can be written there.
    """
    if make:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {target}: the folder cannot be made: {error.strerror}") from error
    if not target.parent.is_dir():
        raise InputError(f"cannot write {target}: there is no folder {target.parent}")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: {'it is a folder' if target.is_dir() else 'the folder is read-only'}")
    return target
