"""`trajsmith run` takes environments of other systems as they are: accepted trajectories, replayed in a new process."""

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from trajsmith.records import Summary

FOREIGN = Path(__file__).parent / "foreign"
CANARY = "canary-3f9a"
ENTRIES = {
    "envfactory": "{{envfactory: {here}/Plants.py, sandbox: {mode}}}",
    "envscaler": "{{envscaler: {{file: {here}/lending.json}}, sandbox: {mode}}}",
    "awm": "{{awm: {{server: {here}/shelf_server.py, data: {here}/shelf.sql}}, sandbox: {mode}}}",
    "openapi": "{{openapi: {here}/desk.yaml, sandbox: {mode}}}",
}


def trajsmith(*arguments: object, hash_seed: str = "random") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "trajsmith", *map(str, arguments)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "FAKE_API_KEY": CANARY}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
@pytest.mark.parametrize("mode", ["default", "strict"])
@pytest.mark.parametrize("kind", ENTRIES)
def test_a_foreign_environment_gives_accepted_trajectories_that_replay(
    kind: str, mode: str, tmp_path: Path, full: bool
) -> None:
    if mode == "strict" and kind != "envscaler" and not full:
        pytest.skip("strict mode of every kind is for --full")
    if kind == "awm":
        pytest.importorskip("sqlalchemy", reason="needs the extra awm")
        pytest.importorskip("fastapi", reason="needs the extra awm")
    entry = ENTRIES[kind].format(here=FOREIGN, mode=mode)
    (tmp_path / "run.yaml").write_text(
        f"name: foreign\nenvironments:\n  - {entry}\nsample: {{count: 10, length: [2, 5]}}\nground: {{min_calls: 2}}\n"
    )
    made = trajsmith("run", tmp_path / "run.yaml", "--run", tmp_path / "run")
    assert made.returncode == 0, made.stderr
    summary = Summary(**orjson.loads((tmp_path / "run" / "summary.json").read_bytes()))
    assert summary.funnel["accepted"] >= 5
    assert next(iter(summary.isolation.values())).startswith(f"sandbox {mode}")
    again = trajsmith("replay", tmp_path / "run", hash_seed="4242")
    assert again.returncode == 0, again.stderr
    assert f"{summary.funnel['accepted']} of " in again.stdout
    assert "(100.0 %)" in again.stdout
    written = b"".join(file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert CANARY.encode() not in written


@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")
def test_what_ran_without_isolation_says_so(tmp_path: Path) -> None:
    entry = ENTRIES["envfactory"].format(here=FOREIGN, mode="unsafe")
    (tmp_path / "run.yaml").write_text(f"name: loose\nenvironments:\n  - {entry}\nsample: {{count: 6}}\n")
    made = trajsmith("run", tmp_path / "run.yaml", "--run", tmp_path / "run", "--set", "ground.min_calls=2")
    assert made.returncode == 0, made.stderr
    summary = orjson.loads((tmp_path / "run" / "summary.json").read_bytes())
    assert summary["isolation"] == {"Plants": "unsafe: a process without any lock"}
    assert "mode: unsafe" in (tmp_path / "run" / "config.yaml").read_text()
    card = (tmp_path / "run" / "dataset" / "README.md").read_text()
    assert "**Made without isolation:** the code of Plants ran without the sandbox" in card
