"""Terminal and JSON files of the commands."""

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from trajsmith.records import ensure_writable, escape_controls, write_whole_file

if TYPE_CHECKING:
    from trajsmith.pipeline.run_directory import RunDirectory

Result = TypeVar("Result")


class _Escaped:
    """Something printable whose text a terminal shows and never obeys; styles and cursor movements of Rich stay."""

    def __init__(self, inner: ConsoleRenderable) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else Segment(escape_controls(segment.text), segment.style)


class EscapingHook(RenderHook):
    """Tools, environments and models choose names, results and errors: none of them may move the cursor."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Escaped(one) for one in renderables]


out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
for _console in (out, err):
    _console.push_render_hook(EscapingHook())


def run_async(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end; asyncio is imported only by commands that need it."""
    import asyncio

    return asyncio.run(work)


def print_line(text: str) -> None:
    """Print a line as it is: no markup, not wrapped."""
    out.print(text, markup=False, soft_wrap=True)


def print_note(text: str) -> None:
    """Print a line on standard error as it is: no markup, not wrapped."""
    err.print(text, markup=False, soft_wrap=True)


def note_unfinished(run: "RunDirectory") -> None:
    """Print a line on standard error about a run that was stopped; what a command shows of it is only a part."""
    from trajsmith.pipeline.run_directory import describe_unfinished

    if note := describe_unfinished(run):
        print_note(f"note: {note}")


def write_json(target: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all; create its folder where it is missing.

    Raises:
        InputError: Nothing can be written there.
        RunError: It cannot be written.
    """
    data = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole_file(ensure_writable(target, make=True), data)
