"""A directory in memory: the files of one episode. Nothing outside it exists."""

import errno
import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

FileText = Mapping[str, str]
"""Text of files by relative path."""


def _error(kind: type[OSError], number: int, path: str) -> OSError:
    return kind(number, os.strerror(number), path)


class Files:
    """Files by relative path, under a directory that has one absolute name.

    Attributes:
        root: The directory's absolute name; it is the working directory too.
        touched: Files and directories that were written, created or removed, since somebody cleared it.
    """

    def __init__(self, root: str, texts: FileText, fixed: FileText, directories: set[str]) -> None:
        """Share `texts` and `fixed`; nothing is written into them.

        Args:
            root: The directory's absolute name.
            texts: The files that tools may change.
            fixed: Files that can only be read.
            directories: Directories that are there without a file in them.
        """
        self.root = root
        self.touched: set[str] = set()
        self._texts = dict(texts)
        self._fixed = fixed
        self._directories = set(directories)

    def locate(self, path: Any) -> str:
        """Relative path of a file or directory; the root is "".

        Raises:
            FileNotFoundError: It lies outside the directory.
        """
        raw = os.fspath(path)
        raw = raw.decode() if isinstance(raw, bytes) else str(raw)
        whole = posixpath.normpath(posixpath.join(self.root, raw))
        if whole != self.root and not whole.startswith(f"{self.root}/"):
            raise _error(FileNotFoundError, errno.ENOENT, raw)
        return whole[len(self.root) + 1 :]

    def is_file(self, name: str) -> bool:
        return name in self._texts or name in self._fixed

    def is_directory(self, name: str) -> bool:
        inside = (path.startswith(f"{name}/") for path in (*self.names(), *self._directories))
        return not name or name in self._directories or any(inside)

    def names(self) -> Iterator[str]:
        """All files."""
        yield from self._texts
        yield from self._fixed

    def entries(self, name: str) -> list[str]:
        """Names in a directory, sorted.

        Raises:
            OSError: It is no directory.
        """
        if not self.is_directory(name):
            raise _error(NotADirectoryError if self.is_file(name) else FileNotFoundError, errno.ENOENT, name)
        start = f"{name}/" if name else ""
        inside = [path[len(start) :] for path in (*self.names(), *self._directories) if path.startswith(start)]
        return sorted({path.partition("/")[0] for path in inside if path})

    def read(self, name: str) -> str:
        """Text of a file.

        Raises:
            OSError: It is none.
        """
        if name in self._texts:
            return self._texts[name]
        if name in self._fixed:
            return self._fixed[name]
        if self.is_directory(name):
            raise _error(IsADirectoryError, errno.EISDIR, name)
        raise _error(FileNotFoundError, errno.ENOENT, name)

    def write(self, name: str, text: str) -> None:
        """Make or replace a file.

        Raises:
            OSError: It cannot be written: it is fixed, a directory, or in a directory that is not there.
        """
        self.check_writable(name)
        self._texts[name] = text
        parent = name.rpartition("/")[0]
        self._directories.discard(parent)
        self.touched |= {name, f"{parent}/"}

    def check_writable(self, name: str) -> None:
        """Raises the error that opening it for writing raises."""
        if name in self._fixed:
            raise _error(PermissionError, errno.EACCES, name)
        if self.is_directory(name):
            raise _error(IsADirectoryError, errno.EISDIR, name)
        if not self.is_directory(name.rpartition("/")[0]):
            raise _error(FileNotFoundError, errno.ENOENT, name)

    def remove(self, name: str) -> None:
        self.read(name)
        if name in self._fixed:
            raise _error(PermissionError, errno.EACCES, name)
        del self._texts[name]
        self.touched.add(name)
        parent = name.rpartition("/")[0]
        if not self.is_directory(parent):
            self._directories.add(parent)
            self.touched.add(f"{parent}/")

    def move(self, source: str, target: str) -> None:
        self.write(target, self.read(source))
        if source != target:
            self.remove(source)

    def make_directory(self, name: str, parents: bool, exist_ok: bool) -> None:
        if self.is_directory(name) and exist_ok:
            return
        if self.is_directory(name) or self.is_file(name):
            raise _error(FileExistsError, errno.EEXIST, name)
        if not parents and not self.is_directory(name.rpartition("/")[0]):
            raise _error(FileNotFoundError, errno.ENOENT, name)
        above = name.rpartition("/")[0]
        self._directories.discard(above)
        self._directories.add(name)
        self.touched |= {f"{name}/", f"{above}/"}

    def remove_directory(self, name: str) -> None:
        if self.entries(name):
            raise _error(OSError, errno.ENOTEMPTY, name)
        self._directories.discard(name)
        above = name.rpartition("/")[0]
        if not self.is_directory(above):
            self._directories.add(above)
        self.touched |= {f"{name}/", f"{above}/"}

    def is_empty_directory(self, name: str) -> bool:
        return name in self._directories and not self.entries(name)
