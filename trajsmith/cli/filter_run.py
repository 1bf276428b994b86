"""`trajsmith filter`: a dataset of the trajectories that pass bounds on rewards and verdicts."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import note_unfinished, out
from trajsmith.cli.export import show_written
from trajsmith.records import InputError


def filter_run(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, for example runs/quickstart.")],
    target: Annotated[Path, typer.Option("--out", help="Folder of the dataset that is written.")],
    bounds: Annotated[
        list[str] | None,
        typer.Option("--min", help="Lowest value of a reward: --min composite=0.8. May be repeated; all must hold."),
    ] = None,
    verdicts: Annotated[
        list[str] | None, typer.Option("--verdict", help="Verdict that passes; may be repeated. Default: completed.")
    ] = None,
    format_name: Annotated[str, typer.Option("--format", help="Format; export --formats lists them.")] = "trl",
) -> None:
    """Write the trajectories of a run that pass as a dataset, and count what was dropped by reason.

    Every play that passes is written, several of one task, too; only the best one of each is in the dataset that
    trajsmith export writes.

    trajsmith filter runs/quickstart --min composite=0.8 --verdict completed --out data/best
    """
    from trajsmith import export_dataset, filter_trajectories, load_run
    from trajsmith.pipeline.progress import open_progress

    run = load_run(directory)
    chosen = filter_trajectories(run, min=dict(map(_parse_bound, bounds or ())), verdict=verdicts or ("completed",))
    note_unfinished(run.directory)
    with open_progress() as progress:
        written = export_dataset(run, format_name, target, records=chosen, progress=progress)
    show_written(written)
    for reason, number in chosen.dropped.most_common():
        out.print(f"  dropped: {reason}: {number}", markup=False)


def _parse_bound(text: str) -> tuple[str, float]:
    name, sign, value = text.partition("=")
    try:
        if sign:
            return name, float(value)
    except ValueError:
        pass
    raise InputError(f"--min {text}: write it as reward=number, for example --min composite=0.8")
