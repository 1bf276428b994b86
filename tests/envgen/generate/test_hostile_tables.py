"""SQLite files of others: a column that computes without end, or makes values of any length, is no table."""

import resource
import sqlite3
import time
from pathlib import Path

import pytest

from trajsmith.envgen.generate.table_files import read_files

ROWS = (
    "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < {}) INSERT INTO t (a) SELECT x FROM c;"
)
GROWING = {
    "one value": "CREATE TABLE t (a, b AS (zeroblob(900000000))); INSERT INTO t (a) VALUES (1);",
    "all values": "CREATE TABLE t (a, b AS (zeroblob(900000)));" + ROWS.format(5000),
    "work": "CREATE TABLE t (a);"
    + ROWS.format(1000)
    + "ALTER TABLE t ADD COLUMN b AS ("
    + "length(replace(a || hex(zeroblob(50000)), '00', '0')) + " * 50
    + "1);",
}


@pytest.mark.parametrize("name", GROWING)
def test_a_column_that_grows_is_left_out_with_its_reason(tmp_path: Path, name: str) -> None:
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.executescript(GROWING[name])
    database.close()
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    tables, left_out, _ = read_files(tmp_path / "t.db")
    assert tables == []
    assert [one.what for one in left_out] == ["t.db"]
    assert time.process_time() - began < 15
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


def test_an_ordinary_file_is_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.executescript("CREATE TABLE t (a TEXT PRIMARY KEY, b); INSERT INTO t VALUES ('x', 1), ('y', NULL);")
    database.close()
    (table,), left_out, _ = read_files(tmp_path / "t.db")
    assert (table.rows, table.key, left_out) == ([["x", 1], ["y", None]], ("a",), [])
