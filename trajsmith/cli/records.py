"""`trajsmith compress` and `trajsmith show`: how the records of a run are stored, and one of them."""

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from trajsmith.cli.console import out
from trajsmith.records import RunError


def compress(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, for example runs/quickstart.")],
    undo: Annotated[bool, typer.Option("--undo", help="Make the record files plain again.")] = False,
) -> None:
    """Compress the record files of a finished run, without loss; every command reads either form.

    Stopped or killed, the same command goes on. `zstd -dc FILE` prints a compressed file.

    trajsmith compress runs/big
    """
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.record_forms import MIB, compress_run, restore_run
    from trajsmith.pipeline.run_directory import RunDirectory

    run = RunDirectory.open(directory)
    try:
        with open_progress() as progress:
            forms = (restore_run if undo else compress_run)(run, progress)
    except KeyboardInterrupt as stop:
        raise RunError("stopped; nothing is lost: the same command goes on") from stop
    table = Table("file", "records, MiB", "stored, MiB", "ratio")
    for column in table.columns[1:]:
        column.justify = "right"
    for form in forms:
        ratio = f"{form.plain / form.stored:.1f}" if form.stored else ""
        table.add_row(form.name, f"{form.plain / MIB:.1f}", f"{form.stored / MIB:.1f}", ratio)
    out.print(table)


def show(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or hub:owner/name.")],
    names: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Ids of chains, tasks, trajectories or verdicts.")
    ],
    line: Annotated[bool, typer.Option("--line", help="One line for each record, as it is stored.")] = False,
) -> None:
    """Print records of a run as JSON, found by their ids in milliseconds, however large the run is.

    trajsmith show runs/quickstart traj_e2b0c6c7f5a1d3b4
    """
    from trajsmith.pipeline.record_search import find_records

    for record in find_records(directory, names):
        data = record.to_line().rstrip(b"\n")
        typer.echo(data if line else orjson.dumps(orjson.loads(data), option=orjson.OPT_INDENT_2))
