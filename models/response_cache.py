"""Response cache and usage ledger of a run in one SQLite file, so that a kill cannot separate the two.

Written by the one process that holds the run's lock. `synchronous=NORMAL` over a write-ahead log: a killed process
loses nothing that was written, a power cut at most the last answers.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from trajsmith.models.model import ChatReply
from trajsmith.records import RunError, refuse_link

SIDE_FILES = ("-wal", "-shm", "-journal")
"""Ends of the names of the files that SQLite keeps beside the database."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, reply BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS usage (number INTEGER PRIMARY KEY, line BLOB NOT NULL);
"""


class ResponseCache:
    """Cached replies by request hash, and usage lines in the order of payment."""

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
        stored = self._one("SELECT reply FROM answers WHERE key = ?", key)
        if stored is None:
            return None
        try:
            return ChatReply.model_validate_json(stored)
        except ValidationError:  # written by another version: as good as no answer
            return None

    def put(self, line: bytes, key: bytes | None = None, reply: ChatReply | None = None) -> None:
        """Store one usage line together with the paid reply, if it was usable."""
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
        """Delete the usage lines for a new run; cached replies stay and cost nothing."""
        with self._boundary():
            self._file.execute("DELETE FROM usage")
        self.number = 0

    def close(self) -> None:
        """Close the database; safe to call twice."""
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
