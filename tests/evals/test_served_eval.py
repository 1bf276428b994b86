"""Evaluation of a model behind an endpoint: conversations with users, faults, budget, and going on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest
import speaking
from running_server import RunningServer

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.evaluation import EvalConfig, run_eval
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings
from trajsmith.records import BudgetExceeded, InputError

ROOT = Path(__file__).parents[2]
SCRIPT = str(Path(speaking.__file__))
CONFIG = """
name: talked
seed: 5
run: {run}
environments: [{{library: helpdesk, states: {{small: 1}}}}, {{library: mobile_care, states: {{small: 1}}}}]
sample: {{count: 8, length: [2, 3]}}
write: {{direct: 0.4}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with direct tasks and conversations, which the server knows."""
    import asyncio

    folder = tmp_path_factory.mktemp("served")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    before = os.environ.get(speaking.RUN)
    os.environ[speaking.RUN] = str(made.path)
    yield made
    os.environ.pop(speaking.RUN) if before is None else os.environ.update({speaking.RUN: before})


@pytest.fixture(scope="module")
def server(run):
    with RunningServer(script=SCRIPT) as running:
        yield running


def config(run, out, url, model=(), **more):
    quick = {"first_wait": 0.01, "longest_wait": 0.05, "timeout": 5.0} | dict(model)
    models = {"local": {"model": "test-model", "base_url": url} | quick}
    return EvalConfig.model_validate(
        {"model": "local", "models": models, "run": run.path, "split": "all", "out": out} | more
    )


def episodes(out):
    return [orjson.loads(line) for line in (out / "episodes.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("user", ["scripted", "local"])
async def test_the_gold_agent_passes_direct_tasks_and_conversations(run, server, tmp_path, user):
    scores = await run_eval(config(run, tmp_path, server.url, user=user, settings={"samples": 2}))
    found = {score.group: score for score in scores}
    assert found["all"].unscored == 0, episodes(tmp_path)
    assert found["all"].pass1 == 1.0, [one for one in episodes(tmp_path) if not one["passed"]]
    assert found["all"].pass_k == {2: 1.0} and {"helpdesk", "mobile_care"} <= found.keys()
    assert found["all"].tokens > 0
    usage = json.loads((tmp_path / "results.json").read_bytes())["usage"]
    assert usage["agent"]["requests"] > 0
    assert ("user" in usage) == (user == "local")


async def test_faults_of_the_server_are_ridden_out_and_those_of_the_model_are_its_own(run, server, tmp_path):
    rates = {"rate_limit": 0.1, "server_error": 0.1, "drop": 0.05, "half": 0.05, "bad_arguments": 0.3}
    with RunningServer(script=SCRIPT, faults=rates, seed=2) as failing:
        scores = await run_eval(config(run, tmp_path, failing.url, settings={"samples": 2}))
        faults = failing.stats()["faults"]
    assert {"rate_limit", "server_error", "bad_arguments"} <= faults.keys()
    assert scores[0].unscored == 0
    assert set(scores[0].errors) == {"malformed_call"}
    assert scores[0].errors["malformed_call"] == faults["bad_arguments"]


async def test_an_episode_lost_to_the_server_is_played_again(run, tmp_path):
    with RunningServer(script=SCRIPT, faults={"server_error": 1.0}) as failing:
        asked = config(run, tmp_path, failing.url, model={"attempts": 1, "outage_after": 10_000})
        broken = await run_eval(asked)
        assert (broken[0].episodes, broken[0].unscored) == (len(episodes(tmp_path)), len(episodes(tmp_path)))
        assert broken[0].errors == {"model_server": broken[0].episodes}
        failing.change(faults={})
        healed = await run_eval(asked)
    assert (healed[0].unscored, healed[0].pass1) == (0, 1.0)


async def test_a_model_that_says_nothing_fails(run, tmp_path):
    with RunningServer(script=SCRIPT, faults={"silent": 1.0}) as failing:
        scores = await run_eval(config(run, tmp_path, failing.url, model={"attempts": 2}))
    assert (scores[0].pass1, scores[0].unscored) == (0.0, 0)
    assert scores[0].errors == {"no_answer": scores[0].episodes}


async def test_a_budget_stops_the_work_and_more_of_it_goes_on(run, server, tmp_path):
    whole, part, one = tmp_path / "whole", tmp_path / "part", {"concurrency": 1}
    first = server.stats()["requests"]
    (full, *_) = await run_eval(config(run, whole, server.url, settings=one))
    used = json.loads((whole / "results.json").read_bytes())["usage"]["agent"]
    before = server.stats()["requests"]
    half = (used["prompt_tokens"] + used["completion_tokens"]) // 2
    with pytest.raises(BudgetExceeded, match=r"of \d+ episodes are over and kept in .*raise budget.max_tokens"):
        await run_eval(config(run, part, server.url, budget={"max_tokens": half}, settings=one))
    assert 0 < len(episodes(part)) < full.episodes
    assert not (part / "results.json").exists()
    (gone_on, *_) = await run_eval(config(run, part, server.url, settings=one))
    assert (gone_on.pass1, gone_on.checks, gone_on.calls) == (full.pass1, full.checks, full.calls)
    assert server.stats()["requests"] - before <= before - first + 1


async def test_results_of_another_question_are_kept_apart(run, server, tmp_path):
    await run_eval(config(run, tmp_path, server.url, limit=1))
    with pytest.raises(InputError, match="name another folder as out"):
        await run_eval(config(run, tmp_path, server.url, limit=1, user="local"))
    await run_eval(config(run, tmp_path, server.url, model={"attempts": 3, "concurrency": 2}, limit=1))


def test_killed_it_goes_on_and_pays_for_nothing_twice(run, tmp_path):
    with RunningServer(script=SCRIPT, latency=0.05) as slow:
        asked = config(run, tmp_path / "eval", slow.url, settings={"samples": 3, "concurrency": 4})
        file = tmp_path / "eval.yaml"
        file.write_text(dump_settings(asked))
        command = [sys.executable, "-m", "trajsmith", "eval", str(file)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = tmp_path / "eval" / "episodes.jsonl"
        while process.poll() is None and not (lines.is_file() and lines.read_bytes().count(b"\n") >= 2):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = episodes(tmp_path / "eval")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        stats = slow.stats()
    after = episodes(tmp_path / "eval")
    assert after[: len(before)] == before
    names = [(one["task_id"], one["sample"]) for one in after]
    assert len(names) == len(set(names)) == 3 * len({task for task, _ in names})
    assert all(one["passed"] for one in after)
    in_flight_at_the_kill = 4
    assert stats["answered_twice"] <= in_flight_at_the_kill
    assert "pass^3" in done.stdout
