"""The answers of a run on disk, and what they cost: one SQLite file, so that a kill cannot part the two.

Written by the one process that holds the run's lock. `synchronous=NORMAL` over a write-ahead log: a killed process
loses nothing that was written, a power cut at most the last answers.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from chatmodel.model import ChatReply
from trajectory import RunError
from trajectory.links import refuse_link

SIDE_FILES = ("-wal", "-shm", "-journal")
"""Ends of the names of the files that SQLite keeps beside the database."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, reply BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (number INTEGER PRIMARY KEY, line BLOB NOT NULL);
"""


class Answers:
    """Answers by the content of their requests, and the lines of usage in the order in which they were paid."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for file in (path.parent, path, *(path.with_name(f"{path.name}{end}") for end in SIDE_FILES)):
            refuse_link(file.parent, PurePath(file.name))  # SQLite follows links
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._boundary():
            self._file = sqlite3.connect(path, isolation_level=None)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.executescript(SCHEMA)
        self.number: int = self._one("SELECT COALESCE(MAX(number), 0) FROM usage")
        """Lines of usage so far."""

    def get(self, key: bytes) -> ChatReply | None:
        """The answer to an earlier request with this content."""
        found = self._one("SELECT reply FROM answers WHERE key = ?", key)
        if found is None:
            return None
        try:
            return ChatReply.model_validate_json(found)
        except ValidationError:  # written by another version: as good as no answer
            return None

    def put(self, line: bytes, key: bytes | None = None, reply: ChatReply | None = None) -> None:
        """Keep one line of usage, and with it the answer that was paid, if there was a usable one."""
        with self._boundary():
            self._file.execute("BEGIN")
            try:
                self._file.execute("INSERT INTO usage VALUES (?, ?)", (self.number + 1, line))
                if key is not None and reply is not None:
                    data = reply.model_dump_json(exclude={"cached", "usage"}, exclude_defaults=True).encode()
                    self._file.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, data))
                self._file.execute("COMMIT")
            except BaseException:  # whatever it was, nothing of it stays; it goes on up
                if self._file.in_transaction:
                    self._file.execute("ROLLBACK")
                raise
        self.number += 1

    def lines(self, after: int = 0) -> Iterator[bytes]:
        """Lines of usage from a number on."""
        with self._boundary():
            for (line,) in self._file.execute("SELECT line FROM usage WHERE number > ? ORDER BY number", (after,)):
                yield line

    def forget_usage(self) -> None:
        """A new run begins: earlier answers may be used again, and cost nothing."""
        with self._boundary():
            self._file.execute("DELETE FROM usage")
        self.number = 0

    def close(self) -> None:
        """Safe to call twice."""
        self._file.close()

    def _one(self, query: str, *values: object) -> Any:
        with self._boundary():
            row = self._file.execute(query, values).fetchone()
        return row[0] if row else None

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RunError(f"{self.path}: {error}; mend that, then resume the run") from error
