"""`trajsmith run --shard` and `trajsmith merge`: a run in parts, for any scheduler."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line
from trajsmith.records import InputError, RunError

Shard = Annotated[
    str | None, typer.Option("--shard", metavar="I/N", help="Do only this part of the chains, for example 3/8.")
]


def run_shard(config: Path, overrides: list[str], directory: Path | None, text: str, fresh: bool) -> None:
    """Run one shard, or go on with it: a scheduler starts a task that was preempted with the same command.

    Raises:
        InputError: The shard cannot be read, or its directory holds another run.
        RunError: The run cannot go on.
    """
    from trajsmith.api import runs
    from trajsmith.pipeline.config import load_config
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.shard_range import ShardRange

    shard = ShardRange.parse(text)
    if directory is not None and ":/" in str(directory):  # an address: the configuration reads it
        overrides, directory = [*overrides, f"run={directory}"], None
    whole = load_config(config, overrides, must_exist=True)
    path = directory or whole.run.with_name(f"{whole.run.name}-{shard.label}")
    settings = whole.model_copy(update={"shard": str(shard), "run": path})
    with _stopped_by_hand(path), open_progress() as progress:
        if not fresh and (path / "config.yaml").is_file():
            stored = load_config(RunDirectory.open(path).config_path)
            if stored.model_copy(update={"engine": settings.engine, "run": path}) != settings:
                raise InputError(f"{path} holds a run of another configuration: --fresh starts anew")
            finished = runs.resume(path, progress=progress)
        else:
            finished = runs.run(settings, fresh=fresh, progress=progress)
    out.print(f"shard {shard}: {finished.summary.funnel['accepted']} accepted trajectories", markup=False)
    print_line(f"when all {shard.count} are done: trajsmith merge {whole.run}-*-of-{shard.count} --out {whole.run}")


@contextmanager
def _stopped_by_hand(path: Path) -> Iterator[None]:
    """Turn Ctrl-C into the line that says how to go on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise RunError(f"stopped; nothing is lost: the same command goes on with {path}") from stop


def merge(
    directories: Annotated[list[Path], typer.Argument(metavar="RUNS...", help="Run directories of all shards.")],
    target: Annotated[Path, typer.Option("--out", help="Run directory that is written.")],
) -> None:
    """Make one run of all shards of a run, and write its dataset, card, report and summary.

    The records are those of a run without shards, byte for byte. Quotas, near-duplicates and decontamination look at
    all rows; rows that quotas still miss are topped up here.

    trajsmith merge runs/quickstart-*-of-8 --out runs/quickstart
    """
    from trajsmith.api import runs
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.shards import merge_runs

    with open_progress() as progress:
        merged = merge_runs(directories, target, progress)
        finished = runs.resume(merged.path, progress=progress)
    summary = finished.summary
    out.print(f"{len(directories)} shards: {summary.funnel['accepted']} accepted trajectories", markup=False)
    print_line(f"dataset: {finished.path / 'dataset'}   report: {finished.path / 'report.html'}")
