"""Files with tables: CSV, JSON, JSON Lines and SQLite."""

import csv
import io
import json
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.records import InputError, hash_bytes

_SQLITE = (".sqlite", ".sqlite3", ".db", ".db3")
_MAX_ROWS = 10_000
"""Rows that are read of a table."""
_MAX_BYTES = 200_000_000
_MAX_TABLES = 1000
_MAX_VALUE_BYTES = 1_000_000
"""Bytes of a value in a SQLite file."""
_MAX_TABLE_BYTES = 200_000_000
"""Bytes of the texts that are read of a SQLite table."""
_MAX_SECONDS = 5.0
"""CPU seconds for a SQLite file."""
_STEPS = 200
"""Instructions of SQLite between two looks at the clock; one may work on a whole value."""


@dataclass
class RawTable:
    """Table as it is stored in its file."""

    name: str
    columns: list[str]
    rows: list[list[Any]]
    key: tuple[str, ...] = ()
    """Columns of the declared primary key."""
    references: dict[str, str] = field(default_factory=dict)
    """Tables by the columns whose foreign keys lead to them."""


def read_files(path: Path) -> tuple[list[RawTable], list[SkippedItem], str]:
    """Return the tables of a file or folder, the files that could not be read, and a hash of everything.

    Raises:
        InputError: There is no such file, or it is too large.
    """
    if not path.exists():
        raise InputError(f"no such file or directory: {path}")
    files = sorted(child for child in path.iterdir() if child.is_file()) if path.is_dir() else [path]
    tables, left_out, hashes = list[RawTable](), list[SkippedItem](), list[str]()
    for file in files:
        if file.stat().st_size > _MAX_BYTES:
            left_out.append(SkippedItem(what=file.name, reason=f"larger than {_MAX_BYTES // 1_000_000} MB"))
            continue
        try:
            file_tables = _read(file)
        except (ValueError, csv.Error, sqlite3.Error, RecursionError) as error:
            left_out.append(SkippedItem(what=file.name, reason=f"cannot be read: {' '.join(str(error).split())[:160]}"))
            continue
        if file_tables is None:
            left_out.append(SkippedItem(what=file.name, reason="neither CSV, JSON, JSON Lines nor SQLite"))
            continue
        hashes.append(hash_bytes(file.read_bytes()))
        tables += file_tables
    return tables, left_out, hash_bytes("".join(hashes).encode())


def _read(file: Path) -> list[RawTable] | None:
    suffix = file.suffix.lower()
    if suffix in _SQLITE:
        return _read_sqlite(file)
    if suffix in (".csv", ".tsv"):
        return [_read_csv(file, "\t" if suffix == ".tsv" else "")]
    if suffix == ".jsonl":
        lines = file.read_text(encoding="utf-8-sig").splitlines()
        return [_read_records(file.stem, [json.loads(line) for line in lines[:_MAX_ROWS] if line.strip()])]
    return _read_json_tables(file.stem, json.loads(file.read_text(encoding="utf-8-sig"))) if suffix == ".json" else None


def _read_csv(file: Path, delimiter: str) -> RawTable:
    text = file.read_text(encoding="utf-8-sig")
    delimiter = delimiter or max(",;\t|", key=text.partition("\n")[0].count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, strict=True) if row]
    if not rows:
        raise ValueError("it is empty")
    head, body = rows[0], rows[1 : _MAX_ROWS + 1]
    uneven = next((number for number, row in enumerate(body, 2) if len(row) != len(head)), None)
    if uneven is not None:
        raise ValueError(f"row {uneven} has {len(body[uneven - 2])} values, the head has {len(head)}")
    return RawTable(file.stem, head, [list(row) for row in body])


def _read_json_tables(name: str, document: Any) -> list[RawTable]:
    if isinstance(document, list):
        return [_read_records(name, document)]
    if isinstance(document, dict):
        json_tables = [
            _read_records(str(key), value) for key, value in document.items() if isinstance(value, list) and value
        ]
        if json_tables:
            return json_tables
    raise ValueError("neither a list of records nor an object of such lists")


def _read_records(name: str, records: list[Any]) -> RawTable:
    if not records or not all(isinstance(record, dict) for record in records):
        raise ValueError(f"{name} is no list of records")
    columns = list(dict.fromkeys(str(key) for record in records for key in record))
    return RawTable(name, columns, [[record.get(column) for column in columns] for record in records[:_MAX_ROWS]])


def _read_sqlite(file: Path) -> list[RawTable]:
    database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        _bound_database(database)
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
            "AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT ?",
            (_MAX_TABLES,),
        )
        return [_read_sqlite_table(database, str(name)) for (name,) in names.fetchall()]
    except MemoryError as error:
        raise ValueError("a value is too large") from error
    finally:
        database.close()


def _bound_database(database: sqlite3.Connection) -> None:
    """Let a file of others run no functions of its own choice, and compute and keep only so much.

    A column may be generated by an expression, such as a text of a gigabyte.
    """
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    end = time.process_time() + _MAX_SECONDS
    database.set_progress_handler(lambda: time.process_time() > end, _STEPS)


def _read_sqlite_table(database: sqlite3.Connection, name: str) -> RawTable:
    quoted = '"' + name.replace('"', '""') + '"'
    info = database.execute(f"PRAGMA table_info({quoted})").fetchall()
    links = database.execute(f"PRAGMA foreign_key_list({quoted})").fetchall()
    rows, size = list[tuple[Any, ...]](), 0
    for row in database.execute(f"SELECT * FROM {quoted} LIMIT {_MAX_ROWS}"):
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _MAX_TABLE_BYTES:
            raise ValueError(f"table {name!a} has more than {_MAX_TABLE_BYTES // 1_000_000} MB")
        rows.append(row)
    key = tuple(column[1] for column in sorted(info, key=lambda column: column[5]) if column[5])
    return RawTable(
        name, [column[1] for column in info], [list(row) for row in rows], key, {link[3]: link[2] for link in links}
    )
