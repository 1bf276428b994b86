"""`trajsmith compress`, `copy`, `find` and `show`: how the records of a run are stored, where, and some of them."""

from pathlib import Path
from textwrap import shorten
from typing import Annotated

import typer
from rich.markup import escape
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
        text = record.to_line().rstrip(b"\n") if line else record.model_dump_json(exclude_none=True, indent=2)
        typer.echo(text)


def find(
    directory: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or hub:owner/name.")],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT...", help="What user or agent said; all of it, in any case.")
    ] = None,
    environment: Annotated[str, typer.Option("--environment", help="Only dialogues of this environment.")] = "",
    tools: Annotated[
        list[str] | None, typer.Option("--tool", help="Only dialogues in which this tool is called. May be repeated.")
    ] = None,
    outcome: Annotated[
        str, typer.Option("--outcome", help="accepted, rejected, or an outcome such as agent_error.")
    ] = "",
    variant: Annotated[str, typer.Option("--variant", help="Variant of the task: base, refused_call.")] = "",
    reason: Annotated[str, typer.Option("--reason", help="Part of a reason of the verdict.")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, from the first.")] = 20,
    pages: Annotated[
        Path | None, typer.Option("--pages", help="New folder: the dialogues as pages to read in a browser.")
    ] = None,
) -> None:
    """Find dialogues of a run by what was said, called and judged, and print them or write them as pages.

    trajsmith find runs/big "cancel my order" --tool cancel_order --outcome rejected --pages found
    """
    from contextlib import ExitStack
    from itertools import islice

    from trajsmith.export import ConversationBrowser
    from trajsmith.pipeline.dialogue_search import DialogueQuery, find_dialogues

    if pages is not None and pages.exists():
        raise InputError(f"{pages} is there already: name a new folder")
    query = DialogueQuery(tuple(texts or ()), environment, tuple(tools or ()), outcome, variant, reason)
    table = Table("id", "environment", "outcome", "calls", "first request")
    table.columns[0].overflow = "fold"  # an id that is cut finds nothing
    table.columns[0].min_width = len("traj_") + 16
    with ExitStack() as stack:
        browser = pages and stack.enter_context(ConversationBrowser(pages, str(directory), prefix=0, report=""))
        for task, trajectory, verdict in islice(find_dialogues(directory, query), limit):
            if browser:
                browser.add(task, trajectory, verdict)
            request = next((message.content or "" for message in trajectory.messages if message.role == "user"), "")
            result = "accepted" if verdict.accepted else verdict.outcome
            calls = sum(len(message.tool_calls or ()) for message in trajectory.messages)
            table.add_row(trajectory.id, trajectory.environment, result, str(calls), escape(shorten(request, 70)))
        if not table.rows:
            raise RunError("no dialogue has all of that")
    out.print(table)
    if table.row_count == limit:
        print_line(f"stopped after {limit}; --limit finds more")
    print_line(f"open {pages / 'index.html'} in a browser" if pages else f"trajsmith show {directory} ID prints one")


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
