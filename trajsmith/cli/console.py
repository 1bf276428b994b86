"""Terminal and output files of the commands."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import orjson
from rich.console import Console

from trajsmith.records import InputError, RunError
from trajsmith.toolgraph.storage import open_atomically

Result = TypeVar("Result")

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_line(text: str) -> None:
    """Print a line as it is: no markup, not wrapped."""
    out.print(text, markup=False, soft_wrap=True)


def ensure_writable(target: Path, make: bool = False) -> Path:
    """Return the path of a file that is going to be written, checked before any work.

    Args:
        make: Create the folder where it is missing.

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


def write_file(target: Path, write: Callable[[Path], Result]) -> Result:
    """Write a file.

    Raises:
        RunError: It cannot be written.
    """
    try:
        return write(target)
    except OSError as error:
        raise RunError(f"cannot write {target}: {error.strerror}") from error


def write_bytes(target: Path, data: bytes) -> None:
    """Write a file whole or not at all; create its folder where it is missing.

    Raises:
        InputError: Nothing can be written there.
        RunError: It cannot be written.
    """

    def write(path: Path) -> None:
        with open_atomically(path) as file:
            file.write(data)

    write_file(ensure_writable(target, make=True), write)


def write_json(target: Path, value: Any) -> None:
    """Write a value as JSON, as `write_bytes` does."""
    write_bytes(target, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
