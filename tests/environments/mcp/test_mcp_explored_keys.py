"""Keys that explored entries use: rows of SQLite files as state, seeded starts, texts that are data."""

import sqlite3
import sys
from contextlib import closing

import pytest

from trajsmith.environments.adapters.mcp.database_rows import read_database
from trajsmith.environments.adapters.mcp.launch import prepare_launch
from trajsmith.environments.adapters.mcp.literals import parse_literal, unwrap_data
from trajsmith.environments.adapters.mcp.process import ServerProcess
from trajsmith.environments.adapters.mcp.settings import McpSettings, WorkspaceSettings
from trajsmith.environments.adapters.mcp.workspace import Workspace


def write_row(path, name):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS tasks (id INTEGER PRIMARY KEY, name TEXT, at TEXT)")
        connection.execute("INSERT INTO tasks (name, at) VALUES (?, '2026-03-02T09:00:00')", (name,))
        connection.commit()


def test_rows_of_a_database_are_state_and_times_are_dropped():
    settings = WorkspaceSettings(databases=["data.db"], drop=[r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"])
    workspace = Workspace("trial", settings)
    try:
        write_row(workspace.path / "data.db", "Water the plants")
        (workspace.path / "data.db-wal").write_bytes(b"")
        assert workspace.list_databases() == ["data.db"]
        assert workspace.files() == {"data.db": {"tasks": {"1": {"id": 1, "name": "Water the plants", "at": ""}}}}
    finally:
        workspace.close()


def test_a_file_that_is_no_database_stands_by_its_hash(tmp_path):
    (tmp_path / "data.db").write_bytes(b"no database")
    assert str(read_database(tmp_path / "data.db")).startswith("sha256:")


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("[{'name': 'Ada', 'age': None}]", [{"name": "Ada", "age": None}]),
        ("[1, 2", "[1, 2"),
        ("[('a', 1)]", "[('a', 1)]"),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_python_literals_are_data_where_json_can_hold_them(text, data):
    assert parse_literal(text) == data


def test_data_in_fastmcps_wrapper_is_read():
    assert unwrap_data({"result": '{"tasks": []}'}) == {"tasks": []}
    assert unwrap_data({"result": "done"}) == {"result": "done"}
    assert unwrap_data({"result": "{}", "more": 1}) == {"result": "{}", "more": 1}


@pytest.mark.parametrize("seeded", [True, False])
async def test_a_seeded_server_draws_the_same_ids_at_every_start(tmp_path, seeded):
    code = "import random, uuid, secrets; print(random.random(), uuid.uuid4(), secrets.token_hex(4))"
    settings = McpSettings(name="trial", command=[sys.executable], seeded=seeded)
    launch = prepare_launch(settings, tmp_path, tmp_path)
    drawn = set()
    for _ in range(2):
        process = await ServerProcess.spawn([sys.executable, "-c", code], launch.env, tmp_path)
        drawn |= {line async for line in process.lines()}
        await process.stop()
    assert len(drawn) == (1 if seeded else 2)
