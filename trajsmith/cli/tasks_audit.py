"""`trajsmith tasks --audit`: the tables of how the checks of a run's tasks stood their test."""

import functools
import operator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.records import RunError

if TYPE_CHECKING:
    from trajsmith.pipeline.check_audit import AuditCounts
    from trajsmith.pipeline.run_directory import RunDirectory

SHOWN = 10


def audit(run: "RunDirectory", mutants: int, limit: int | None) -> None:
    """Test the checks of a run's tasks and print the tables.

    Raises:
        RunError: Some tasks are weak, or could not be tested.
    """
    from trajsmith.pipeline.check_audit import audit_run
    from trajsmith.pipeline.progress import open_progress

    with open_progress() as progress:
        audits = run_async(audit_run(run, mutants, limit, progress))
    for table in build_audit_tables(audits):
        out.print(table)
    _say_what_went_wrong(audits, run.path)


def build_audit_tables(audits: "dict[str, AuditCounts]") -> list[Table]:
    """One table by environment, one by kind of mutant."""
    by_environment = _table("environment", "tasks", "mutants", "caught", "equivalent", "accepted", "weak")
    rows = {name: one for name, one in audits.items() if one.tasks or one.undecided}
    for name, one in rows.items():
        by_environment.add_row(name, *_figures(one))
    total = functools.reduce(operator.add, audits.values())
    by_environment.add_section()
    by_environment.add_row("all", *_figures(total))
    by_kind = _table("kind of mutant", "made", "caught", "share")
    for kind, generated in sorted(total.mutants.items()):
        by_kind.add_row(kind, str(generated), str(total.caught[kind]), _share(total.caught[kind], generated))
    return [by_environment, by_kind]


def _table(*columns: str) -> Table:
    table = Table(*columns)
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _figures(one: "AuditCounts") -> list[str]:
    generated, caught = one.mutants.total(), one.caught.total()
    shares = (
        str(generated),
        _share(caught, generated),
        str(one.equivalent),
        _share(one.accepted, one.equivalent),
    )
    return [str(one.tasks), *shares, str(len(one.weak))]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _say_what_went_wrong(audits: "dict[str, AuditCounts]", path: Path) -> None:
    total = functools.reduce(operator.add, audits.values())
    for title, entries in (("escaped", total.escaped), ("weak", total.weak), ("not tested", total.undecided)):
        for name, why in entries[:SHOWN]:
            print_line(f"{title}: {name}: {why}")
        if len(entries) > SHOWN:
            out.print(f"{title}: {len(entries) - SHOWN} more")
    if total.weak or total.undecided:
        raise RunError(
            f"{path}: {len(total.weak)} of {total.tasks} tasks are weak, {len(total.undecided)} could not be tested"
        )
