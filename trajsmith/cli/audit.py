"""`trajsmith audit`: faults in the dialogues of a run, and the sharpness of suites of tasks that others made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from trajsmith.cli.console import note_unfinished, out, print_line, write_json
from trajsmith.records import InputError

if TYPE_CHECKING:
    from trajsmith.pipeline.dialogue_audit import AuditReport
    from trajsmith.pipeline.suite_audit import SuiteAudit

SHOWN_TEXT = 240
MUTANTS = 6


def audit_dialogues_or_suites(
    directory: Annotated[
        Path | None, typer.Argument(metavar="RUN", help="Run directory, for example runs/quickstart.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Audit rejected dialogues, too.")] = False,
    examples: Annotated[int, typer.Option("--examples", min=0, help="Examples to print of each kind of fault.")] = 1,
    target: Annotated[Path | None, typer.Option("--json", help="File for all counts, figures and examples.")] = None,
    tau2: Annotated[Path | None, typer.Option("--tau2", help="Checkout of tau2-bench whose tasks are audited.")] = None,
    domains: Annotated[
        list[str] | None,
        typer.Option("--domain", help="Domain of --tau2, or DOMAIN:FILE of its tasks; all if left out."),
    ] = None,
    harbor: Annotated[Path | None, typer.Option("--harbor", help="Folder of Harbor tasks that are audited.")] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option("--verifiers", metavar="NAME", help="Installed environment of verifiers whose tasks are audited."),
    ] = None,
    urls: Annotated[
        list[str] | None,
        typer.Option("--openenv", metavar="URL", help="Running OpenEnv server whose tasks are audited."),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option("--gold", help="Gold plays for --verifiers and --openenv: a run, or a file of plays by task."),
    ] = None,
    passes: Annotated[
        float, typer.Option("--passes", help="Reward from which a play of --verifiers or --openenv passes.")
    ] = 1.0,
    mutants: Annotated[int, typer.Option("--mutants", min=0, help="Wrong plays of each task of a suite.")] = MUTANTS,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first tasks of each suite.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the choice of wrong plays.")] = 0,
) -> None:
    """Count faults of language and measure variety in the dialogues of a dataset; nothing in the run is changed.

    trajsmith audit runs/quickstart --examples 3 --json audit.json

    With --tau2, --harbor, --verifiers or --openenv, audit a suite of tasks by its own checks: the gold play must pass,
    the empty play and mutants of the gold play must fail.

    trajsmith audit --tau2 ../tau2-bench --domain retail --json sharpness.json
    """
    from trajsmith.records import ensure_writable

    if (directory is None) == (tau2 is None and harbor is None and not environments and not urls):
        raise InputError(
            "name what is audited: either a run directory, or suites by --tau2, --harbor, --verifiers and --openenv"
        )
    if domains and tau2 is None:
        raise InputError("--domain chooses among the domains of --tau2")
    if gold is not None and not environments and not urls:
        raise InputError("--gold names gold plays for --verifiers and --openenv; other suites bring theirs")
    if target is not None:
        ensure_writable(target, make=True)
    if directory is not None:
        _audit_run(directory, everything, examples, target)
        return
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.suite_audit import audit_live_suites, audit_suites

    with open_progress() as progress:
        audits = audit_suites(tau2, domains or [], harbor, mutants, limit, seed, progress)
        live = (environments or [], urls or [], gold)
        audits += audit_live_suites(*live, mutants, limit, seed, passes, progress)
    for table in build_suite_tables(audits):
        out.print(table)
    for audit in audits:
        for reason, count in audit.reasons.most_common():
            print_line(f"{audit.suite}: {reason}: {count}")
            for example in audit.examples[reason][:examples]:
                print_line(f"  {example[:SHOWN_TEXT]}")
    if target is not None:
        write_json(target, [audit.as_json() for audit in audits])
        print_line(f"written: {target}")


def build_suite_tables(audits: "list[SuiteAudit]") -> list[Table]:
    """Return one table by suite, one by kind of wrong play."""
    by_suite = _right_aligned(
        "suite", "tasks", "played", "gold passes", "empty play fails", "mutants", "caught", "share"
    )
    by_kind = _right_aligned("suite", "kind of mutant", "made", "caught", "share")
    for audit in audits:
        suite, wrong, caught = escape(audit.suite), audit.mutants.total(), audit.caught.total()
        figures = (audit.tasks, audit.played, audit.gold_passes, audit.empty_fails, wrong, caught)
        by_suite.add_row(suite, *map(str, figures), _share(caught, wrong))
        for kind, number in sorted(audit.mutants.items()):
            by_kind.add_row(suite, kind, str(number), str(audit.caught[kind]), _share(audit.caught[kind], number))
    return [by_suite, by_kind] if by_kind.rows else [by_suite]


def _right_aligned(*columns: str) -> Table:
    table = Table(*columns)
    for column in table.columns:
        if column.header not in ("suite", "kind of mutant"):
            column.justify = "right"
    return table


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _audit_run(directory: Path, everything: bool, examples: int, target: Path | None) -> None:
    """Audit the dialogues of a run."""
    from trajsmith.pipeline.dialogue_audit import audit_dialogues
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.run_directory import RunDirectory

    run = RunDirectory.open(directory)
    note_unfinished(run)
    with open_progress() as progress:
        report = audit_dialogues(run, everything, progress)
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
