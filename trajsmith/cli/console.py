"""Terminal and JSON files of the commands."""

from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from trajsmith.records.storage import ensure_writable, write_whole_file

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_line(text: str) -> None:
    """Print a line as it is: no markup, not wrapped."""
    out.print(text, markup=False, soft_wrap=True)


def write_json(target: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all; create its folder where it is missing.

    Raises:
        InputError: Nothing can be written there.
        RunError: It cannot be written.
    """
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole_file(ensure_writable(target, make=True), data)
