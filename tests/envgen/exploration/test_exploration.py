"""Exploration of servers written for the tests: what is inferred of a good one, and what becomes of bad ones."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from trajsmith.envgen.exploration import ExplorationLimits, compose_entry, explore_server
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.live_exploration import explore_entry, render_entry
from trajsmith.records import InputError

SERVER = Path(__file__).parent / "tracker.py"


def describe_server(mode: str, *arguments: str) -> McpSettings:
    seconds = 20.0 if mode == "big" else 2.0
    return McpSettings(name="tracker", command=[sys.executable, str(SERVER), mode, *arguments], timeout=seconds)


def explore(mode: str, *arguments: str, **more):
    return asyncio.run(explore_entry(describe_server(mode, *arguments), 0, lambda line: None, **more))


@pytest.fixture(scope="module")
def good():
    return explore("good")


def test_states_are_made_of_calls_with_sensible_values(good):
    states = good.settings.states
    assert list(states) == ["state_1", "state_2", "state_3"]
    for state in states.values():
        titles = [call.arguments["title"] for call in state.calls if call.tool == "add_task"]
        assert len(set(titles)) == len(titles) >= 3
        assert "Return the library books" in titles


def test_effects_refusals_observations_and_results_are_inferred(good):
    settings = good.settings
    assert [call.tool for call in settings.observe] == ["list_tasks"]
    assert settings.refusals == ["Error:"]
    assert settings.read_only == ["list_tasks", "search_tasks"]
    assert settings.outputs["list_tasks"]["properties"]["tasks"]["items"]["properties"]["id"] == {"type": "integer"}
    assert settings.policy == "Keeps the tasks of a household."
    assert settings.explore is None
    assert settings.explored


def test_values_that_users_ask_for_are_not_those_of_the_states(good):
    held = json.dumps(good.settings.model_dump(mode="json")["states"])
    offered = good.settings.parameter_examples["add_task.title"]
    assert len(offered) >= 5
    assert not [title for title in offered if title in held]
    assert all(len(word) >= 5 for word in good.settings.parameter_examples["search_tasks.query"])


def test_the_web_is_not_called_unless_it_is_asked_for(good):
    assert "fetch_page" in good.settings.tools.exclude
    assert any("fetch_page: its name says that it reaches other systems" in note for note in good.notes)


def test_the_same_seed_gives_the_same_entry(good):
    assert render_entry(explore("good")) == render_entry(good)


def test_ids_of_chance_are_the_same_at_every_start():
    entry = explore("random")
    assert "complete_task" not in entry.settings.tools.exclude
    assert entry.settings.states


@pytest.mark.parametrize(
    ("mode", "tool", "reason"),
    [
        ("dies", "complete_task", "server_exited"),
        ("hangs", "complete_task", "timeout"),
        ("big", "search_tasks", "a result of 10000000 characters"),
    ],
)
def test_a_tool_that_breaks_the_server_is_left_out(mode, tool, reason):
    entry = explore(mode)
    assert tool in entry.settings.tools.exclude
    assert any(f"left out: {tool}: {reason}" in note for note in entry.notes)
    assert entry.settings.states


def test_a_tool_list_without_end_is_bounded():
    entry = explore("many")
    assert len(entry.settings.tools.exclude) > 440
    assert any("only the first 60 tools are explored" in note for note in entry.notes)


def test_a_tool_that_writes_and_says_that_it_reads_is_seen(tmp_path):
    findings = asyncio.run(explore_server(describe_server("lies"), tmp_path))
    assert findings.tools["add_task"].without == "it says that it only reads, and changes the state"


def test_a_server_that_refuses_everything_is_one_line():
    with pytest.raises(InputError, match="no tool of it can be used: no call succeeded: Error: you are not signed in"):
        explore("refuses")


def test_a_server_that_keeps_its_state_elsewhere_is_one_line(tmp_path):
    with pytest.raises(InputError, match="a fresh server still shows what was told to another one"):
        explore("good", str(tmp_path / "tasks.json"))


def test_a_server_that_fills_its_workspace_ends_the_exploration(tmp_path):
    findings = asyncio.run(explore_server(describe_server("grows"), tmp_path))
    assert not findings.states
    assert findings.calls < ExplorationLimits().calls


def test_a_server_that_does_not_start_is_one_line():
    settings = McpSettings(name="tracker", command=[sys.executable, "-c", "raise SystemExit(4)"])
    with pytest.raises(InputError, match=r"MCP server tracker cannot be explored: .*exited with code 4"):
        asyncio.run(explore_entry(settings, 0, lambda line: None))


def test_calls_are_bounded_and_what_is_known_counts(tmp_path):
    settings = describe_server("good")
    findings = asyncio.run(explore_server(settings, tmp_path, limits=ExplorationLimits(calls=40)))
    assert findings.ended == "after 40 calls"
    assert compose_entry(settings, findings).usable >= 3


def test_a_clients_file_becomes_a_dataset_in_one_run(tmp_path, monkeypatch):
    import trajsmith

    monkeypatch.chdir(tmp_path)
    command = {"command": sys.executable, "args": [str(SERVER), "good"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"tracker": command}}))
    run = trajsmith.run("mcp.json", overrides={"sample.count": 8, "engine.workers": 1})
    accepted = [verdict for verdict in run.verdicts if verdict.accepted]
    assert len(accepted) >= 3
    assert run.config.environments[0].mcp.explored
    spoken = " ".join(message.content or "" for item in run.trajectories for message in item.messages)
    assert "Error:" not in spoken


def test_the_written_entry_is_read_again(tmp_path, good):
    (tmp_path / "tracker.yaml").write_text(render_entry(good))
    config = load_config(tmp_path / "tracker.yaml")
    assert config.environments[0].mcp == good.settings
    assert config.ground.min_calls == 2
