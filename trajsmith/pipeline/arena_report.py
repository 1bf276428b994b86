"""Results of an arena: `arena.json` for programs and `arena.html` for people."""

from pathlib import Path

import orjson

from trajsmith.evals import Attribution
from trajsmith.evals.round_comparison import GroupChange
from trajsmith.export import render_page
from trajsmith.records import FrozenModel, write_whole_file

RESULTS, PAGE = "arena.json", "arena.html"


class RoundReport(FrozenModel):
    """One round."""

    number: int
    model: str
    """Model that the round trained on targeted rows."""
    says: str
    """The diagnosis in a sentence."""
    unserved: tuple[str, ...] = ()
    """Weak groups that no choice of chains serves."""
    groups: tuple[GroupChange, ...]
    gained: bool
    """The weak groups gained more than the stop rule asks for."""


class ArenaReport(FrozenModel):
    """All finished rounds."""

    name: str
    model: str
    """The model of the last round that gained, at first the one that the arena began with."""
    rows: int
    """Training rows of a round in each arm."""
    rounds: tuple[RoundReport, ...] = ()
    stopped: str = ""
    """Why the arena ended before its last round."""
    attribution: Attribution | None = None
    """Which rows moved which tasks; None without a control arm."""


def write_report(report: ArenaReport, out: Path) -> None:
    """Write `arena.json` and `arena.html`.

    Raises:
        RunError: They cannot be written.
    """
    data = orjson.dumps(report.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole_file(out / RESULTS, data)
    write_whole_file(out / PAGE, render_page("arena.html.j2", arena=report).encode())
