"""The user's cache: work that depends on nothing but this program's code and what it is named by, kept between runs.

All of it can be deleted at any time, and work goes on without it where nothing can be stored. `TRAJSMITH_CACHE` names
another folder, or is `off`.
"""

import functools
import hashlib
import logging
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

from trajsmith.records.canonical import content_hash, hash_bytes

CACHE_VARIABLE = "TRAJSMITH_CACHE"
MOST_VERSIONS = 4
"""Folders of other versions of the code that are kept beside that of this one."""
_LIBRARIES = ("jinja2", "pydantic", "pydantic-core", "pyyaml")
"""Libraries whose versions stored work depends on."""
_log = logging.getLogger(__name__)


class UserCache:
    """Bytes by key, of one kind, made by this version of the code. A file that was not written whole is not read."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    @functools.cached_property
    def _folder(self) -> Path | None:
        base = _find_base()
        if base is None:
            return None
        folder = base / compute_code_fingerprint() / self._kind
        try:
            return _prepare_folder(base, folder)
        except OSError as error:
            _log.info("no cache in %s: %s", base, error)
            return None

    def get(self, key: str) -> bytes | None:
        """Return what was stored under a key; None if nothing was, or it cannot be read."""
        if self._folder is None:
            return None
        try:
            data = self._build_path(self._folder, key).read_bytes()
        except OSError:
            return None
        content = data[32:]
        return content if hashlib.sha256(content).digest() == data[:32] else None

    def put(self, key: str, content: bytes) -> None:
        """Store bytes under a key; the first that cannot be stored is the last that is tried."""
        if self._folder is None:
            return
        try:  # in one write; who reads a part of it sees that by the digest
            self._build_path(self._folder, key).write_bytes(hashlib.sha256(content).digest() + content)
        except OSError as error:
            _log.info("nothing is stored in %s: %s", self._folder, error)
            self._folder = None

    @staticmethod
    def _build_path(folder: Path, key: str) -> Path:
        return folder / hash_bytes(key.encode("utf-8", "surrogatepass"))


@functools.cache
def compute_code_fingerprint() -> str:
    """Return a digest of this package's modules and data, of Python and of libraries that stored work depends on."""
    digest = hashlib.sha256()
    for folder, names, files in os.walk(Path(__file__).parents[1], followlinks=True):
        names.sort()
        for name in sorted(files):
            if name.endswith((".py", ".yaml", ".json")):
                data = Path(folder, name).read_bytes()
                digest.update(b"%d:" % len(data))
                digest.update(data)
    return content_hash([digest.hexdigest(), sys.version, [version(name) for name in _LIBRARIES]], 16)


def _find_base() -> Path | None:
    chosen = os.environ.get(CACHE_VARIABLE, "")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "trajsmith")
    except RuntimeError:  # nobody knows where this user is at home
        return None


def _prepare_folder(base: Path, folder: Path) -> Path | None:
    """Create a folder where it is missing; None if others can write to it, since code is read from it.

    Raises:
        OSError: It cannot be created.
    """
    is_new = not folder.parent.exists()
    for one in (base, folder.parent, folder):
        one.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(one):
            _log.warning("%s is not used as a cache: it belongs to somebody else, or others can write to it", one)
            return None
    if is_new:
        _remove_oldest(base)
    return folder


def _is_private(folder: Path) -> bool:
    """Return True if only this user can write to a folder; systems without users tell nothing."""
    if not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _remove_oldest(base: Path) -> None:
    """Remove what older versions of the code left; a run that still uses it goes on without."""
    folders = sorted((one for one in base.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime)
    for folder in folders[: -MOST_VERSIONS - 1]:
        shutil.rmtree(folder, ignore_errors=True)
