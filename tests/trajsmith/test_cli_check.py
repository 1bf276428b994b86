"""`trajsmith env check`: exit codes, files, replay, wrong input."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from envgen.doctor import Plan, exam
from envgen.doctor.explore import Effort
from trajectory import InputError, RunError
from trajsmith.cli_check import check

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(check)
runner = CliRunner()


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examinations of a second; how sharp they are is tested elsewhere."""
    effort = Effort(first=6, enough=2, hard=8, walks=1, length=6, rare=0)
    monkeypatch.setattr("envgen.doctor.Plan", partial(Plan, effort=effort, seeds=4, starts=2))
    monkeypatch.setattr(exam, "_reopening", lambda source: None)


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
    from environments.library.smart_home import SmartHome
    from environments.native import native_tools

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
