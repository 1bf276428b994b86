"""What commands print cannot drive a terminal, whatever environments and models put into it."""

import errno
import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trajsmith.cli import app, console


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
