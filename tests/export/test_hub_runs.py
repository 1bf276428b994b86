"""Tasks beside the rows on a Hub on this machine: one repository is a dataset, a run to replay, and environments."""

import os
import subprocess
import sys

import pytest
from hub_server import serve

import trajsmith as ts
from trajsmith.pipeline.hub_runs import check_foreign_config, fetch_run
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


LOAD = """
from datasets import load_dataset
rows, sessions = load_dataset("me/rows", split="train"), load_dataset("me/rows", "traces", split="train")
assert set(sessions["session_id"]) <= set(rows["id"]), sessions["session_id"]
assert all(one["messages"] == rows[rows["id"].index(one["session_id"])]["messages"] for one in sessions)
assert all(one["trace"].startswith('{"type":"session"') for one in sessions)
print(len(rows), len(sessions))
"""


def test_sessions_beside_rows_and_tasks_are_a_configuration_of_the_repository(run, tmp_path):
    with serve() as hub:
        push = ["-m", "trajsmith", "push", str(run.path), "me/rows", "--tasks", "--traces"]
        assert call(hub, tmp_path, *push).returncode == 0
        before = {name for name in hub.files("datasets/me/rows") if name.startswith("traces/")}
        pushed = call(hub, tmp_path, *push, "--sessions", "2")
        assert pushed.returncode == 0 and "2 sessions in " in pushed.stdout, pushed.stderr
        assert "delete traces/train/traj_" in pushed.stdout
        names = {name for name in hub.files("datasets/me/rows") if name.startswith("traces/")}
        assert names < before and len(names) == 3
        assert "traces/train-00000.parquet" in names and "run/tasks.jsonl" in hub.files("datasets/me/rows")
        loaded = call(hub, tmp_path, "-c", LOAD)
        assert loaded.stdout.split() == [str(len(run.trajectories)), "2"], loaded.stderr[-2000:]


def test_a_copy_is_compared_with_the_signed_manifest(run, tmp_path):
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "key.pem"], cwd=tmp_path, check=True)
    subprocess.run(["openssl", "pkey", "-in", "key.pem", "-pubout", "-out", "key.pub"], cwd=tmp_path, check=True)
    command = ["-m", "trajsmith", "replay", "hub:me/rows", "--key", str(tmp_path / "key.pub")]
    homes = [tmp_path / name for name in ("first", "changed", "unsigned")]
    for home in homes:
        home.mkdir()
    with serve() as hub:
        push = ["-m", "trajsmith", "push", str(run.path), "me/rows", "--tasks"]
        pushed = call(hub, tmp_path, *push, "--sign", "key.pem")
        assert pushed.returncode == 0 and "files, signed" in pushed.stdout, pushed.stderr
        replayed = call(hub, homes[0], *command)
        assert replayed.returncode == 0 and "for me/rows\n" in replayed.stdout, replayed.stderr
        (copy,) = (homes[0] / "home" / "trajsmith").glob("*/run")
        local = [*command[:3], str(copy), *command[4:]]
        replayed = call(hub, homes[0], *local)
        assert replayed.returncode == 0 and "signed by " in replayed.stdout, replayed.stderr
        play = copy / "trajectories.jsonl"
        play.write_text(play.read_text().replace("bank", "bonk", 1))
        changed = call(hub, homes[0], *local)
        assert changed.returncode == 1 and "signed by" not in changed.stdout
        assert "run/trajectories.jsonl is not the file that the manifest names" in changed.stderr
        files = hub.files("datasets/me/rows")
        tasks = files["run/tasks.jsonl"]
        files["run/tasks.jsonl"] = tasks.replace(b"bank", b"bonk")
        changed = call(hub, homes[1], *command[:-2])
        assert changed.returncode == 1 and "run/tasks.jsonl is not the file that the manifest names" in changed.stderr
        files["run/tasks.jsonl"] = tasks
        again = call(hub, tmp_path, *push)
        assert again.returncode == 0 and "delete manifest.dsse.json" in again.stdout, again.stderr
        unsigned = call(hub, homes[2], *command)
        assert unsigned.returncode == 1 and "the dataset is not signed" in unsigned.stderr
        assert call(hub, homes[2], *command[:-2]).returncode == 0


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


@pytest.mark.parametrize(
    "reference",
    [
        "hub:a/b@x/../../../y",
        "hub:a/b@\x00",
        "hub:a/b@\x1b[31m",
        "hub:a/b@" + "y" * 300,
        "hub:a b/c",
        "hub:../b",
        "hub:a/..",
    ],
)
def test_a_reference_cannot_lead_out_of_its_folder(reference):
    with pytest.raises(InputError) as error:
        fetch_run(reference)
    assert str(error.value).isprintable() and len(str(error.value)) < 500
