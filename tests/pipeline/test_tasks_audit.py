"""`trajsmith tasks --audit`: the checks of a run's tasks, tested; and what the write stage stores of such a test."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from trajsmith.pipeline.check_audit import audit_run
from trajsmith.pipeline.progress import NullProgress
from trajsmith.pipeline.run_directory import RunDirectory
from trajsmith.records import Task
from trajsmith.records.journal import read_records

CONFIG = """
name: audited
environments:
  - {library: retail, states: {small: 1}}
  - {library: mobile_care, states: {small: 1}}
sample: {count: 8, length: [4, 7]}
play: {candidates: 2}
"""


def trajsmith(*arguments: object, code: int = 0) -> SimpleNamespace:
    command = [sys.executable, "-m", "trajsmith", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"})
    assert done.returncode == code, done.stderr
    return SimpleNamespace(out=done.stdout, err=done.stderr)


@pytest.fixture(scope="module")
def path(tmp_path_factory: Any) -> Path:
    made: Path = tmp_path_factory.mktemp("audited") / "run"
    config = made.parent / "audited.yaml"
    config.write_text(CONFIG)
    trajsmith("run", config, "--run", made)
    return made


def test_tasks_come_with_their_test(path: Path) -> None:
    tasks = list(read_records(path / "tasks.jsonl", Task))
    assert tasks
    for task in tasks:
        assert task.audit is not None
        assert task.audit.made
        assert task.audit.discrimination is not None
        assert task.audit.discrimination >= 0.85
        assert task.audit.accepted == task.audit.equivalent
        assert all(turn.form_hash for turn in task.turns)
        assert task.masks.clock == "now"
    rules = [check for task in tasks for turn in task.turns for check in turn.checks if check.kind == "policy"]
    assert {check.says for check in rules} == {
        "Only the account of the number from which the customer calls may be opened."
    }


def test_the_best_of_two_candidates_is_accepted(path: Path) -> None:
    lines = [orjson.loads(line) for line in (path / "verdicts.jsonl").read_bytes().splitlines()]
    accepted: dict[str, int] = {}
    for verdict in lines:
        accepted[verdict["task_id"]] = accepted.get(verdict["task_id"], 0) + verdict["accepted"]
        assert verdict["accepted"] or verdict["reasons"] == ["not the best candidate"]
    assert set(accepted.values()) == {1}
    summary = orjson.loads((path / "summary.json").read_bytes())
    assert summary["rejected"] == {"not the best candidate": len(accepted)}
    assert summary["funnel"]["accepted"] == len(accepted)


def test_the_tables(path: Path) -> None:
    said = trajsmith("tasks", path, "--audit", "--mutants", 12, "--limit", 4)
    assert "kind of mutant" in said.out
    assert "retail" in said.out
    assert "wrong_entity" in said.out
    row = next(line for line in said.out.splitlines() if line.strip("│┃ ").startswith("all"))
    assert row.split("│")[2].strip() == "4"


@pytest.fixture
def weakened(path: Path, tmp_path: Path) -> RunDirectory:
    """A copy of the run in which the first task has lost all checks of states."""
    copy = tmp_path / "run"
    shutil.copytree(path, copy)
    lines = (copy / "tasks.jsonl").read_bytes().splitlines()
    task = orjson.loads(lines[0])
    for turn in task["turns"]:
        turn["checks"] = [check for check in turn["checks"] if check["kind"] == "untouched"]
    lines[0] = Task(**{**task, "id": ""}).to_line().rstrip()
    (copy / "tasks.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return RunDirectory.open(copy)


def test_a_weak_task_is_named(weakened: RunDirectory) -> None:
    found = asyncio.run(audit_run(weakened, 20, 1, NullProgress()))
    ((_, why),) = [entry for one in found.values() for entry in one.weak]
    assert "wrong runs pass" in why or "doing nothing passes" in why
    said = trajsmith("tasks", weakened.path, "--audit", "--mutants", 20, "--limit", 1, code=1)
    assert said.err.splitlines()[-1].endswith("1 of 1 tasks are weak, 0 could not be tested")


def test_a_run_without_tasks(weakened: RunDirectory) -> None:
    weakened.file("tasks.jsonl").unlink()
    said = trajsmith("tasks", "--run", weakened.path, "--audit", code=2)
    assert "has no tasks yet: run `trajsmith tasks" in said.err
