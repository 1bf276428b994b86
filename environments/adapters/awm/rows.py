"""Rows as JSON, and a database made of them again.

A row stands under its primary key; a table without one uses SQLite's rowid. Where the primary key is not the rowid
itself, a row carries it as "@rowid": it decides in which order rows come that nobody sorts.
"""

import base64
import math
from collections.abc import Iterable
from typing import Any

import orjson

from trajsmith.environments.adapters.awm.database import SqliteDatabase, connect, quote_identifier
from trajsmith.records import JsonObject, JsonValue

Row = tuple[int | None, bytes]
"""Rowid and JSON of a row."""

ROWID = "@rowid"
BLOB = "@blob"
SEQUENCE = "sqlite_sequence"
_ROWIDS = ("rowid", "_rowid_", "oid")


class TableLayout:
    """Columns and keys of a table."""

    def __init__(self, database: SqliteDatabase, name: str, without_rowid: bool) -> None:
        info = database.execute(f"PRAGMA table_xinfo({quote_identifier(name)})").fetchall()
        self.name = name
        self.columns = [column for _, column, _, _, _, _, hidden in info if hidden == 0]
        """Columns that hold values of their own, not generated ones."""
        keyed = sorted((place, column, kind) for _, column, kind, _, _, place, _ in info if place)
        self.key = [self.columns.index(column) for _, column, _ in keyed if column in self.columns]
        self.rowid = (
            None if without_rowid else next((n for n in _ROWIDS if n not in map(str.lower, self.columns)), None)
        )
        self.is_alias = len(keyed) == 1 and keyed[0][2].upper() == "INTEGER" and not without_rowid
        """True if the primary key is the rowid itself."""

    def rows(self, database: SqliteDatabase) -> dict[str, Row]:
        """All rows by key, in SQLite's own order."""
        names = [quote_identifier(column) for column in self.columns]
        first = self.rowid or "NULL"
        result: dict[str, Row] = {}
        for rowid, *values in database.execute(
            f"SELECT {', '.join([first, *names])} FROM {quote_identifier(self.name)}"
        ):
            key = self._key(rowid, values)
            if key in result:
                key = f"rowid:{rowid}"
            result[key] = rowid, self._json(rowid, values)
        return result

    def _key(self, rowid: int | None, values: list[Any]) -> str:
        parts = [values[place] for place in self.key]
        if not parts or None in parts:
            return f"rowid:{rowid}"
        if len(parts) == 1:
            return parts[0].hex() if isinstance(parts[0], bytes) else str(parts[0])
        return orjson.dumps([to_json(part) for part in parts]).decode()

    def _json(self, rowid: int | None, values: list[Any]) -> bytes:
        row = {column: to_json(value) for column, value in zip(self.columns, values, strict=True)}
        if self.rowid is not None and not self.is_alias:
            row[ROWID] = rowid
        return orjson.dumps(row)

    def insert(self, database: SqliteDatabase, rows: Iterable[JsonObject]) -> None:
        """Insert rows as `rows` tells them.

        Raises:
            ValueError: A row has other columns than the table.
            sqlite3.Error: A row breaks a constraint.
        """
        own = self.rowid is not None and not self.is_alias
        wanted = {*self.columns, ROWID} if own else set(self.columns)
        names = [*map(quote_identifier, self.columns), *([str(self.rowid)] if own else [])]
        marks = ", ".join("?" * len(names))
        records = []
        for row in rows:
            if not isinstance(row, dict) or row.keys() != wanted:
                raise ValueError(f"a row of {self.name} has exactly {', '.join(sorted(wanted))}")
            values = [from_json(row[column]) for column in self.columns]
            records.append((*values, row[ROWID]) if own else tuple(values))
        database.executemany(
            f"INSERT INTO {quote_identifier(self.name)} ({', '.join(names)}) VALUES ({marks})", records
        )

    def delete(self, database: SqliteDatabase, row: Row) -> None:
        """Take out a row that `rows` told."""
        if self.rowid is not None:
            database.execute(f"DELETE FROM {quote_identifier(self.name)} WHERE {self.rowid} = ?", (row[0],))
            return
        values = orjson.loads(row[1])
        names = [self.columns[place] for place in self.key]
        test = " AND ".join(f"{quote_identifier(name)} IS ?" for name in names)
        database.execute(
            f"DELETE FROM {quote_identifier(self.name)} WHERE {test}", [from_json(values[name]) for name in names]
        )


class DatabaseSchema:
    """Tables, indexes, triggers and views of a database."""

    def __init__(self, database: SqliteDatabase) -> None:
        listed = {name: (kind, wr) for _, name, kind, _, wr, _ in database.execute("PRAGMA main.table_list")}
        self.tables: dict[str, TableLayout] = {}
        """All tables that hold rows; those behind virtual tables, too."""
        for name, (kind, without_rowid) in sorted(listed.items()):
            if kind in ("table", "shadow") and not name.startswith("sqlite_"):
                self.tables[name] = TableLayout(database, name, bool(without_rowid))
        if SEQUENCE in listed:
            self.tables[SEQUENCE] = TableLayout(database, SEQUENCE, False)
            self.tables[SEQUENCE].key = [0]
        shadows = {name for name, (kind, _) in listed.items() if kind == "shadow"}
        rows = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
        statements = [(kind, sql) for kind, name, sql in rows if name not in shadows and not name.startswith("sqlite_")]
        self.first = [sql for kind, sql in statements if kind == "table"]
        self.later = [sql for kind, sql in statements if kind != "table"]

    def create_filled(self, state: JsonObject) -> SqliteDatabase:
        """A database with the rows of a state.

        Raises:
            ValueError: The state has other tables or columns.
            sqlite3.Error: A row breaks a constraint.
        """
        if state.keys() != self.tables.keys():
            raise ValueError(f"a state has exactly the tables {', '.join(self.tables)}")
        database = connect()
        for sql in self.first:
            database.execute(sql)
        for name in sorted(self.tables, key=lambda name: name == SEQUENCE):
            if not isinstance(state[name], dict):
                raise ValueError(f"{name} must be an object of rows")
            database.execute(f"DELETE FROM {quote_identifier(name)}")
            self.tables[name].insert(database, state[name].values())
        for sql in self.later:
            database.execute(sql)
        database.commit()
        database.touched.clear()
        return database


def to_json(value: Any) -> JsonValue:
    """A value of SQLite as JSON.

    Raises:
        ValueError: It is infinite.
    """
    if isinstance(value, bytes):
        return {BLOB: base64.b64encode(value).decode()}
    if isinstance(value, float) and math.isinf(value):
        raise ValueError("an infinite number is no JSON")
    return value


def from_json(value: JsonValue) -> Any:
    """The other way round.

    Raises:
        ValueError: It is nothing that SQLite keeps.
    """
    if isinstance(value, dict) and value.keys() == {BLOB}:
        return base64.b64decode(value[BLOB])
    if isinstance(value, dict | list):
        raise ValueError(f"a {type(value).__name__} is no value of a column")
    return int(value) if isinstance(value, bool) else value
