"""`trajsmith repair`: failed plays of a run or an evaluation, continued rightly from before their first wrong step."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line
from trajsmith.records import InputError, RunError

if TYPE_CHECKING:
    from trajsmith.records import Summary


def repair(
    directory: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run directory, or folder that trajsmith eval wrote.")
    ],
    target: Annotated[Path, typer.Option("--out", help="Run directory of the repairs.")],
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            help="cut (the wrong step is left out), recover (it stays as context, where it did no harm that stays), "
            "any (recover where possible, else cut).",
        ),
    ] = "any",
    tasks: Annotated[
        Path | None, typer.Option("--run", help="Run whose tasks were evaluated; for a folder of trajsmith eval.")
    ] = None,
) -> None:
    """Cut rejected plays at their first wrong step, go on rightly, and make a run of what comes of it.

    Every repaired play is executed and verified like any other. Only the messages after the cut are learnt: trajsmith
    sft leaves the others out of the loss. Stopped, the same command goes on.

    trajsmith repair runs/quickstart --out runs/repaired
    """
    from trajsmith.api import runs
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.repairs import REPAIR_KINDS, open_repairs

    chosen = next((each for each in REPAIR_KINDS if each == kind), None)
    if chosen is None:
        raise InputError(f"--kind {kind}: there are {', '.join(REPAIR_KINDS)}")
    run = open_repairs(directory, target, chosen, tasks)
    try:
        with open_progress() as progress:
            finished = runs.resume(run.path, progress=progress)
    except KeyboardInterrupt as stop:
        raise RunError("stopped; nothing is lost: the same command goes on") from stop
    show_repairs(finished.summary)
    print_line(f"dataset: {run.file('dataset')}   report: {run.file('report.html')}")


def show_repairs(summary: "Summary") -> None:
    """Print the repairs by mistake and kind, and why the other plays were not repaired; nothing if there are none."""
    if not summary.repairs:
        return
    total = sum(sum(kinds.values()) for kinds in summary.repairs.values())
    table = Table("mistake", "cut", "recover", title=f"{total} of {summary.funnel['failed']} failed plays repaired")
    for mistake, kinds in summary.repairs.items():
        table.add_row(mistake, str(kinds.get("cut", 0)), str(kinds.get("recover", 0)))
    out.print(table)
    for stage in summary.stages:
        for reason, number in stage.dropped.items() if stage.name == "repair" else ():
            out.print(f"not repaired: {reason}: {number}", markup=False)
