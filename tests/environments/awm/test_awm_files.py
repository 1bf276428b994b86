"""The files of AWM environments: many scenarios in JSON Lines, a served directory, and what is wrong with a file."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from trajsmith.environments.adapters.awm import AwmSettings, build_payload, discover
from trajsmith.environments.adapters.awm.program import AwmProgram, load
from trajsmith.environments.adapters.awm.settings import get_environment_name
from trajsmith.records import EnvironmentFault, InputError, canonical_json

HEAD = """
from fastapi import FastAPI
from sqlalchemy import create_engine, Column, Integer, Text
from sqlalchemy.orm import declarative_base, sessionmaker
import os
engine = create_engine(os.getenv("DATABASE_PATH", "sqlite:///x.db"), connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI(title="Notes")
class Note(Base):
    __tablename__ = "notes"
    id = Column(Integer, primary_key=True)
    text = Column(Text)
Base.metadata.create_all(engine)
"""
LIST = """
@app.get("/notes", operation_id="list_notes")
async def list_notes() -> list[str]:
    session = SessionLocal()
    found = [note.text for note in session.query(Note).all()]
    session.close()
    return found
"""


def write_lines(path: Path, *entries: Any) -> None:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A directory as the reference publishes it."""
    ddl = "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);"
    table = {"name": "notes", "ddl": ddl, "indexes": ["CREATE INDEX by_text ON notes(text);"]}
    lost = {"name": "lost", "ddl": "CREATE TABEL lost (id);"}
    rows = ["INSERT INTO notes (text) VALUES ('a');", "INSERT INTO notes (text) VALUES ('a');"]
    write_lines(
        tmp_path / "gen_envs.jsonl",
        {"scenario": "Music App #1", "db_path": None, "full_code": HEAD + LIST},
        {"scenario": "Notes", "db_path": None, "full_code": HEAD + LIST},
    )
    write_lines(
        tmp_path / "gen_db.jsonl",
        {"scenario": "music_app_1", "db_schema": {"tables": [table]}},
        {"scenario": "Notes", "db_schema": {"tables": [table, lost]}, "db_path": None},
    )
    write_lines(
        tmp_path / "gen_sample.jsonl",
        {"scenario": "Music App #1", "sample_data": {"tables": []}},
        {"scenario": "notes", "sample_data": {"tables": [{"table_name": "notes", "insert_statements": rows}]}},
    )
    return tmp_path


def notes_of(made: AwmProgram) -> Any:
    return made.start(canonical_json(made.states(0)[0])).call("list_notes", {}).content


def test_many_scenarios_in_one_file(published: Path) -> None:
    found = discover(published)
    assert [get_environment_name(settings) for settings in found] == ["music_app_1", "notes"]
    made = [load(build_payload(settings)) for settings in found]
    assert [notes_of(one) for one in made] == [{"result": []}, {"result": ["a"]}]
    assert made[0].notes == []
    assert made[1].notes == [
        'gen_db.jsonl: table lost: left out: near "TABEL": syntax error',
        "gen_sample.jsonl: rows of notes: left out: UNIQUE constraint failed: notes.text",
    ]
    assert made[1].spec.source == "awm:notes.py"


def test_which_scenario_must_be_said(published: Path) -> None:
    server = published / "gen_envs.jsonl"
    with pytest.raises(InputError, match="has 2 scenarios: set `scenario` to one of music_app_1, notes"):
        build_payload(AwmSettings(server=server))
    with pytest.raises(InputError, match="there is no scenario 'Chess'; there are music_app_1, notes"):
        build_payload(AwmSettings(server=server, scenario="Chess"))
    assert build_payload(AwmSettings(server=server, scenario="MUSIC app 1", name="Songs"))["name"] == "songs"
    write_lines(published / "gen_db.jsonl", {"scenario": "other", "db_schema": {"tables": []}})
    with pytest.raises(InputError, match=r"gen_db.jsonl: there is no scenario 'notes'"):
        build_payload(AwmSettings(server=server, scenario="notes"))


def test_a_served_directory(tmp_path: Path) -> None:
    place = tmp_path / "20260316_notes"
    place.mkdir()
    (place / "server_code.py").write_text("import warnings\n" + HEAD + LIST)
    database = sqlite3.connect(place / "initial.db")
    database.executescript("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO notes VALUES (4, 'x')")
    database.close()
    settings = AwmSettings(server=place / "server_code.py")
    assert get_environment_name(settings) == "20260316_notes"
    made = load(build_payload(settings))
    assert made.states(0) == [{"notes": {"4": {"id": 4, "text": "x"}}}] and notes_of(made) == {"result": ["x"]}
    (place / "initial.db").write_bytes(b"no database at all, but long enough to be looked at as one" * 20)
    with pytest.raises(InputError, match=r"initial.db: no SQLite file"):
        load(build_payload(settings))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gen_envs.jsonl", "", "there are no scenarios"),
        ("gen_envs.jsonl", "{", "gen_envs.jsonl:1: no JSON"),
        ("gen_envs.jsonl", '{"full_code": "x"}', "gen_envs.jsonl: entry 1 has no `scenario`"),
        ("gen_envs.jsonl", '{"scenario": "notes", "full_code": ""}', "there is no code for scenario 'notes'"),
        ("gen_db.jsonl", '{"scenario": "notes", "db_schema": []}', "`db_schema` has no list of `tables`"),
        ("gen_sample.jsonl", '{"scenario": "notes", "sample_data": {"tables": [1]}}', "`sample_data` has no list"),
    ],
)
def test_files_that_are_wrong_are_named(published: Path, name: str, text: str, words: str) -> None:
    (published / name).write_text(text)
    with pytest.raises(InputError, match=words):
        build_payload(AwmSettings(server=published / "gen_envs.jsonl", scenario="notes"))


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        build_payload(AwmSettings(server=tmp_path / "none.py"))
    (tmp_path / "x.py").write_text(HEAD)
    with pytest.raises(InputError, match=r"none.sql cannot be read: No such file"):
        build_payload(AwmSettings(server=tmp_path / "x.py", ddl=tmp_path / "none.sql"))


def made_of(code: str, ddl: str | None = None) -> AwmProgram:
    given = {"name": "made", "file": "made.py", "code": code, "data": None, "description": "", "domain": ""}
    return load({**given, "policy": "", "ddl": None if ddl is None else {"sql": ddl, "file": "made.sql"}})


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = (", "made.py:1: SyntaxError"),
        ("\nimport nothing_like_it", "made.py:2: ModuleNotFoundError"),
        (HEAD + "\n1 / 0", "made.py:16: ZeroDivisionError"),
        ("x = 1", "there is no FastAPI application named `app`"),
        (HEAD, "the application has no operations"),
        (HEAD.replace("Base.metadata", "#"), "the application has no operations"),
        (HEAD.replace("Base.metadata", "#") + LIST, "its database has no tables; give `ddl`"),
        (HEAD + LIST + "\n@app.on_event('startup')\ndef start():\n    1 / 0", "made.py: does not start: ZeroDivision"),
        (HEAD + LIST + "\nraise SystemExit(1)", "SystemExit"),
    ],
)
def test_servers_that_are_wrong_are_named(code: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        made_of(code)


def test_sql_that_makes_no_table_is_named() -> None:
    with pytest.raises(InputError, match=r"made.sql: makes no table: made.sql:2: left out: near"):
        made_of(HEAD + LIST, "-- a comment\nCREATE TABEL x;")


def test_an_operation_without_a_usable_id_gets_one() -> None:
    more = '\n@app.get("/a b/{x}", operation_id="two words")\nasync def f(x: int) -> int: return x'
    made = made_of(HEAD + LIST + more)
    assert set(made.tools.routes) == {"list_notes", "two_words"}


def test_an_operation_that_is_never_called_is_named() -> None:
    twice = "".join(
        f'\n@app.post("/a", operation_id="{name}")\nasync def {name}() -> dict[str, int]: return {{"{name}": 1}}'
        for name in ("first", "second")
    )
    assert made_of(HEAD + LIST + twice).notes == ["POST /a: there are two, and only the first is ever called"]


def test_arguments_that_cannot_stand_in_a_path() -> None:
    more = '\n@app.get("/by/{name}/text", operation_id="by_name")\nasync def by_name(name: str) -> str: return name'
    made = made_of(HEAD + LIST + more)
    play = made.start(canonical_json(made.states(0)[0]))
    assert play.call("by_name", {"name": "a b%2F?&#ä"}).content == {"result": "a b%2F?&#ä"}
    for name in ("", "a/b", "../by"):
        refused = play.call("by_name", {"name": name})
        assert refused.error == "invalid_arguments", name
        assert refused.content == {"error": f"name: {name!r} cannot stand in a path"}


ODD = """
import asyncio
from fastapi import BackgroundTasks, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, RedirectResponse
DONE = []

@app.middleware("http")
async def mark(request: Request, call_next):
    response = await call_next(request)
    return response

@app.get("/sleep", operation_id="sleep")
async def sleep() -> dict[str, int]:
    values = await asyncio.gather(*(asyncio.sleep(3600, number) for number in range(3)))
    return {"sum": sum(values)}

@app.get("/later", operation_id="later")
def later(tasks: BackgroundTasks) -> dict[str, int]:
    tasks.add_task(DONE.append, 1)
    return {"done": len(DONE)}

@app.get("/stuck", operation_id="stuck")
async def stuck() -> dict[str, int]:
    await asyncio.Event().wait()
    return {}

@app.get("/code/{code}", operation_id="code")
async def code(code: int) -> dict[str, int]:
    raise HTTPException(status_code=code, detail={"why": code})

@app.get("/moved", operation_id="moved")
async def moved() -> dict[str, int]:
    return RedirectResponse("/sleep")

@app.get("/nan", operation_id="nan")
async def nan() -> dict[str, float]:
    return {"x": float("nan")}

@app.get("/lies", operation_id="lies")
async def lies() -> dict[str, int]:
    return JSONResponse({"x": "no number"})

@app.post("/flags", operation_id="flags")
async def flags(on: bool, words: list[str], limit: float = 1.5) -> dict[str, object]:
    return {"on": on, "words": words, "limit": limit}

@app.get("/thread", operation_id="thread")
async def thread() -> dict[str, int]:
    return {"x": await asyncio.to_thread(lambda: 7)}

@app.post("/alter", operation_id="alter")
async def alter() -> dict[str, int]:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE more (id INTEGER)")
    return {"x": 1}

@app.get("/attach", operation_id="attach")
async def attach() -> dict[str, int]:
    with engine.begin() as connection:
        connection.exec_driver_sql("ATTACH 'other.db' AS other")
    return {"x": 1}
"""


@pytest.fixture(scope="module")
def odd() -> AwmProgram:
    return made_of(HEAD + LIST + ODD)


async def test_servers_that_do_more_than_they_should(odd: AwmProgram) -> None:
    """Also inside a running event loop: this test runs in one."""
    play = odd.start(canonical_json(odd.states(0)[0]))
    assert play.call("sleep", {}).content == {"sum": 3}
    assert [play.call("later", {}).content["done"] for _ in range(2)] == [0, 1]
    assert play.call("thread", {}).content == {"x": 7}
    flags = {"on": True, "body": ["a"], "limit": 2}
    assert play.call("flags", flags).content == {"on": True, "words": ["a"], "limit": 2.0}
    assert play.call("code", {"code": 409}).content == {"error": '{"why":409}'}
    for tool, arguments, kind, words in (
        ("stuck", {}, "crash", "waits for something that cannot come"),
        ("code", {"code": 503}, "crash", "it answered 503"),
        ("moved", {}, "crash", "it answered 307"),
        ("nan", {}, "crash|output_schema", "NaN|nan|JSON compliant|None|null"),
        ("lies", {}, "output_schema", 'x: "no number" is not of type "integer"'),
        ("attach", {}, "crash", "not authorized"),
    ):
        with pytest.raises(EnvironmentFault, match=words) as caught:
            play.call(tool, arguments)
        assert caught.value.kind in kind.split("|"), tool
    play.call("alter", {})
    with pytest.raises(EnvironmentFault, match="a call changed the tables themselves"):
        play.changes()
