"""`trajsmith diagnose`: in which groups of tasks a model fails, and how."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line


def diagnose(
    evaluation: Annotated[
        Path, typer.Argument(metavar="EVAL", help="Folder that trajsmith eval, bench, run or import wrote.")
    ],
    target: Annotated[Path, typer.Option("--out", help="Folder of diagnosis.json and diagnosis.html.")],
    against: Annotated[
        Path | None, typer.Option("--against", help="Earlier evaluation, to see which groups changed.")
    ] = None,
) -> None:
    """Find the groups of tasks in which a model fails more often than chance explains, with the first wrong steps.

    Groups are environments, tools, pairs of consecutive tools, skills, variants and lengths. A group is named only if
    the other named groups do not explain its failures. For example: trajsmith diagnose runs/eval-qwen --out runs/why
    """
    from rich.table import Table

    from trajsmith.pipeline.diagnosis import diagnose_folders, write_diagnosis, write_plan

    diagnosis = diagnose_folders(evaluation, against)
    page = write_diagnosis(diagnosis, target)
    print_line(diagnosis.says)
    if diagnosis.named:
        table = Table("weak group", "of", "failed", "95 %", "elsewhere", "first wrong steps")
        for group in diagnosis.named:
            kinds = ", ".join(f"{kind} {number}" for kind, number in list(group.kinds.items())[:3])
            interval = f"{100 * group.low:.0f} to {100 * group.high:.0f}"
            share = f"{group.failures} of {group.episodes}"
            table.add_row(group.name, group.dimension, share, interval, f"{100 * group.elsewhere:.0f} %", kinds)
        out.print(table)
    changed = [row for row in diagnosis.comparisons if row.verdict != "no difference shown"]
    for row in changed:
        print_line(f"{row.verdict}: {row.dimension} {row.name}: {100 * row.before:.0f} % to {100 * row.after:.0f} %")
    if diagnosis.against and not changed:
        print_line(f"no group differs from {diagnosis.against} more than chance explains")
    plan = write_plan(diagnosis, evaluation, target)
    if plan is not None:
        print_line(f"make data for these groups: trajsmith run CONFIG --plan {plan}")
    print_line(f"open {page} in a browser")
