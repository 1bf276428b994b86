"""Files that are written whole or not at all, and one wording for writes that fail."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from trajsmith.records.errors import InputError, RunError
from trajsmith.records.links import link_error, open_no_follow

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
SAME_COMMAND = "give the same command again"


@contextmanager
def storage_boundary(file: Path, again: str = SAME_COMMAND) -> Iterator[None]:
    """Turn an `OSError` of writing into a `RunError` that says what to do about it.

    Args:
        file: File or folder that is written.
        again: What goes on afterwards, such as a command.
    """
    try:
        yield
    except OSError as error:
        raise storage_error(error, file, again) from error


def storage_error(error: OSError, file: Path, again: str = SAME_COMMAND) -> RunError:
    """Return the one line for a write that failed; what was written before it stays valid."""
    if error.errno == errno.ELOOP:
        return RunError(str(link_error(file)))
    reason = error.strerror or str(error)
    if error.errno in FULL:
        return RunError(f"disk full ({reason}) at {file}: free some space, then {again}")
    return RunError(f"cannot write {file}: {reason}; fix that, then {again}")


@contextmanager
def open_whole_file(path: Path, durable: bool = False, part: Path | None = None) -> Iterator[IO[bytes]]:
    """Open a file that appears when all of it is written, or not at all; an older one stays until then.

    Args:
        durable: It is on the disk before it appears, also after an outage.
        part: Where it is written meanwhile, on the same file system; beside `path` if None.

    A device such as `/dev/null` is written to and stays a device; root could otherwise put a file in its place.

    Raises:
        OSError: It cannot be written.
    """
    if path.is_char_device():
        with path.open("wb") as device:
            yield device
        return
    part = part or path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        with os.fdopen(open_no_follow(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole_file(path: Path, data: bytes, again: str = SAME_COMMAND) -> None:
    """Write a file whole or not at all.

    Raises:
        RunError: It cannot be written.
    """
    with storage_boundary(path, again), open_whole_file(path) as file:
        file.write(data)


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
