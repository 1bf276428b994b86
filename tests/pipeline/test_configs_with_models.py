"""configs/openai.yaml and configs/vllm.yaml as whole lines, every role played over HTTP by a server that fails."""

import json
from pathlib import Path

import pytest
from running_server import RunningServer

CONFIGS = Path(__file__).parents[2] / "configs"
SPEAKING = Path(__file__).parents[1] / "language_server" / "speaking.py"
FAULTS = dict.fromkeys(
    ("rate_limit", "server_error", "overloaded", "drop", "half", "garbage", "empty", "silent"), 0.034
)
SMALL = ("sample.count=4", "sample.length=[3, 4]", 'environments=[{"library": "bank", "states": {"small": 1}}]')
QUICK = {"first_wait": 0.01, "longest_wait": 0.1, "timeout": 5, "deadline": 30, "key_env": "SPOKEN_KEY"}


def settings(url, models, **more):
    """The overrides that point all models of a file at one server."""
    ours = {"base_url": url, "model": "test-model", "provider": "openai", **QUICK, **more}
    found = [f"models.{model}.{name}={value}" for model in models for name, value in ours.items()]
    return [part for override in (*SMALL, *found) for part in ("--set", override)]


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAJSMITH_SPOKEN_RUN", str(tmp_path / "run"))
    monkeypatch.setenv("SPOKEN_KEY", "sesame")
    with RunningServer(script=str(SPEAKING), faults=FAULTS, key="sesame") as running:
        yield running


@pytest.mark.parametrize(
    ("name", "models", "api"),
    [
        ("openai", ("teacher", "helper"), "chat_completions"),
        ("openai", ("teacher", "helper"), "responses"),
        ("vllm", ("qwen",), "chat_completions"),
    ],
    ids=["openai", "openai-responses", "vllm"],
)
def test_the_whole_line_runs_with_every_role_played_by_a_model(trajsmith, server, tmp_path, name, models, api):
    run = tmp_path / "run"
    command = ("run", CONFIGS / f"{name}.yaml", "--run", run)
    command += tuple(settings(server.url, models, api=api, wire_names={}, seed=1))
    dry = trajsmith(*command, "--dry-run")
    assert (dry.code, run.exists()) == (0, False), dry.err
    assert all(role in dry.out for role in ("refine", "classify", "writer", "user", "agent", "judge", "budget:"))
    found = trajsmith(*command)
    assert found.code == 0, found.err
    summary = json.loads((run / "summary.json").read_bytes())
    kept = summary["funnel"]
    dropped = {stage["name"]: sum(stage["dropped"].values()) for stage in summary["stages"]}
    assert kept["sampled"] == 4
    assert kept["written"] == kept["grounded"] - dropped["write"] and kept["verified"] == kept["played"]
    assert kept["accepted"] == kept["exported"] >= 1
    asked = {json.loads(line)["purpose"] for line in (run / "usage.jsonl").read_bytes().splitlines()}
    assert {"refine.graph.edges", "classify.graph.parameters", "writer.write", "agent"} <= asked
    stats = server.stats()
    assert sum(stats["faults"].values()) > 0
    other, ours = (
        ("/responses", "/chat/completions") if api == "chat_completions" else ("/chat/completions", "/responses")
    )
    assert stats["paths"][ours] == stats["requests"] and other not in stats["paths"]
    if api == "responses":
        assert stats["paths"]["reasoning"] > 0
        drops = [
            line for file in run.glob("ledger/*") for line in file.read_text().splitlines() if "bad_request" in line
        ]
        assert not drops and b'"bad_request"' not in (run / "trajectories.jsonl").read_bytes()


def test_a_server_that_goes_away_while_the_graph_is_made_is_one_line_that_says_how_to_go_on(
    trajsmith, server, tmp_path
):
    run = tmp_path / "run"
    server.change(faults={"server_error": 1.0})
    overrides = settings(server.url, ["qwen"])
    overrides += ["--set", "models.qwen.preflight=false", "--set", "models.qwen.attempts=2"]
    found = trajsmith("run", CONFIGS / "vllm.yaml", "--run", run, *overrides)
    assert found.code == 1
    assert len(found.err.splitlines()) == 1 and f"trajsmith resume {run}" in found.err
    server.change(faults={})
    again = trajsmith("resume", run)
    assert again.code == 0, again.err
