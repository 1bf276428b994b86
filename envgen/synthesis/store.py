"""Store finished steps as JSON Lines, looked up by the inputs that they were made from.

A step is named by its kind and by a hash of everything that it depends on. A run that was killed asks for the same
steps again and gets those that are there; the answers of models come from their own cache. One process writes at a time
(the caller holds the run's lock); a torn last line is cut off on opening.
"""

import errno
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from trajsmith.records import Record, RunError, content_hash, format_first_error
from trajsmith.records.links import append_no_follow, refuse_link

Kind = TypeVar("Kind", bound=Record)


@contextmanager
def explain_write_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` of writing into a one-line error that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(f"{path}: {reason}; mend that, then start the same command again") from error


class RecordStore:
    """Record files of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lines: dict[str, dict[str, bytes]] = {}

    async def step(self, file: str, model: type[Kind], made_from: Any, work: Callable[[], Awaitable[Kind]]) -> Kind:
        """Return the record of a step: the stored one, or one that is computed and stored now.

        Args:
            file: Name of the record file, for example "drafts".
            made_from: Everything that the record depends on, as JSON.
        """
        key = content_hash([file, made_from], 20)
        known = self.get(file, model, key)
        if known is not None:
            return known
        record = await work()
        self.put(file, key, record)
        return record

    def get(self, file: str, model: type[Kind], key: str) -> Kind | None:
        """Return a record by the key of its step."""
        line = self._read(file).get(key)
        return None if line is None else self._parse(file, model, line)

    def all(self, file: str, model: type[Kind]) -> list[Kind]:
        """Return all records of a file in creation order."""
        return [self._parse(file, model, line) for line in self._read(file).values()]

    def put(self, file: str, key: str, record: Record) -> None:
        """Append a record under a key."""
        lines = self._read(file)
        line = orjson.dumps({"key": key, "record": record.model_dump(mode="json")}, option=orjson.OPT_APPEND_NEWLINE)
        path = self._path(file)
        with explain_write_errors(path), append_no_follow(path, buffering=0) as handle:
            size = os.fstat(handle.fileno()).st_size
            if handle.write(line) != len(line):
                os.ftruncate(handle.fileno(), size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        lines[key] = line

    def _path(self, file: str) -> Path:
        name = f"{file}.jsonl"
        refuse_link(self.folder, PurePath(name))
        return self.folder / name

    def _read(self, file: str) -> dict[str, bytes]:
        if file not in self._lines:
            path = self._path(file)
            lines: dict[str, bytes] = {}
            end = 0
            for line in path.read_bytes().splitlines(keepends=True) if path.is_file() else ():
                if not line.endswith(b"\n"):
                    os.truncate(path, end)  # a kill tore it; its step is done again
                    break
                end += len(line)
                lines[self._key(path, line)] = line
            self._lines[file] = lines
        return self._lines[file]

    def _key(self, path: Path, line: bytes) -> str:
        try:
            return str(orjson.loads(line)["key"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise RunError(f"{path}: a line was changed by hand: {line[:80]!r}") from error

    def _parse(self, file: str, model: type[Kind], line: bytes) -> Kind:
        try:
            return model.model_validate(orjson.loads(line)["record"])
        except ValidationError as error:
            raise RunError(f"{self._path(file)}: made by another version: {format_first_error(error)}") from error
