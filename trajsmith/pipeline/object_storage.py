"""Storage behind addresses of fsspec, such as `s3://bucket/runs/a`: opened, listed, errors that say what to do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from trajsmith.records import InputError, RunError, to_one_line

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def find_address(path: Path | str) -> str | None:
    """Return the address of storage that a path stands for (a `Path` leaves out one slash of it), or None."""
    match = re.fullmatch(r"([a-z][a-z0-9]+):(/+)(.+)", str(path))
    if match is None:
        return None
    slashes = match[2] if len(match[2]) > 1 else "///" if match[1] in {"file", "local"} else "//"
    return f"{match[1]}:{slashes}{match[3]}"


def check_copy_address(address: str) -> str:
    """Return an address of storage without a slash at its end, for settings.

    Raises:
        ValueError: It is none, or has a name, key or query in it.
    """
    match = re.fullmatch(r"([a-z][a-z0-9]*)://(.+?)/*", address)
    scheme, rest = (match[1], match[2]) if match else ("", "")
    inside = rest.removeprefix("/") if scheme in {"file", "local"} else rest
    if (
        not inside
        or any(mark in rest for mark in "@?#\\")
        or not rest.isprintable()
        or {"", ".", ".."} & {*inside.split("/")}
    ):
        raise ValueError(f"{address}: write an address such as s3://bucket/runs/a, without a name, key or query in it")
    if scheme in {"file", "local"} and not rest.startswith("/"):
        raise ValueError(f"{address}: write it with three slashes and the whole path: {scheme}:///mnt/runs/a")
    return f"{scheme}://{rest}"


def check_address(url: str) -> str:
    """Return an address without a slash at its end.

    Raises:
        InputError: It is none, or has a key in it.
    """
    try:
        return check_copy_address(url)
    except ValueError as error:
        raise InputError(str(error)) from error


def open_storage(url: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it.

    Raises:
        InputError: fsspec does not know it, or the package for it is not installed.
    """
    import fsspec

    try:
        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise InputError(f"{url} cannot be opened: {to_one_line(error)}") from error
    return files, str(root).rstrip("/")


@contextmanager
def storage_errors(url: str, advice: str) -> Iterator[None]:
    """Turn failures of storage into errors that say what to do."""
    try:
        yield
    except (InputError, RunError):
        raise
    except Exception as error:  # each file system has errors of its own: botocore's, gcsfs's, OSError
        raise RunError(f"{url} cannot be used ({to_one_line(error) or type(error).__name__}); {advice}") from error


def list_files(files: Any, root: str, url: str) -> dict[str, tuple[int, str]]:
    """Return the files of a copy with their sizes in bytes, and marks that change with their contents.

    Raises:
        InputError: One of them leads out of the run.
    """
    names = {}
    for path, entry in files.find(root, detail=True).items():
        name = path.removeprefix(root).lstrip("/")
        parts = PurePosixPath(name).parts
        if (
            not path.startswith(f"{root}/")
            or ".." in parts
            or any(ord(letter) < 32 or letter == "\x7f" for letter in name)
        ):
            raise InputError(f"{url} is no copy of a run: it has a file {path[-80:]!a}")
        mark = sha256(repr(sorted(entry.items(), key=lambda pair: pair[0])).encode()).hexdigest()[:32]
        names[name] = (int(entry.get("size") or 0), mark)
    return names
