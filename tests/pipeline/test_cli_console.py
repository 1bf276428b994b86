"""What commands print cannot drive a terminal, whatever environments and models put into it."""

import errno
import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trajsmith.cli import app, console, finished_run
from trajsmith.cli.train import show_scores
from trajsmith.evals import Score
from trajsmith.records import Summary


@pytest.mark.parametrize(
    "renderable",
    ["\x1b[2Jx", Text("\x1b[2Jx", "red"), Text.assemble(("\x1b[2Jx", "bold"))],
    ids=["text", "styled", "assembled"],
)
def test_escape_sequences_are_spelled_out(renderable: object, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console.out, "_file", screen)
    console.out.print(renderable, markup=False)
    assert screen.getvalue() == "\\x1b[2Jx\n"


def test_tables_lines_and_notes_are_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    for one in (console.out, console.err):
        monkeypatch.setattr(one, "_file", screen)
    table = Table("a\u202e")
    table.add_row("\x1b]0;title\x07")
    console.out.print(table)
    console.print_line("line \x1b[31m")
    console.print_note("note \x1b[31m")
    assert "\x1b" not in screen.getvalue() and "\u202e" not in screen.getvalue()
    assert screen.getvalue().count("\\x1b") == 3


def test_styles_of_our_own_stay() -> None:
    screen = io.StringIO()
    colored = Console(file=screen, force_terminal=True, color_system="standard")
    colored.push_render_hook(console.EscapingHook())
    colored.print(Text("\x1bx", "red"))
    assert screen.getvalue() == "\x1b[31m\\x1bx\x1b[0m\n"


@pytest.mark.parametrize(("number", "code"), [(errno.ENAMETOOLONG, 2), (errno.EACCES, 2), (errno.EIO, 1)])
def test_an_error_of_the_system_is_one_line(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise OSError(number, "no such luck", "some/file\x1b")

    monkeypatch.setattr(app, "app", fail)
    with pytest.raises(SystemExit) as stop:
        app.main()
    assert stop.value.code == code
    assert capsys.readouterr().err == "error: some/file\\x1b: no such luck\n"


def test_the_table_of_an_evaluation_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console.out, "_file", screen)
    monkeypatch.setattr(console.out, "_width", 80)
    score = Score(
        group="mobile_care / distractors", tasks=1200, episodes=6000, unscored=0, pass1=0.437, low=0.351, high=1.0,
        pass_k={1: 0.437, 5: 0.2}, pass_k_interval={}, checks=0.81, checks_interval=(0.7, 0.9), turns=12.3, calls=15.2,
        tokens=12345.0, errors={"wrong_answer": 35, "refused": 24},
    )  # fmt: skip
    show_scores([score])
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for text in ("tasks of", "pass@1", "tokens", "35.1-100.0", "12345", "mobile_care / distractors"):
        assert any(text in line for line in lines), text
    assert lines[-1] == "mobile_care / distractors: pass^5 20.0, wrong_answer 35, refused 24"


def test_a_run_prints_the_commonest_reasons_of_rejection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(console.out, "_file", screen)
    rejected = {f"reason_{number}": number for number in range(1, 14)}
    summary = Summary(
        name="run",
        seed=0,
        language="scripted",
        funnel={"accepted": 1},
        rejected=rejected,
        coverage={},
        environments={"bank": 1},
        stages=(),
    )
    finished_run.show_run(tmp_path, summary, exported=False)
    lines = [line for line in screen.getvalue().splitlines() if line.startswith("rejected")]
    assert lines[0] == "rejected: reason_13: 13"
    assert lines[9:] == ["rejected: reason_4: 4", "rejected for 3 other reasons: 6; see summary.json"]
