"""The contamination report of `trajsmith bench`: rows of training runs that hold tasks of the benchmark."""

import json

import pytest
from typer.testing import CliRunner

import trajsmith
from trajsmith.cli.app import app
from trajsmith.evals.suites import SUITES, SuiteTask
from trajsmith.records import InputError, Message


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = {
        "environments": [{"library": "retail"}],
        "sample": {"count": 6},
        "run": str(tmp_path_factory.mktemp("r") / "run"),
    }
    return trajsmith.run("quickstart", overrides=settings)


class Copies:
    """A suite whose one task says what the run's first accepted row says, if there is a run."""

    version, categories = "1", ("one",)
    run = None

    async def open(self, environment, path):
        pass

    async def close(self):
        pass

    async def load_tasks(self, category):
        text = "Please add one and one, and tell me what the sum of the two numbers is before you go on with it."
        if self.run is not None:
            accepted = {verdict.trajectory_id for verdict in self.run.verdicts if verdict.accepted}
            row = next(row for row in self.run.trajectories if row.id in accepted)
            text = "\n".join(message.content for message in row.messages if message.role == "user")
        turns = ((Message(role="user", content=text),),)
        return [SuiteTask(id="one_0", category=category, turns=turns, tools=(), live=False, gold=None)]

    async def execute(self, task, run, calls):
        return []

    async def check(self, task, run, steps):
        return ""


@pytest.mark.parametrize("copied", [True, False])
def test_rows_that_hold_a_task_are_counted(run, tmp_path, monkeypatch, copied):
    monkeypatch.setattr(Copies, "run", run if copied else None)
    monkeypatch.setattr(SUITES, "get", lambda name: Copies)
    command = ["bench", "copies", "--model", "refuse", "--out", str(tmp_path / "out"), "--trained-on", str(run.path)]
    command += ["--price", "0.5", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0 and "cost" in result.output, result.output
    [report] = json.loads((tmp_path / "out" / "contamination.json").read_text())
    assert report["rows"] == sum(verdict.accepted for verdict in run.verdicts)
    assert bool(report["matched"].get("text")) is copied
    assert ("none holds a task" in result.output) is not copied


def test_a_folder_that_is_no_run_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(SUITES, "get", lambda name: Copies)
    command = ["bench", "copies", "--model", "refuse", "--out", str(tmp_path / "out"), "--trained-on", str(tmp_path)]
    with pytest.raises(InputError, match="no run here"):
        CliRunner().invoke(app, command, standalone_mode=False, catch_exceptions=False)
