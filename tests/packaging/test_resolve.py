"""`make resolve` with an index that does not answer: one more try, then it says so and fails."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "resolve.py"
TIMES_OUT = "error: Failed to fetch: `https://index.example/simple/mcp/`: operation timed out"


@pytest.fixture
def script(monkeypatch):
    script = runpy.run_path(str(SCRIPT))
    script["resolve"].__globals__["WAIT"] = 0.0
    return script


def build_uv(folder, answers):
    """Return a program that gives one answer of `answers` after the other, its exit code and what it says.

    The last one is for all that come later, and for those that run side by side and find no number.
    """
    uv = folder / "uv"
    numbers = [*map(str, range(len(answers) - 1)), "*"]
    lines = [
        f"{number}) echo '{text}' >&2; echo mcp==2.2.0; exit {code};;"
        for number, (code, text) in zip(numbers, answers, strict=True)
    ]
    uv.write_text(
        f"#!/bin/sh\nn=$(cat {folder}/n 2> /dev/null || echo 0)\necho $((n + 1)) > {folder}/n\ncase $n in\n"
        + "\n".join(lines)
        + "\nesac\n"
    )
    uv.chmod(0o755)
    return str(uv)


@pytest.mark.parametrize(
    ("answers", "good", "says", "tries"),
    [
        ([(0, "")], True, "resolves newest: 1 packages", 1),
        ([(1, TIMES_OUT), (0, "")], True, "resolves newest: 1 packages", 2),
        ([(1, TIMES_OUT), (1, TIMES_OUT)], False, "newest: the package index did not answer, twice", 2),
        ([(1, "no solution: mcp needs pydantic"), (0, "")], False, "newest: does not resolve", 1),
    ],
    ids=["resolves", "second try", "no answer", "no solution"],
)
def test_only_an_index_that_does_not_answer_is_asked_again(script, tmp_path, answers, good, says, tries):
    outcome, line = script["resolve"]("newest", [build_uv(tmp_path, answers)], "")
    assert outcome is good and line.startswith(says)
    assert (tmp_path / "n").read_text().strip() == str(tries)
    assert good or answers[-1 if tries == 2 else 0][1] in line


def test_one_that_fails_fails_all(script, tmp_path, capsys):
    assert script["main"](build_uv(tmp_path, [(1, "no solution")])) == 1
    assert "lowest: does not resolve" in capsys.readouterr().err


def test_lowest_and_newest_are_resolved_alone_and_beside_frameworks(script):
    commands = script["build_commands"]("uv")
    assert [name for name, *_ in commands][:2] == ["lowest", "newest"]
    assert sum(name.startswith("beside ") for name, *_ in commands) == 3
    assert all("--universal" in command for _, command, _ in commands)
