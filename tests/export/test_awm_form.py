"""Environments in AWM's form: the adapter reads them back, the same calls give the same, and any server serves them."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys

import pytest
import yaml
from made_environments import write_catalogue, write_environment
from typer.testing import CliRunner

from trajsmith.cli.app import app
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.export.awm_form import (
    build_awm_environment,
    compare_forms,
    export_awm,
    open_awm_source,
    restore_state,
    write_awm_environments,
)
from trajsmith.export.environment_publication import open_published_source, record_environments
from trajsmith.records import InputError, RunError

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")

RICH = '''
from typing import Literal

from pydantic import Field

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool


class Line(StateModel):
    """A part of a note."""

    text: str
    done: bool = False


class Note(StateModel):
    """A note."""

    note_id: str
    title: str | None
    score: float
    pinned: bool
    kind: Literal["short", "long"]
    lines: list[Line]
    tags: list[str] = Field(default_factory=list)


class State(EnvironmentState):
    """Notes."""

    notes: dict[str, Note] = Field(default_factory=dict)
    count: int = 0
    owners: list[str] = Field(default_factory=list)


class Notes(Environment[State]):
    """Notes with "quotes", {{braces}} and 'apostrophes'."""

    domain = "office/notes"
    policy = "A pinned note is not removed."

    @classmethod
    def seed_state(cls, size, seed):
        notes = [
            Note(note_id=f"N'{n}", title=None if n % 2 else f'a "{n}"', score=n / 3, pinned=n == 1, kind="short",
                 lines=[Line(text=f"line {n}; DROP TABLE notes;--")], tags=["ü", "%s", ":x"][:n])
            for n in range(1, 4)
        ]
        return State(now="2026-05-04T09:00:00", notes={note.note_id: note for note in notes}, owners=["Ada", "Bo"])

    @tool(effect="read")
    def find_notes(self, pinned: bool | None = None, least: float = 0.0, tags: list[str] | None = None) -> list[Note]:
        """Find notes.

        Args:
            pinned: Only pinned ones, or only others.
            least: Lowest score.
            tags: Tags that a note has.
        """
        return [
            note for note in self.state.notes.values()
            if (pinned is None or note.pinned == pinned) and note.score >= least and set(tags or ()) <= set(note.tags)
        ]

    @tool(effect="write")
    def add_note(self, title: str, lines: list[Line]) -> Note:
        """Add a note.

        Args:
            title: Its title.
            lines: Its lines.
        """
        self.state.count += 1
        note = Note(note_id=f"A{self.state.count}", title=title, score=1.5, pinned=False, kind="long", lines=lines)
        self.state.notes[note.note_id] = note
        return note

    @tool(effect="write", destructive=True, actor="user")
    def remove_note(self, note_id: str) -> bool:
        """Remove a note.

        Args:
            note_id: Identifies the note.
        """
        if note_id not in self.state.notes:
            raise ToolError(f"there is no note {note_id}")
        if self.state.notes[note_id].pinned:
            raise ToolError("a pinned note is not removed")
        del self.state.notes[note_id]
        return True
'''


def write_rich(folder, code=RICH):
    place = write_environment(folder, "notes")
    (place / "notes.py").write_text(code)
    return place


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Two environments, recorded and exported."""
    folder = tmp_path_factory.mktemp("awm")
    write_catalogue(folder / "made", "shop")
    write_rich(folder / "made")
    recorded = record_environments([folder / "made" / "shop", folder / "made" / "notes"])
    lines = []
    assert export_awm(recorded, folder / "awm", lines.append) == {}
    return folder, recorded, lines


def test_the_recorded_calls_give_the_same_in_both_forms(exported):
    folder, recorded, lines = exported
    assert [line.partition(": ")[2] for line in lines] == [
        f"{len(one.record.episodes[-1].calls)} recorded calls give the same" for one in recorded
    ]
    called = {call.tool for call in recorded[1].record.episodes[-1].calls}
    assert called == {"find_notes", "add_note", "remove_note"}
    entries = yaml.safe_load((folder / "awm" / "environments.yaml").read_text())["environments"]
    assert [entry["awm"]["scenario"] for entry in entries] == ["shop", "notes"]
    assert entries[1]["awm"]["policy"] == "A pinned note is not removed."


async def test_specs_state_and_refusals_are_the_same(exported):
    folder, _, _ = exported
    native, other = open_published_source(folder / "made/notes/notes.py"), open_awm_source(folder / "awm", "notes")
    spec, served = await native.spec(), await other.spec()
    assert served.description.endswith(spec.description)
    assert {tool.name: tool.actor for tool in served.tools} == {tool.name: tool.actor for tool in spec.tools}
    reads = {tool.name for tool in served.tools if tool.annotations.read_only_hint}
    assert reads == {"find_notes"}, "what only reads is a GET"
    first, second = await native.open(), await other.open()
    state = (await native.states(0))[1]
    rows = (await other.states(0))[0]
    await first.reset(state)
    await second.reset(rows)
    for tool, arguments, actor in (
        ("find_notes", {"pinned": True, "least": 0.1, "tags": ["ü"]}, "assistant"),
        ("find_notes", {}, "assistant"),
        ("find_notes", {"least": "much"}, "assistant"),
        ("remove_note", {"note_id": "N'1"}, "user"),
        ("remove_note", {"note_id": "N'2"}, "assistant"),
        ("remove_note", {"note_id": "N'2"}, "user"),
        ("add_note", {"title": "'; x", "lines": [{"text": "t", "done": True}]}, "assistant"),
        ("add_note", {"title": "x", "lines": [{"done": True}]}, "assistant"),
        ("find_notes", {}, "assistant"),
    ):
        one, two = await first.call(tool, arguments, actor), await second.call(tool, arguments, actor)
        assert one.error == two.error
        assert one.error == "invalid_arguments" or one.content == two.content
    after = restore_state(await second.snapshot(), FORMS)
    assert after == await first.snapshot() and after["count"] == 1 and list(after["notes"]) != list(state["notes"])
    await first.close()
    await second.close()
    native.close()
    other.close()


FORMS = {
    "notes": {
        "note_id": "plain", "title": "plain", "score": "plain", "pinned": "flag", "kind": "plain", "lines": "json",
        "tags": "json",
    }
}  # fmt: skip


SERVE = """
import json, os, sqlite3, sys, threading, urllib.error, urllib.request
import uvicorn
scenario = {name: next(line for line in map(json.loads, open(name)) if line["scenario"] == "shop")
            for name in ("gen_envs.jsonl", "gen_db.jsonl", "gen_sample.jsonl")}
database = sqlite3.connect("shop.db")
for table in scenario["gen_db.jsonl"]["db_schema"]["tables"]:
    database.execute(table["ddl"])
for table in scenario["gen_sample.jsonl"]["sample_data"]["tables"]:
    for statement in table["insert_statements"]:
        database.execute(statement)
database.commit()
open("server_code.py", "w").write(scenario["gen_envs.jsonl"]["full_code"])
sys.path.insert(0, ".")
import server_code
server = uvicorn.Server(uvicorn.Config(server_code.app, host="127.0.0.1", port=0, log_level="critical"))
thread = threading.Thread(target=server.run, daemon=True)
thread.start()
while not server.started:
    thread.join(0.01)
url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/tools/"
def post(tool, **body):
    request = urllib.request.Request(url + tool, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        return json.load(urllib.request.urlopen(request))
    except urllib.error.HTTPError as error:
        return [error.code, json.load(error)["detail"]]
taken = [post("take_item", item_id="I1"), post("take_item", item_id="I1"), post("take_item"), post("nothing")]
print(json.dumps([taken, json.load(urllib.request.urlopen(url + "get_item?item_id=I1"))]))
server.should_exit = True
thread.join()
"""


def test_any_server_serves_it_and_the_rows_stay_in_the_database(exported, tmp_path):
    folder, _, _ = exported
    for name in ("gen_envs.jsonl", "gen_db.jsonl", "gen_sample.jsonl"):
        (tmp_path / name).write_bytes((folder / "awm" / name).read_bytes())
    env = os.environ | {"DATABASE_PATH": "sqlite:///shop.db"}
    done = subprocess.run(
        [sys.executable, "-c", SERVE], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (first, second, faulty, unknown), shown = json.loads(done.stdout)
    assert first == {"item_id": "I1", "name": "shop item 1", "stock": 0} == shown
    assert second == [409, "none left"] and faulty[0] == 422 and unknown[0] == 404
    stock = sqlite3.connect(tmp_path / "shop.db").execute("SELECT stock FROM items WHERE item_id = 'I1'").fetchone()
    assert stock == (0,)


def test_a_difference_is_told_and_left_out(exported, tmp_path):
    _, (shop, _), _ = exported
    source = open_published_source(shop.folder / "shop.py")
    spec, state = asyncio.run(source.spec()), asyncio.run(source.states(0))[1]
    source.close()
    code = (shop.folder / "shop.py").read_text().replace("stock -= 1", "stock -= 2")
    form = build_awm_environment(spec, code, state)
    write_awm_environments([form], tmp_path / "awm")
    native, other = open_published_source(shop.folder / "shop.py"), open_awm_source(tmp_path / "awm", "shop")
    (difference,) = asyncio.run(compare_forms(native, other, shop.record, form))
    native.close()
    other.close()
    assert "take_item, gives" in difference
    broken = write_rich(tmp_path / "made", RICH.replace('"""Notes."""', "state_parts: dict[str, Line] = {}"))
    lone = record_environments([broken])
    with pytest.raises(InputError, match="a table is named state_parts"):
        export_awm(lone, tmp_path / "out")
    assert list(export_awm([shop, *lone], tmp_path / "out")) == ["notes"]
    lines = (tmp_path / "out" / "gen_envs.jsonl").read_text().splitlines()
    assert [json.loads(line)["scenario"] for line in lines] == ["shop"]


def test_the_command_names_what_it_left_out(exported, tmp_path):
    folder, _, _ = exported
    done = CliRunner().invoke(app, ["env", "export", str(folder / "made"), "--out", str(tmp_path / "awm")])
    assert done.exit_code == 0, done.output
    assert "1 environments in " in done.output and "recorded calls give the same" in done.output
    source = open_source(EnvironmentSettings.model_validate({"awm": {"server": str(tmp_path / "awm/gen_envs.jsonl")}}))
    assert asyncio.run(source.spec()).name == "shop" and source.isolation.startswith("sandbox")
    source.close()
    wrong = CliRunner().invoke(app, ["env", "export", str(folder / "made"), "--out", str(tmp_path), "--form", "x"])
    assert isinstance(wrong.exception, InputError) and "there is awm" in str(wrong.exception)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    kept = CliRunner().invoke(app, ["env", "export", str(folder / "made"), "--out", str(tmp_path / "mine")])
    assert isinstance(kept.exception, RunError) and "holds notes.txt" in str(kept.exception)


def test_a_state_without_tables_is_refused(tmp_path):
    code = RICH.replace("notes: dict[str, Note] = Field(default_factory=dict)", "notes: list[Note] = []")
    source = open_published_source(write_rich(tmp_path, code) / "notes.py")
    spec = asyncio.run(source.spec())
    source.close()
    with pytest.raises(InputError, match="its state has no table of records"):
        build_awm_environment(spec, code, {})
    with pytest.raises(InputError, match="has 2 classes of environments"):
        build_awm_environment(spec, code + "\nclass Other(Environment[State]):\n    pass\n", {})
