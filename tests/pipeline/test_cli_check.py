"""`trajsmith env check`: exit codes, files, replay, wrong input."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from trajsmith.cli.env_check import check
from trajsmith.envcheck import CheckPlan, check_session
from trajsmith.envcheck.case_runner import CaseRunner, CheckTimeExceeded
from trajsmith.envcheck.exploration import ExplorationEffort
from trajsmith.pipeline.environment_references import find_named_entries
from trajsmith.records import InputError, RunError

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(check)
runner = CliRunner()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examinations of a second; how sharp they are is tested elsewhere."""
    effort = ExplorationEffort(first=6, enough=2, hard=8, walks=1, length=6, rare=0)
    monkeypatch.setattr("trajsmith.envcheck.CheckPlan", partial(CheckPlan, effort=effort, seeds=4, starts=2))
    monkeypatch.setattr(check_session, "_make_reopenable", lambda source: None)


def test_a_sound_environment_is_examined_and_the_files_are_written(tmp_path: Path) -> None:
    saved, html = tmp_path / "out" / "report.json", tmp_path / "report.html"
    result = runner.invoke(app, ["smart_home", "--json", str(saved), "--html", str(html)])
    assert result.exit_code == 0, result.output
    assert "smart_home  score 1.00" in result.output
    (report,) = json.loads(saved.read_text())["reports"]
    assert report["environment"] == "smart_home"
    assert {tool["name"] for tool in report["tools"]} >= {"list_rooms", "run_scene"}
    assert html.read_text().startswith("<!doctype html>")


def test_a_score_below_the_threshold_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A finding is made, saved, found in the file and shown again; a mended one is a failure of its own."""
    from trajsmith.environments.library.smart_home import SmartHome
    from trajsmith.environments.native import native_tools

    tools = native_tools(SmartHome)

    def crash(environment: SmartHome) -> None:
        raise KeyError("lock")

    monkeypatch.setitem(tools, "list_locks", replace(tools["list_locks"], method=crash))
    saved = tmp_path / "report.json"
    result = runner.invoke(app, ["smart_home", "--json", str(saved), "--threshold", "0.999"])
    assert result.exit_code == 1, result.output
    assert "below 0.999: smart_home" in result.output
    (report,) = json.loads(saved.read_text())["reports"]
    (finding,) = (one for one in report["findings"] if one["check"] == "crash")
    shown = runner.invoke(app, ["smart_home", "--json", str(saved), "--replay", finding["id"]])
    assert shown.exit_code == 0, shown.output
    assert "call list_locks()" in shown.output
    assert "KeyError" in shown.output
    monkeypatch.undo()
    gone = runner.invoke(app, ["smart_home", "--json", str(saved), "--replay", finding["id"]])
    assert isinstance(gone.exception, RunError)
    assert "does not show any more" in str(gone.exception)


def test_an_examination_without_a_score_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def over(lab: CaseRunner) -> None:
        raise CheckTimeExceeded

    monkeypatch.setattr(CaseRunner, "_spend", over)
    saved = tmp_path / "report.json"
    result = runner.invoke(app, ["smart_home", "--budget", "7", "--json", str(saved)])
    assert "smart_home  no score" in result.output
    assert isinstance(result.exception, RunError)
    assert str(result.exception) == "smart_home: 7 s were over before any check was made; raise --budget"
    (report,) = json.loads(saved.read_text())["reports"]
    assert report["score"] is None


def test_the_help_says_what_it_takes() -> None:
    text = " ".join(runner.invoke(app, ["--help"], terminal_width=200).output.split())
    for words in ("smallest calls that show it", "--budget was over", "--threshold", "FINDING", "2 for wrong input"):
        assert words in text


def test_one_environment_of_a_metadata_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "metadata.json"
    entries = {name: {"env_id": name, "env_class_name": name.title(), "env_class_code": ""} for name in ("one", "two")}
    file.write_text(json.dumps(entries))
    assert [entry.envscaler and entry.envscaler.id for entry in find_named_entries(str(file))] == ["one", "two"]
    (named,) = find_named_entries(f"{file}:Two")
    assert named.envscaler is not None
    assert named.envscaler.id == "two"


@pytest.mark.parametrize("line", ["from trajsmith import Environment, tool", "import trajsmith as ts"])
def test_a_python_file_that_imports_trajsmith_is_of_the_native_form(line: str, tmp_path: Path) -> None:
    file = tmp_path / "garden.py"
    file.write_text(f"{line}\n")
    (entry,) = find_named_entries(str(file))
    assert entry.python == str(file)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no environment named 'nowhere'"),
        (["missing.py"], "no such file"),
        (["missing.yaml"], "missing.yaml"),
        (["smart_home", "--json", "{tmp}/other.json", "--replay", "abc"], "is no report of"),
    ],
    ids=["name", "file", "yaml", "report"],
)
def test_wrong_input(arguments: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("[1, 2]")
    result = runner.invoke(app, [argument.replace("{tmp}", str(tmp_path)) for argument in arguments])
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)
