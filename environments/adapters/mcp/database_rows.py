"""The rows of a SQLite file that a server keeps in its workspace, as JSON."""

import sqlite3
from contextlib import closing
from pathlib import Path

from trajsmith.records import JsonObject, JsonValue, hash_bytes

HEADER = b"SQLite format 3\0"
_MOST_ROWS = 5_000
"""Rows of all tables together; a larger database stands in the state by its hash."""
_SECONDS = 2.0


def is_database(path: Path) -> bool:
    """Return True for a file that begins as SQLite files do."""
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError:
        return False


def read_database(path: Path) -> JsonValue:
    """Return the rows by table and row number; a hash of the file where it is no database or too large.

    The file belongs to a server: only its tables are read, and nothing that its schema defines is run.
    """
    if path.is_file() and path.stat().st_size == 0:
        return {}
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=_SECONDS)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            tables = _read_tables(connection)
    except sqlite3.Error:
        tables = None
    return tables if tables is not None else f"sha256:{hash_bytes(path.read_bytes(), 64)}"


def _read_tables(connection: sqlite3.Connection) -> JsonObject | None:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
        "AND sql NOT LIKE 'CREATE VIRTUAL%'"
    )
    tables: JsonObject = {}
    left = _MOST_ROWS
    for (name,) in sorted(names.fetchall()):
        quoted = name.replace('"', '""')
        cursor = connection.execute(f'SELECT * FROM "{quoted}" LIMIT {left + 1}')
        columns = [column[0] for column in cursor.description]
        rows = cursor.fetchall()
        left -= len(rows)
        if left < 0:
            return None
        tables[name] = {
            str(number): {column: _as_json(value) for column, value in zip(columns, row, strict=True)}
            for number, row in enumerate(rows, 1)
        }
    return tables


def _as_json(value: object) -> JsonValue:
    if isinstance(value, bytes):
        return f"sha256:{hash_bytes(value, 16)}"
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return str(value)
    return value if isinstance(value, str | int | float) else None
