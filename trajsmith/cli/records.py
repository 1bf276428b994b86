"""`trajsmith compress`, `copy` and `show`: how the records of a run are stored, where, and one of them."""

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line
from trajsmith.records import InputError, RunError


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


def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="Run directory, or the address of a copy.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Address of the copy, or a new run directory.")],
) -> None:
    """Copy a run to an object store or back; files that are there already are not copied again.

    Addresses are those of fsspec: s3://bucket/runs/a (package s3fs), gs:// (gcsfs), hf://buckets/owner/name, file:///mnt/a.
    With engine.copy_to a run keeps its copy up to date, and trajsmith resume ADDRESS goes on with it.

    trajsmith copy runs/big s3://bucket/runs/big
    """
    from trajsmith.pipeline.object_storage import find_address
    from trajsmith.pipeline.run_copies import push_copy
    from trajsmith.pipeline.run_directory import RunDirectory

    here, there = find_address(source), find_address(target)
    if (here is None) == (there is None):
        raise InputError("name a run directory and an address such as s3://bucket/runs/a, in either order")
    if there is not None:
        count = push_copy(RunDirectory.open(source), there)
        print_line(f"{there}: {count} files copied")
    elif here is not None:
        fetch(here, Path(target))


def fetch(address: str, directory: Path | None) -> Path:
    """Download a run from its copy and return its directory, by default `runs/NAME`.

    Raises:
        InputError: There is no run, or something else stands in the directory.
    """
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.pipeline.run_copies import fetch_copy

    target = directory or Path("runs") / address.rstrip("/").rsplit("/", 1)[-1]
    stood = target.exists()
    with open_progress() as progress:
        path = fetch_copy(address, target, progress)
    print_line(f"{path} is the run of {address}" + (", and stays as it is" if stood else ""))
    return path


def fetch_named(directory: Path | None, option: Path | None) -> tuple[Path | None, Path | None]:
    """Return the directory that a command names as argument or option; the argument is downloaded if an address."""
    from trajsmith.pipeline.object_storage import find_address

    address = find_address(directory) if directory is not None else None
    return (directory, option) if address is None else (fetch(address, option), None)
