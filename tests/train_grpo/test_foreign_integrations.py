"""The same gold transcripts score the same through OpenEnv and through `verifiers`, each in an environment of its own.

`make integrations` installs them; neither goes with the versions of mcp or openai that this project needs.
"""

import asyncio
import os
import subprocess
from pathlib import Path

import orjson
import pytest

from trajsmith.pipeline.config import load_config
from trajsmith.pipeline.record_joins import join_verdicts
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.pipeline.runner import run_pipeline
from trajsmith.pipeline.yaml_settings import dump_settings

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CONFIG = """
name: integrations
seed: 9
run: {run}
environments: [{{library: smart_home, states: {{small: 2}}}}, {{library: bank, states: {{small: 1}}}}]
sample: {{count: 8, length: [2, 4]}}
ground: {{min_calls: 1}}
write: {{direct: 0.7}}
"""
SAME = ("outcome", "checks", "rewards", "state_match", "replay_match", "trajectory_match", "accepted")


def python_of(name):
    python = ROOT / ".integrations" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed: run `make integrations`")
    return str(python)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "line.yaml").write_text(CONFIG.format(run=folder / "run"))
    settings = load_config(folder / "line.yaml")
    made = RunDirectory.create(settings.run, dump_settings(settings))
    asyncio.run(run_pipeline(made))
    return made


def said(command):
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [orjson.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "{"))]


@pytest.mark.servers
@pytest.mark.parametrize("environment", ["smart_home", "bank"])
def test_openenv_gives_the_same_verdicts(run, environment):
    python = python_of("openenv")
    command = [python, "-m", "trajsmith", "env", "serve", environment, "--openenv", "127.0.0.1:0", "--admin"]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env, cwd=ROOT)
    try:
        line = next(line for line in server.stderr if "serving OpenEnv at" in line)
        url = line.split(" at ")[1].split(";")[0]
        found = dict(said([python, str(HERE / "through_openenv.py"), str(run.path), url, environment]))
    finally:
        server.terminate()
        server.communicate(timeout=30)
    mine = {record.id: verdict.model_dump(mode="json") for _, record, verdict in join_verdicts(run)
            if record.environment == environment}  # fmt: skip
    assert found.keys() == mine.keys() and mine
    for name, verdict in mine.items():
        assert {key: found[name][key] for key in SAME} == {key: verdict[key] for key in SAME}
        assert verdict["accepted"]


@pytest.mark.servers
def test_verifiers_gives_the_same_results_and_rewards(run):
    found = {
        line["id"]: line for line in said([python_of("verifiers"), str(HERE / "through_verifiers.py"), str(run.path)])
    }
    mine = {record.id: (task, verdict) for task, record, verdict in join_verdicts(run)}
    assert found.keys() == {name for name, (task, _) in mine.items() if not task.user_tools}
    for name, line in found.items():
        task, verdict = mine[name]
        assert line["same_results"]
        assert line["tools"] == len(task.exposed_tools)
        assert line["reward"] == verdict.rewards["composite"] == 1.0
        assert line["metrics"] == verdict.rewards | {"gold_calls": 1.0, "accepted": 1.0}
