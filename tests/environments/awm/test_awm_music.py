"""A generated server in process: its tools, its answers, its rows as state."""

import importlib.util
import json
import random
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from trajsmith.environments.adapters.awm import AwmSettings, build_payload
from trajsmith.environments.adapters.awm.program import AwmProgram, load
from trajsmith.environments.programs import EnvironmentEpisode, load_program
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import EnvironmentFault, InputError, canonical_json, compute_state_digest

FILES = Path(__file__).parent / "files"
SETTINGS = AwmSettings(server=FILES / "music.py", data=FILES / "music.sql", domain="media/music", policy="Be kind.")


@pytest.fixture(scope="module")
def music() -> AwmProgram:
    return load(build_payload(SETTINGS))


def begin(made: AwmProgram) -> tuple[EnvironmentEpisode, bytes]:
    start = canonical_json(made.states(0)[0])
    return made.start(start), start


def done(play: EnvironmentEpisode, tool: str, **arguments: Any) -> Any:
    result = play.call(tool, arguments)
    assert result.ok, result.content
    return result.content


def test_tools_are_the_operations_of_the_server(music: AwmProgram) -> None:
    assert music.spec.name == "music" and music.spec.source == "awm:music.py" and music.spec.policy == "Be kind."
    assert music.spec.description == "Simplified Music API\nPlaylists of one user."
    tool = music.spec.tool("create_playlist")
    assert tool.description == "Create a playlist\nCreate a playlist."
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "description": "Playlist name", "examples": ["Focus"]},
            "is_collaborative": {
                "type": "boolean",
                "default": False,
                "description": "Whether others may edit",
                "examples": [False],
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert music.spec.tool("get_playlists").output_schema["properties"]["result"]["type"] == "array"  # type: ignore[index]
    assert tool.declares_write and not music.spec.tool("search_tracks").declares_write
    assert music.spec.tool("delete_playlist").annotations.destructive_hint is True
    assert music.spec.tool("get_playlist").required == ("playlist_id",)
    assert music.notes == ["music.sql:9: left out: no such table: nowhere"]


def test_reads_and_writes(music: AwmProgram) -> None:
    play, _ = begin(music)
    assert [track["id"] for track in done(play, "search_tracks", query="DAY")["tracks"]] == [1, 3]
    assert [track["id"] for track in done(play, "search_tracks", artists=["Bo", "Cy"], limit=2)["tracks"]] == [2, 3]
    assert play.changes() == []
    made = done(play, "create_playlist", name="Focus")
    assert made["id"] == 2 and done(play, "get_playlist", playlist_id=2) == made
    assert [(part, key) for part, key, _ in play.changes()] == [("playlists", "2")]
    assert done(play, "add_tracks", playlist_id=2, track_ids=[3, 1]) == {"count": 2}
    assert {key: orjson.loads(text or b"")["position"] for _, key, text in play.changes()} == {"[2,3]": 1, "[2,1]": 2}
    assert done(play, "delete_playlist", playlist_id=2) == "Successful Response"
    assert sorted(play.changes()) == [
        ("playlist_tracks", "[2,1]", None), ("playlist_tracks", "[2,3]", None), ("playlists", "2", None),
    ]  # fmt: skip
    assert len(done(play, "get_playlists")["result"]) == 1


def test_refusals(music: AwmProgram) -> None:
    play, _ = begin(music)
    refused = play.call("get_playlist", {"playlist_id": 9})
    assert (refused.error, refused.content) == ("refused", {"error": "Playlist 9 not found"})
    for arguments in ({}, {"playlist_id": "x"}, {"playlist_id": 1, "more": 1}):
        assert play.call("get_playlist", arguments).error == "invalid_arguments"
    assert play.call("nothing", {}).error == play.call("get_playlists", {}, "user").error == "unknown_tool"
    assert play.changes() == []


def test_faults_of_the_server(music: AwmProgram) -> None:
    play, _ = begin(music)
    for tool, kind, words in (
        ("broken", "crash", "ZeroDivisionError: integer division"),
        ("wrong", "output_schema", "response.id: Input should be a valid integer"),
    ):
        with pytest.raises(EnvironmentFault, match=words) as caught:
            play.call(tool, {})
        assert (caught.value.kind, caught.value.tool) == (kind, tool)
    with pytest.raises(EnvironmentFault, match=r"IntegrityError.*UNIQUE constraint failed"):
        play.call("add_tracks", {"playlist_id": 1, "track_ids": [2]})
    assert play.changes() == [], "what a session left unfinished is rolled back"
    assert done(play, "get_tags") == {"result": []}


def test_plays_are_alone(music: AwmProgram) -> None:
    (one, start), (two, _) = begin(music), begin(music)
    done(one, "create_playlist", name="Mine")
    assert done(one, "count_calls") == {"counter": 1, "seen": 1} == done(two, "count_calls")
    assert done(one, "count_calls") == {"counter": 2, "seen": 2}
    assert len(done(two, "get_playlists")["result"]) == 1 and two.changes() == []
    assert done(music.start(start), "count_calls") == {"counter": 1, "seen": 1}


def random_calls(seed: int, count: int) -> list[tuple[str, dict[str, Any]]]:
    chance = random.Random(seed)
    makers = [
        lambda: ("create_playlist", {"name": chance.choice("abc"), "is_collaborative": chance.random() < 0.5}),
        lambda: ("add_tracks", {"playlist_id": chance.randint(1, 4), "track_ids": [chance.randint(1, 3)]}),
        lambda: ("delete_playlist", {"playlist_id": chance.randint(1, 5)}),
        lambda: ("create_tag", {"slug": chance.choice("zyxwvutsrq") + str(chance.randint(0, 9))}),
        lambda: ("get_tags", {}),
        lambda: ("get_playlists", {}),
    ]
    return [chance.choice(makers)() for _ in range(count)]


def outcome(play: EnvironmentEpisode, call: tuple[str, dict[str, Any]]) -> tuple[Any, ...]:
    try:
        result = play.call(*call)
    except EnvironmentFault as fault:
        return fault.kind, fault.message.split(":")[0]
    return result.error, [value for value in json.dumps(result.content).split('"') if not value.startswith("20")]


@pytest.mark.parametrize("seed", range(6))
def test_a_state_is_all_there_is(music: AwmProgram, seed: int) -> None:
    play, start = begin(music)
    told: dict[tuple[str, str | None], bytes | None] = {}
    state = orjson.loads(start)
    for call in random_calls(seed, 15):
        outcome(play, call)
        for part, key, text in play.changes():
            told.pop((part, key), None)
            told[part, key] = text
            if text is None:
                del state[part][key]
            else:
                state[part][key] = orjson.loads(text)
    saved = music.start(canonical_json(state))
    delta = music.start(start, [(part, key, text) for (part, key), text in told.items()])
    assert saved.changes() == delta.changes() == []
    for call in random_calls(seed + 100, 15):
        expected = outcome(play, call)
        assert outcome(saved, call) == expected == outcome(delta, call), call
    changed = [sorted((part, key) for part, key, _ in one.changes()) for one in (play, saved, delta)]
    assert changed[0] == changed[1] == changed[2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("users"), "a state has exactly the tables"),
        (lambda state: state.update(more={}), "a state has exactly the tables"),
        (lambda state: state.update(users=[]), "users must be an object of rows"),
        (lambda state: state["users"]["1"].pop("username"), "a row of users has exactly"),
        (lambda state: state["users"]["1"].update(username=None), "NOT NULL constraint failed"),
        (lambda state: state["users"]["1"].update(username={"a": 1}), "is no value of a column"),
        (lambda state: state["users"].update({"2": state["users"]["1"]}), "UNIQUE constraint failed"),
    ],
)
def test_a_state_that_does_not_fit_is_named(music: AwmProgram, change: Any, words: str) -> None:
    state = orjson.loads(canonical_json(music.states(0)[0]))
    change(state)
    with pytest.raises(EnvironmentFault, match=words) as caught:
        music.start(canonical_json(state))
    assert caught.value.kind == "state"
    with pytest.raises(EnvironmentFault, match="there is no such row"):
        music.start(canonical_json(music.states(0)[0]), [("nothing", "1", None)])


def test_the_version_follows_code_and_data(music: AwmProgram) -> None:
    given = build_payload(SETTINGS)
    assert load_program("awm", given).spec == music.spec
    for key in ("code", "data"):
        changed = {**given, key: f"{given[key]}\n# more"} if key == "code" else {**given, key: None}
        assert load(changed).spec.version != music.spec.version


def test_a_missing_extra_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sqlalchemy" else object())
    hint = r"^environments of AWM need sqlalchemy: pip install 'fastapi>=.+' 'sqlalchemy>=.+'$"
    with pytest.raises(InputError, match=hint):
        build_payload(SETTINGS)


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
async def test_it_runs_where_nothing_can_be_opened(music: AwmProgram) -> None:
    """In locked workers: no sockets, threads or files."""
    source = open_source(EnvironmentSettings(awm=SETTINGS))
    assert isinstance(source, SandboxSource)
    try:
        spec = await source.spec()
        assert [tool.name for tool in spec.tools] == [tool.name for tool in music.spec.tools]
        sessions = [await source.open() for _ in range(2)]
        for session in sessions:
            await session.reset((await source.states(0))[0])
        results = [[(await session.call(*call)).text for call in random_calls(3, 4)] for session in sessions]
        made = [(await session.call("create_tag", {"slug": "now"})).content for session in sessions]
        assert results[0] == results[1] and made[0] == made[1], "the clock is virtual, SQL's, too"
        assert await sessions[0].state_hash() == compute_state_digest(await sessions[1].snapshot())
        await sessions[0].reset((await source.states(0))[0])
        assert (await sessions[0].call("get_tags", {})).content == {"result": []}
        assert (await sessions[1].call("get_tags", {})).content != {"result": []}
    finally:
        source.close()
