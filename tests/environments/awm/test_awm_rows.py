"""Rows of every kind of table, told as JSON and made again; SQL's clock; the loop that waits for nothing."""

import asyncio
import random
import sqlite3
import time
from typing import Any

import orjson
import pytest

from trajsmith.environments.adapters.awm.database import connect, copy_database, execute_all, split_statements
from trajsmith.environments.adapters.awm.event_loop import EventLoopDeadlock, IsolatedEventLoop
from trajsmith.environments.adapters.awm.rows import DatabaseSchema

TABLES = """
CREATE TABLE plain (id INTEGER PRIMARY KEY, value);
CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT DEFAULT 'x');
CREATE TABLE named (name TEXT PRIMARY KEY, data BLOB, ratio REAL);
CREATE TABLE pairs (a INTEGER, b TEXT, PRIMARY KEY (a, b));
CREATE TABLE compact (k TEXT PRIMARY KEY, v INTEGER) WITHOUT ROWID;
CREATE TABLE loose (a, b);
CREATE TABLE "odd name" (rowid TEXT, "select" INTEGER);
CREATE TABLE made (a INTEGER, twice INTEGER GENERATED ALWAYS AS (a * 2) STORED);
CREATE INDEX by_value ON plain(value);
CREATE VIEW seen AS SELECT * FROM plain;
CREATE TRIGGER log AFTER INSERT ON plain BEGIN INSERT INTO loose VALUES (new.id, 'logged'); END;
INSERT INTO plain VALUES (3, 1.5), (1, NULL), (2, 'text');
INSERT INTO counted (value) VALUES ('a'), ('b');
DELETE FROM counted WHERE id = 2;
INSERT INTO named VALUES ('z', x'00ff', 2), ('a', NULL, -1e300), (NULL, 'null key', 0);
INSERT INTO pairs VALUES (2, 'b'), (1, 'c');
INSERT INTO compact VALUES ('q', 1), ('p', 2);
INSERT INTO loose VALUES (1, 2), (1, 2);
INSERT INTO "odd name" VALUES ('r', 1);
INSERT INTO made (a) VALUES (4);
"""


def filled() -> tuple[Any, DatabaseSchema]:
    database = connect()
    assert execute_all(database, split_statements(TABLES, "x.sql")) == []
    return database, DatabaseSchema(database)


def told(database: Any, schema: DatabaseSchema) -> dict[str, dict[str, Any]]:
    return {
        name: {key: orjson.loads(text) for key, (_, text) in shape.rows(database).items()}
        for name, shape in schema.tables.items()
    }


def test_rows_of_every_kind_of_table() -> None:
    database, schema = filled()
    state = told(database, schema)
    assert list(state["plain"]) == ["1", "2", "3"] and state["plain"]["3"] == {"id": 3, "value": 1.5}
    assert state["named"]["z"] == {"name": "z", "data": {"@blob": "AP8="}, "ratio": 2.0, "@rowid": 1}
    assert set(state["named"]) == {"z", "a", "rowid:3"} and set(state["pairs"]) == {'[2,"b"]', '[1,"c"]'}
    assert state["compact"] == {"p": {"k": "p", "v": 2}, "q": {"k": "q", "v": 1}}
    assert state["loose"]["rowid:4"] == {"a": 1, "b": 2, "@rowid": 4}
    assert state["odd name"] == {"rowid:1": {"rowid": "r", "select": 1, "@rowid": 1}}
    assert state["made"]["rowid:1"] == {"a": 4, "@rowid": 1}
    assert state["sqlite_sequence"] == {"counted": {"name": "counted", "seq": 2, "@rowid": 1}}


def test_a_database_is_made_again_from_its_rows() -> None:
    database, schema = filled()
    state = orjson.loads(orjson.dumps(told(database, schema), option=orjson.OPT_SORT_KEYS))
    again = schema.create_filled(state)
    assert told(again, schema) == told(database, schema)
    for one in (database, again):
        assert [row[0] for row in one.execute("SELECT name, ratio FROM named")] == ["z", "a", None], (
            "the order of making"
        )
        one.execute("INSERT INTO counted (value) VALUES ('c')")
        assert one.execute("SELECT max(id) FROM counted").fetchone() == (3,), "no number is given out twice"
        one.execute("INSERT INTO plain VALUES (9, 9)")
        assert one.execute("SELECT count(*) FROM loose WHERE b = 'logged'").fetchone() == (4,)
        assert one.execute("SELECT twice FROM made").fetchone() == (8,)


def test_writes_are_noticed_by_table() -> None:
    database, _ = filled()
    copied = copy_database(database)
    copied.execute("SELECT * FROM plain").fetchall()
    assert copied.touched == set()
    copied.execute("UPDATE pairs SET b = 'x'")
    assert copied.touched == {"pairs"}
    copied.execute("INSERT INTO plain VALUES (7, 7)")
    assert copied.touched == {"pairs", "plain", "loose"}, "what a trigger writes, too"
    assert database.execute("SELECT count(*) FROM plain").fetchone() == (3,)
    copied.close()
    assert copied.execute("SELECT count(*) FROM plain").fetchone() == (4,), "nobody closes it but us"
    copied.discard()
    with pytest.raises(sqlite3.ProgrammingError):
        copied.execute("SELECT 1")


def test_an_infinite_number_is_no_json() -> None:
    database, schema = filled()
    database.execute("INSERT INTO loose VALUES (9e999, 1)")
    with pytest.raises(ValueError, match="infinite"):
        schema.tables["loose"].rows(database)


def test_sql_has_our_clock_and_our_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    database = connect()
    stamped = "at DATETIME DEFAULT CURRENT_TIMESTAMP, day DEFAULT CURRENT_DATE"
    database.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, {stamped})")
    database.execute("INSERT INTO t (id) VALUES (1)")
    assert database.execute("SELECT at, day FROM t").fetchone() == ("2023-11-14 22:13:20", "2023-11-14")
    for expression, value in {
        "datetime('now', '-1 day')": "2023-11-13 22:13:20",
        "date()": "2023-11-14",
        "date('2020-02-28', '+1 day')": "2020-02-29",
        "strftime('%Y', 'now')": "2023",
        "strftime('%H:%M', at)": "22:13",
        "unixepoch('now')": 1_700_000_000,
        "julianday('2000-01-01')": 2451544.5,
        "CURRENT_TIME": "22:13:20",
    }.items():
        assert database.execute(f"SELECT {expression} FROM t").fetchone() == (value,), expression
    random.seed(5)
    first = database.execute("SELECT random(), hex(randomblob(4))").fetchone()
    random.seed(5)
    assert database.execute("SELECT random(), hex(randomblob(4))").fetchone() == first


def test_statements_of_a_text() -> None:
    text = "-- hello\nCREATE TABLE a (x TEXT DEFAULT ';');\n\nINSERT INTO a\nVALUES ('--;');\n-- bye\n"
    assert [where for where, _ in split_statements(text, "f.sql")] == ["f.sql:2", "f.sql:4"]
    found = [sql.strip() for _, sql in split_statements(text, "f.sql")]
    assert found[0].endswith("DEFAULT ';');") and found[1].startswith("INSERT") and len(found) == 2


async def test_the_loop_waits_for_nothing() -> None:
    loop = IsolatedEventLoop()  # type: ignore[abstract]
    order: list[str] = []

    async def worker(name: str, delay: float) -> str:
        await asyncio.sleep(delay)
        order.append(name)
        return name

    async def main() -> list[str]:
        lock = asyncio.Lock()
        async with lock:
            task = asyncio.create_task(worker("task", 50))
            found = await asyncio.gather(worker("late", 100), worker("early", 10))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), timeout=1000)
        return [*found, await task]

    assert loop.run(main()) == ["late", "early", "task"]
    assert order == ["early", "task", "late"]
    with pytest.raises(EventLoopDeadlock, match="cannot come"):
        loop.run(asyncio.Event().wait())
    with pytest.raises(ZeroDivisionError):
        loop.run(asyncio.wait_for(_fails(), 1))
    assert await asyncio.sleep(0, "the outer loop goes on") == "the outer loop goes on"


async def _fails() -> None:
    raise ZeroDivisionError
