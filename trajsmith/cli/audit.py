"""`trajsmith audit`: what a careful reader would find wrong in the dialogues of a run, counted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out, write_json

if TYPE_CHECKING:
    from trajsmith.pipeline.dialogue_audit import AuditReport

SHOWN_TEXT = 240


def audit_run(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, for example runs/quickstart.")],
    everything: Annotated[bool, typer.Option("--all", help="Audit rejected dialogues, too.")] = False,
    examples: Annotated[int, typer.Option("--examples", min=0, help="Examples to print of each kind of fault.")] = 1,
    target: Annotated[Path | None, typer.Option("--json", help="File for all counts, figures and examples.")] = None,
) -> None:
    """Count faults of language and measure variety in the dialogues of a dataset; nothing in the run is changed.

    trajsmith audit runs/quickstart --examples 3 --json audit.json
    """
    from trajsmith.pipeline.dialogue_audit import audit_dialogues
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.records import ensure_writable

    if target is not None:
        ensure_writable(target, make=True)

    with open_progress() as progress:
        report = audit_dialogues(RunDirectory.open(directory), everything, progress)
    out.print(_build_fault_table(report))
    out.print(_build_variety_table(report))
    for kind, shown in sorted(report.examples.items()):
        for name, fault, text in shown[:examples]:
            out.print(f"{kind}: {fault.detail!r} in {name}, message {fault.message}:", markup=False)
            out.print(f"  {text[:SHOWN_TEXT]}", markup=False)
    if target is not None:
        write_json(target, report.as_json())
        out.print(f"written: {target}", markup=False)


def _build_fault_table(report: "AuditReport") -> Table:
    table = Table("fault", "count", "dialogues", title=f"{report.rows} dialogues")
    for kind, count in report.faults.items():
        table.add_row(kind, str(count), str(report.faulty_rows[kind]))
    return table


def _build_variety_table(report: "AuditReport") -> Table:
    table = Table("environment", "speaker", "distinct-3", "shared skeletons", title="variety, values masked")
    for name, speakers in report.variety.measure().items():
        for speaker, figures in speakers.items():
            distinct = f"{figures['distinct_3']:.3f}" if "distinct_3" in figures else ""
            table.add_row(name, speaker, distinct, f"{figures['shared_skeletons']:.1%}")
    return table
