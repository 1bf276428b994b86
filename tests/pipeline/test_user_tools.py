"""Tools that only the user calls: read from sources without a model, written into code, and played in dialogues."""

import json

import pytest

from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.pipeline import generate_environment
from trajsmith.environments.tool_actors import find_tool_actor
from trajsmith.records import InputError

CONFIG = """
name: users
environments: [{python: %s, states: {small: 1}}]
sample: {count: 12, length: [2, 5]}
"""


@pytest.mark.parametrize(
    ("description", "declared", "chosen", "actor"),
    [
        ("Once it is done, the user must call this tool to approve.", {}, None, "user"),
        ("Only the customer can call this.", {}, None, "user"),
        ("Open a new tab in the user's browser", {}, None, "assistant"),
        ("Scale the font size on your device.", {}, None, "assistant"),
        ("Restart it.", {"_meta": {"trajsmith/actor": "user"}}, None, "user"),
        ("Only the user can call this.", {"actor": "assistant"}, None, "assistant"),
        ("Only the user can call this.", {}, [], "assistant"),
        ("Restart it.", {}, ["restart"], "user"),
    ],
)
def test_settings_come_before_declarations_and_those_before_words(description, declared, chosen, actor):
    assert find_tool_actor("restart", description, declared, chosen) == actor


def test_an_unknown_actor_is_refused():
    with pytest.raises(InputError, match="the actor is 'robot'"):
        find_tool_actor("restart", "", {"_meta": {"trajsmith/actor": "robot"}})


def test_a_generated_environment_gives_dialogues_in_which_the_user_acts(tmp_path, trajsmith):
    source = tmp_path / "care"
    source.mkdir()
    routers = [{"id": n, "name": f"Router {n}", "status": ["open", "done"][n % 2]} for n in range(1, 13)]
    (source / "routers.json").write_text(json.dumps(routers))
    with pytest.raises(InputError, match="no tool 'fly'"):
        generate_environment(lambda: read_tables(source), tmp_path / "no", user_tools=["fly"])
    made = generate_environment(lambda: read_tables(source), tmp_path / "made", user_tools=["update_router"])
    assert made.accepted, made.reasons
    file = made.directory / f"{made.name}.py"
    assert 'actor="user"' in file.read_text()
    config = tmp_path / "users.yaml"
    config.write_text(CONFIG % file)
    said = trajsmith("run", config, "--run", tmp_path / "run")
    assert said.code == 0, said.err
    lines = [json.loads(line) for line in (tmp_path / "run" / "trajectories.jsonl").read_text().splitlines()]
    assert any(event["actor"] == "user" and event["ok"] for line in lines for event in line["events"])
