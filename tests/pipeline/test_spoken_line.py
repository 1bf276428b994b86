"""The whole line with every role played by a model over HTTP, and the command that shows what is sent."""

import json
import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import speaking
from running_server import RunningServer

ROOT = Path(__file__).parents[2]
SCRIPT = str(Path(speaking.__file__))
CONFIG = """
name: spoken
seed: 3
environments: [{{library: helpdesk, states: {{small: 1}}}}, {{library: mobile_care, states: {{small: 1}}}}]
sample: {{count: 6, length: [4, 6]}}
write: {{author: {{refine: {{ambiguity: 0.5, goal_expansion: 0.5}}}}}}
judge: {{compare: 1.0}}
models: {{local: {{model: test-model, base_url: "{url}", first_wait: 0.01, longest_wait: 0.05}}}}
roles: {{writer: local, user: local, agent: local, judge: local}}
"""


def lines(path):
    return [orjson.loads(line) for line in path.open("rb")]


def run(folder, config):
    command = [sys.executable, "-m", "trajsmith", "run", str(config), "--run", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def spoken(tmp_path_factory):
    """A folder with a run in which models play all roles."""
    folder = tmp_path_factory.mktemp("spoken")
    before = os.environ.get(speaking.RUN)
    os.environ[speaking.RUN] = str(folder / "run")
    try:
        with RunningServer(script=SCRIPT) as server:
            (folder / "spoken.yaml").write_text(CONFIG.format(url=server.url))
            done = run(folder / "run", folder / "spoken.yaml")
            assert done.returncode == 0, done.stderr
            yield folder
    finally:
        os.environ.pop(speaking.RUN) if before is None else os.environ.update({speaking.RUN: before})


def test_every_role_speaks_and_trajectories_are_accepted(spoken):
    summary = json.loads((spoken / "run" / "summary.json").read_bytes())
    assert summary["funnel"]["accepted"] >= 4
    assert set(summary["usage_by_role"]) >= {"writer", "agent", "user", "judge"}
    for task in lines(spoken / "run" / "tasks.jsonl"):
        assert task["language"] == "test-model"
        assert {"querygen/persona", "querygen/write"} <= set(task["prompts"])
    for played in lines(spoken / "run" / "trajectories.jsonl"):
        assert played["models"] == {"agent": "test-model", "user": "test-model"}
        assert set(played["prompts"]) == {"usersim/agent_system", "usersim/user"}
        assert any(message.get("reasoning_content") for message in played["messages"])


def test_the_judge_is_asked_and_its_agreement_reported(spoken):
    found = json.loads((spoken / "run" / "summary.json").read_bytes())["judge"]
    verdicts = lines(spoken / "run" / "verdicts.jsonl")
    assert found["asked"] == sum("judge" in verdict for verdict in verdicts) > 0
    compared = [verdict for verdict in verdicts if "judge" in verdict and not verdict["judge"]["decisive"]]
    assert found["compared"] == len(compared)
    assert found["agreed"] == sum(verdict["judge"]["outcome"] == verdict["outcome"] for verdict in compared)


@pytest.mark.parametrize(
    ("stage", "records", "sees"),
    [
        ("persona", "grounded.jsonl", "You invent the person"),
        ("write", "tasks.jsonl", "You write what a person says"),
        ("agent", "trajectories.jsonl", "You are the assistant at work"),
        ("user", "tasks.jsonl", "You play a person"),
        ("judge", "trajectories.jsonl", "You decide how a conversation"),
    ],
)
def test_prompts_render_shows_what_was_sent(spoken, trajsmith, stage, records, sees):
    first = lines(spoken / "run" / records)[0]["id"]
    shown = trajsmith("prompts", "render", stage, "--id", first, "--run", spoken / "run", "--json")
    assert shown.code == 0, shown.err
    requests = [json.loads(line) for line in shown.out.splitlines()]
    assert all(request["messages"][0]["content"].startswith(sees) for request in requests)
    if stage == "agent":
        played = lines(spoken / "run" / "trajectories.jsonl")[0]["messages"]
        assert len(requests) == sum(message["role"] == "assistant" for message in played)
        sent = [message["content"] for message in requests[-1]["messages"]]
        assert sent == [message["content"] for message in played[: len(sent)]]


def test_prompts_render_in_words(spoken, trajsmith):
    task = lines(spoken / "run" / "tasks.jsonl")[0]
    shown = trajsmith("prompts", "render", "agent", "--id", task["id"], "--run", spoken / "run")
    assert "=== agent: request 1 of" in shown.out
    assert f"--- user ---\n{task['turns'][0]['query']}" in shown.out
    assert '"name":"find_' in shown.out or '"type":"function"' in shown.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("agents", "--id", "x"), "there is no stage 'agents' with prompts: use one of persona, write"),
        (("agent", "--id", "task_0"), "no record task_0 in"),
        (("write", "--id", "traj_0"), "write is rendered for a task or grounded chain, not for a trajectory"),
        (("classify", "--id", "x"), "the graph's prompts are about the tools of an environment, not about a record"),
        (("judge", "--id", "traj_0"), "no trajectory traj_0 in"),
    ],
    ids=["stage", "task", "not a task", "graph", "trajectory"],
)
def test_prompts_render_says_what_is_wrong(spoken, trajsmith, arguments, says):
    shown = trajsmith("prompts", "render", *arguments, "--run", spoken / "run")
    assert shown.code == 2
    assert says in shown.err


def test_prompts_list_names_every_prompt(trajsmith):
    shown = trajsmith("prompts", "list")
    assert shown.code == 0
    for name in ("querygen/persona", "querygen/write", "querygen/refine", "usersim/user", "verify/judge"):
        assert name in shown.out


def test_a_prompt_with_a_missing_variable_ends_the_run_before_any_work(tmp_path, trajsmith):
    (tmp_path / "mine" / "usersim").mkdir(parents=True)
    ours = (ROOT / "usersim" / "prompts" / "user.md.j2").read_text()
    (tmp_path / "mine" / "usersim" / "user.md.j2").write_text(ours.replace("{{ name }}", "{{ nmae }}"))
    with RunningServer(script=SCRIPT) as server:
        (tmp_path / "spoken.yaml").write_text(CONFIG.format(url=server.url) + f"prompts: {tmp_path / 'mine'}\n")
        done = trajsmith("run", tmp_path / "spoken.yaml", "--run", tmp_path / "run")
        assert server.stats()["requests"] == 0
    assert done.code == 2
    assert "uses nmae, which is not given" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_two_levels_need_a_model_as_agent(tmp_path, trajsmith):
    (tmp_path / "plain.yaml").write_text("name: x\nenvironments: [{library: bank}]\nsample: {count: 2}\n")
    done = trajsmith("run", tmp_path / "plain.yaml", "--run", tmp_path / "run", "--set", "play.tools=two_level")
    assert done.code == 2
    assert "two_level needs a model as agent" in done.err


def test_models_search_for_their_tools_on_a_server_that_fails(tmp_path, monkeypatch):
    monkeypatch.setenv(speaking.RUN, str(tmp_path / "run"))
    faults = dict.fromkeys(("rate_limit", "server_error", "garbage", "bad_arguments", "wrong_tool"), 0.05)
    with RunningServer(script=SCRIPT, faults=faults) as server:
        config = CONFIG.format(url=server.url).replace("write: {", "write: {tools: {search: 1.0}, ")
        (tmp_path / "search.yaml").write_text(config)
        done = run(tmp_path / "run", tmp_path / "search.yaml")
        assert done.returncode == 0, done.stderr
        assert sum(server.stats()["faults"].values()) > 5
    verdicts = {verdict["trajectory_id"]: verdict for verdict in lines(tmp_path / "run" / "verdicts.jsonl")}
    played = lines(tmp_path / "run" / "trajectories.jsonl")
    assert all(one["tools"] == ["search_tools", "call_tool"] for one in played)
    accepted = [one for one in played if verdicts[one["id"]]["accepted"]]
    assert len(accepted) >= 3
    says = "the agent calls only tools that a search has shown"
    for one in accepted:
        assert any(event["tool"] == "search_tools" for event in one["events"])
        assert says in {check["says"] for check in verdicts[one["id"]]["checks"] if check["passed"]}
        assert not any(event.get("error") == "not_shown" for event in one["events"])
