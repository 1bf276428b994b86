"""`trajsmith diagnose`: in which groups of tasks a model fails, and how."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line, run_async
from trajsmith.records import InputError, ensure_writable


def diagnose(
    evaluation: Annotated[
        Path, typer.Argument(metavar="EVAL", help="Folder that trajsmith eval, bench, run or import wrote.")
    ],
    target: Annotated[Path, typer.Option("--out", help="Folder of diagnosis.json and diagnosis.html.")],
    against: Annotated[
        Path | None, typer.Option("--against", help="Earlier evaluation, to see which groups changed.")
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="Model that reads failed conversations: a folder, or a name at --base-url.")
    ] = "",
    base_url: Annotated[str, typer.Option("--base-url", help="OpenAI-compatible endpoint of that model.")] = "",
    traces: Annotated[int, typer.Option("--traces", min=1, help="Failed conversations that it reads, at most.")] = 40,
) -> None:
    """Find the groups of tasks in which a model fails more often than chance explains, with the first wrong steps.

    Groups are environments, tools, pairs of consecutive tools, skills, variants and lengths. A group is named only if
    the other named groups do not explain its failures. With --model, a model also reads failed conversations and names
    causes, which execution confirms or refutes. For example: trajsmith diagnose runs/eval-qwen --out runs/why
    """
    from rich.table import Table

    from trajsmith.pipeline.diagnosis import CauseSettings, add_causes, diagnose_folders, write_diagnosis, write_plan
    from trajsmith.pipeline.progress import open_progress

    if base_url and not model:
        raise InputError("--base-url is the endpoint of --model: name the model, too")
    if not model.isprintable():
        raise InputError(f"--model {model!a}: a model's name has printable letters only")
    diagnosis = diagnose_folders(evaluation, against)
    if model:
        ensure_writable(target / "diagnosis.html", make=True)
        settings = CauseSettings(model=model, base_url=base_url, traces=traces)
        with open_progress() as progress:
            diagnosis = run_async(add_causes(diagnosis, evaluation, target, settings, progress))
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
    for cause in diagnosis.causes:
        where = f" at {cause.tool}" if cause.tool else ""
        shares = f"{cause.confirmed} confirmed, {cause.refuted} refuted, {cause.undecided} undecided"
        print_line(f"{cause.verdict}: {cause.kind}{where}, named {cause.readings} times: {shares}")
    plan = write_plan(diagnosis, evaluation, target)
    if plan is not None:
        print_line(f"make data for these groups: trajsmith run CONFIG --plan {plan}")
        if any(group.dimension == "environment" for group in diagnosis.named):
            print_line(f"make environments like the weak ones: trajsmith env gen --from-plan {plan} --config CONFIG")
    print_line(f"open {page} in a browser")
