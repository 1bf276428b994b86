"""Tasks beside the rows on a Hub on this machine: one repository is a dataset, a run to replay, and environments."""

import os
import subprocess
import sys

import pytest
from hub_server import serve

import trajsmith as ts
from trajsmith.pipeline.hub_runs import check_foreign_config
from trajsmith.records import InputError

CONFIG = {
    "name": "hub",
    "seed": 3,
    "environments": [{"library": "bank", "states": {"small": 1}}],
    "sample": {"count": 4, "length": [1, 2], "method": "random_walk"},
    "ground": {"min_calls": 1},
    "write": {"direct": 1.0},
}
USE = """
import trajsmith as ts
from datasets import load_dataset
rows = load_dataset("me/rows", split="train")
with ts.TrajsmithSpec("hub:me/rows", split="all", environment_reward="accepted", user_tool=True) as spec:
    environment = next(iter(spec.environment_factory.values()))()
    environment.reset(**spec.train_dataset[0])
    print(len(rows), {row["task_id"] for row in rows} <= {task.id for task in spec.tasks}, environment.get_reward())
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ts.run(CONFIG, run=tmp_path_factory.mktemp("hub") / "run")


def call(hub, folder, *command):
    env = os.environ | {
        "HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1", "COLUMNS": "200",
    }  # fmt: skip
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, check=False, cwd=folder)


def test_a_repository_is_rows_and_a_run_that_replays(run, tmp_path):
    path = str(run.path)
    with serve() as hub:
        pushed = call(hub, tmp_path, "-m", "trajsmith", "push", path, "me/rows", "--tasks")
        assert pushed.returncode == 0, pushed.stderr
        assert {"run/config.yaml", "run/tasks.jsonl", "README.md"} <= hub.files("datasets/me/rows").keys()
        replayed = call(hub, tmp_path, "-m", "trajsmith", "replay", "hub:me/rows")
        number = len(run.trajectories)
        assert f"{number} of {number} trajectories replayed to equal state hashes" in replayed.stdout, replayed.stderr
        copy = {
            file: file.stat().st_mtime_ns for file in (tmp_path / "home" / "trajsmith").rglob("*") if file.is_file()
        }
        for command in (["resume"], ["report"], ["export"], ["verify"], ["calibrate", "--solver", "scripted:0.1"]):
            refused = call(hub, tmp_path, "-m", "trajsmith", command[0], "hub:me/rows", *command[1:])
            assert refused.returncode == 2 and "hub:me/rows can be read only" in refused.stderr
        exported = call(
            hub, tmp_path, "-m", "trajsmith", "export", "hub:me/rows", "--format", "openai", "--out", "rows"
        )
        assert exported.returncode == 0, exported.stderr
        assert (tmp_path / "rows" / "data" / "train.jsonl").is_file()
        assert copy == {file: file.stat().st_mtime_ns for file in copy}
        used = call(hub, tmp_path, "-c", USE)
        assert used.stdout.split() == [str(number), "True", "0.0"], used.stderr[-2000:]
        missing = call(hub, tmp_path, "-m", "trajsmith", "replay", "hub:me/nothing")
        assert missing.returncode == 2 and "me/nothing" in missing.stderr


@pytest.mark.parametrize(
    "environment",
    [
        {"mcp": {"name": "own", "command": ["sh", "-c", "true"]}},
        {"python": "/etc/other.py"},
        {"python": "files/../../other.py"},
        {"library": "bank", "sandbox": {"mode": "unsafe"}},
        {"python": "files/e.py", "phrases": "/etc/passwd"},
        {"python": "files/e.py", "phrases": "../../phrases.yaml"},
        {"python": "files/e.py", "scenarios": "/etc/passwd"},
        {"python": "files/e.py", "sandbox": {"imports": ["os"]}},
        {"python": "files/e.py", "sandbox": {"allow_missing": ["landlock"]}},
        {"python": "files/e.py", "sandbox": {"memory_mb": 10**9}},
        {"python": "files/e.py", "sandbox": {"total_memory_mb": 10**9}},
        {"python": "files/e.py", "sandbox": {"plays": "shared"}},
    ],
    ids=[
        *("program", "absolute", "outside", "unsafe", "phrases", "phrases-outside", "scenarios"),
        *("imports", "landlock", "memory", "total-memory", "shared"),
    ],
)
def test_a_configuration_from_outside_starts_nothing(tmp_path, environment):
    with pytest.raises(InputError, match="starts programs, names files elsewhere or weakens the sandbox"):
        check_foreign_config(write_config(tmp_path, environment), "me/rows")


def test_a_configuration_from_outside_may_have_a_stricter_sandbox(tmp_path):
    stricter = {"mode": "strict", "memory_mb": 512, "call_seconds": 0.5}
    environment = {"python": "files/e.py:E", "phrases": "files/phrases.yaml", "sandbox": stricter}
    check_foreign_config(write_config(tmp_path, environment), "me/rows")


def write_config(folder, environment):
    import yaml

    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump({"name": "x", "seed": 1, "run": ".", "environments": [environment]}))
    return file


def test_a_configuration_of_tasks_has_no_other_settings(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("name: x\nseed: 1\nrun: .\nenvironments: [{library: bank}]\n")
    check_foreign_config(file, "me/rows")
    file.write_text(file.read_text() + "models: {a: {provider: openai, model: m}}\n")
    with pytest.raises(InputError, match="has settings that others' tasks may not have"):
        check_foreign_config(file, "me/rows")
