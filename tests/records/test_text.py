"""Texts for terminals: nothing in them is obeyed."""

import pytest

from trajsmith.records.text import LONGEST_ERROR, escape_controls, format_error_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\x9b31m\x07\x7f", "\\x9b31m\\x07\\x7f"),
        ("half \ud800", "half \\ud800"),
        ("a\rb", "a\\x0db"),
        ("tab\tand line\nend, é, 日本", "tab\tand line\nend, é, 日本"),
    ],
    ids=["escape", "bidi", "C1", "surrogate", "return", "plain"],
)
def test_controls_are_spelled_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_an_error_is_one_line_of_bounded_length() -> None:
    assert format_error_line("a\n  b\x1b") == "a b\\x1b"
    line = format_error_line("begin " + "x" * 9000 + " write it so")
    assert len(line) < LONGEST_ERROR + 10
    assert line.startswith("begin") and line.endswith("write it so")
