"""SQLite databases in memory: made from SQL or a file, copied from one another.

SQL's own clock and chance (CURRENT_TIMESTAMP, datetime('now'), random()) follow Python's, which are virtual in a
worker. No database can be attached, and nobody but us can close one.
"""

import base64
import binascii
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from trajsmith.environments.foreign import format_error

_WRITES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_FORBIDDEN = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})
_DATES = ("date", "time", "datetime", "julianday", "unixepoch")


class SqliteDatabase(sqlite3.Connection):
    """A database in memory that others cannot close."""

    touched: set[str]
    """Tables that a statement was prepared to write, since somebody last emptied it."""

    def close(self) -> None:
        """Do nothing: a pool that gives the connection back must not end the episode."""

    def discard(self) -> None:
        """Really close it."""
        super().close()


def connect() -> SqliteDatabase:
    """An empty database."""
    database: SqliteDatabase = sqlite3.connect(
        ":memory:", factory=SqliteDatabase, cached_statements=0, check_same_thread=False
    )
    database.touched = touched = set[str]()

    def authorize(action: int, first: str | None, _second: str | None, schema: str | None, _inner: str | None) -> int:
        if action in _WRITES and schema == "main" and first is not None:
            touched.add(first)
        return sqlite3.SQLITE_DENY if action in _FORBIDDEN else sqlite3.SQLITE_OK

    database.set_authorizer(authorize)
    _make_virtual(database)
    return database


def copy_database(base: SqliteDatabase) -> SqliteDatabase:
    """A database with the same content."""
    copy = connect()
    base.backup(copy)
    copy.touched.clear()
    return copy


# Clock and chance


def _make_virtual(database: SqliteDatabase) -> None:
    for name in _DATES:
        database.create_function(name, -1, _date_function(f"{name}({{}})"), deterministic=True)
    database.create_function("strftime", -1, _format_date, deterministic=True)
    for name, pattern in (("timestamp", "%Y-%m-%d %H:%M:%S"), ("date", "%Y-%m-%d"), ("time", "%H:%M:%S")):
        database.create_function(f"current_{name}", 0, _now_as(pattern))
    database.create_function("random", 0, lambda: random.getrandbits(64) - (1 << 63))
    database.create_function("randomblob", 1, lambda count: random.randbytes(max(1, int(count))))


_date_connections: list[sqlite3.Connection] = []


def _evaluate(expression: str, values: tuple[Any, ...]) -> Any:
    """SQLite's own function, on a connection where it is not replaced."""
    if not _date_connections:
        _date_connections.append(sqlite3.connect(":memory:", check_same_thread=False))
    return _date_connections[0].execute(f"SELECT {expression}", values).fetchone()[0]


def _at_now(values: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    """Return the arguments of a date function, with the virtual time where SQLite would take the real one."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time()))
    if len(values) <= place:
        return (*values, moment)
    now = isinstance(values[place], str) and values[place].strip().lower() == "now"
    return (*values[:place], moment, *values[place + 1 :]) if now else values


def _date_function(call: str) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        values = _at_now(values, 0)
        return _evaluate(call.format(", ".join("?" * len(values))), values)

    return run


def _format_date(*values: Any) -> Any:
    values = _at_now(values, 1)
    return _evaluate(f"strftime({', '.join('?' * len(values))})", values)


def _now_as(pattern: str) -> Callable[[], str]:
    return lambda: time.strftime(pattern, time.gmtime(time.time()))


# Making


def split_statements(sql: str, file: str) -> Iterator[tuple[str, str]]:
    """The statements of a text of SQL, each with file and line."""
    collected, begun = "", 1
    for number, line in enumerate(sql.splitlines(keepends=True), 1):
        if not collected and (not line.strip() or line.strip().startswith("--")):
            continue
        begun = begun if collected else number
        collected += line
        if sqlite3.complete_statement(collected):
            yield f"{file}:{begun}", collected
            collected = ""
    if collected.strip() and not all(
        line.strip().startswith("--") or not line.strip() for line in collected.splitlines()
    ):
        yield f"{file}:{begun}", collected


def execute_all(database: SqliteDatabase, located_statements: Iterable[tuple[str, str]]) -> list[str]:
    """Run statements as the reference does: with foreign keys checked, and a failing one does not end the rest.

    Returns:
        What failed, one line each.
    """
    failures = []
    database.execute("PRAGMA foreign_keys = ON")
    for where, sql in located_statements:
        try:
            database.execute(sql)
        except sqlite3.Error as error:
            failures.append(f"{where}: left out: {format_error(error)}")
    database.commit()
    database.execute("PRAGMA foreign_keys = OFF")
    return failures


def restore_database(text: str) -> SqliteDatabase:
    """A database from the base64 text of a SQLite file.

    Raises:
        sqlite3.DatabaseError: It is none.
    """
    database = connect()
    try:
        source = sqlite3.connect(":memory:")
        source.deserialize(base64.b64decode(text, validate=True))
        source.backup(database)
        source.close()
    except binascii.Error as error:
        raise sqlite3.DatabaseError(str(error)) from error
    database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return database


def quote_identifier(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
