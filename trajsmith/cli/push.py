"""`trajsmith push` and `trajsmith card`: a run's dataset, another format of it, or a model directory, and the Hub."""

import re
from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line
from trajsmith.records import InputError, has_records

SESSIONS = 200
"""Most sessions of `--traces`, if the command does not say."""


def push(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or the folder of a dataset or model.")],
    repo: Annotated[str, typer.Argument(metavar="REPO", help="Repository on the Hub, as owner/name.")],
    format_name: Annotated[str, typer.Option("--format", help="Push RUN/exports/NAME in place of the dataset.")] = "",
    public: Annotated[bool, typer.Option("--public", help="Make a new repository public; it is private else.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be pushed; ask the Hub nothing.")] = False,
    tasks: Annotated[
        bool, typer.Option("--tasks", help="Put the tasks of a run beside its rows, so that hub:REPO can be played.")
    ] = False,
    traces: Annotated[
        bool,
        typer.Option("--traces", help="Put sessions of a run beside its rows, as the configuration `traces`."),
    ] = False,
    sessions: Annotated[
        int | None,
        typer.Option("--sessions", min=1, help="Most sessions of --traces, evenly from the whole run; 200 if unset."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Sign the manifest with a private Ed25519 key (PEM).")
    ] = None,
) -> None:
    """Push to the Hub. Interrupted, the same command goes on with what is missing. The token is HF_TOKEN's."""
    from huggingface_hub import HfApi

    from trajsmith.export.hub import execute_push as carry_out
    from trajsmith.export.hub import plan_push

    folder = find_pushed_folder(source, format_name)
    if tasks:
        _write_tasks(source, folder)
    if sessions and not traces:
        raise InputError("--sessions goes with --traces")
    if traces:
        _write_traces(source, folder, format_name, sessions or SESSIONS)
    if tasks or traces or sign:
        from trajsmith.export import write_manifest

        print_line(f"manifest of {write_manifest(folder, repo, sign)} files{', signed' if sign else ''}")
    api = None if dry_run else HfApi()
    plan = plan_push(folder, repo, api)
    for name in plan.upload:
        print_line(f"upload {name} ({(folder / name).stat().st_size:,} bytes)")
    for name in plan.delete:
        print_line(f"delete {name}")
    kind, files = f"{'public' if public else 'private'} {plan.kind} {repo}", f"{len(plan.upload)} files to upload"
    if api is None:
        most = f"at most {files} ({plan.size:,} bytes)"
        print_line(f"dry run: {kind}: {most}; no request was made to the Hub")
        return
    counts = f"{files} ({plan.size:,} bytes), {len(plan.same)} there already"
    address = carry_out(plan, api, not public)
    print_line(f"{kind}: {counts}: {address}")


def card(
    source: Annotated[Path, typer.Argument(metavar="RUN", help="Run directory, or the folder of a dataset.")],
    format_name: Annotated[str, typer.Option("--format", help="The card of RUN/exports/NAME.")] = "",
    plain: Annotated[bool, typer.Option("--plain", help="The file as it is, with its YAML head.")] = False,
) -> None:
    """Read a dataset's card as people on the Hub will: what is in it, how it was made, how to load it."""
    file = find_pushed_folder(source, format_name) / "README.md"
    if not file.is_file():
        raise InputError(f"{file.parent} has no card: write it with `trajsmith export`")
    text = file.read_text("utf-8")
    if plain:
        print_line(text)
        return
    front = re.match(r"---\n.*?\n---\n", text, re.DOTALL)
    from rich.markdown import Markdown

    out.print(Markdown(text[front.end() :] if front else text))
    print_line(f"card: {file}")


def _write_tasks(source: Path, folder: Path) -> None:
    """Put the tasks of a run into its dataset.

    Raises:
        InputError: The source is no run.
    """
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.task_bundle import write_dataset_tasks

    if folder == source:
        raise InputError(f"--tasks puts the tasks of a run beside its rows, and {source} is no run")
    print_line(f"{write_dataset_tasks(RunDirectory.open(source), folder)} tasks in {folder / 'run'}")


def _write_traces(source: Path, folder: Path, format_name: str, sessions: int) -> None:
    """Put sessions of a run into its dataset.

    Raises:
        InputError: The source is no run, or another format is pushed.
    """
    from trajsmith.pipeline.run_directory import RunDirectory
    from trajsmith.pipeline.trace_export import WRITTEN, write_dataset_traces

    if folder == source or format_name:
        raise InputError(f"--traces puts sessions of a run beside the rows of its dataset, and {folder} is none")
    counts = write_dataset_traces(RunDirectory.open(source), folder, sessions)
    print_line(f"{counts.pop(WRITTEN)} sessions in {folder / 'traces'}")
    for reason, number in counts.most_common():
        print_line(f"  left out: {reason}: {number}")


def find_pushed_folder(source: Path, format_name: str) -> Path:
    """Return the folder to push: the source itself, or the dataset of a run.

    Raises:
        InputError: It is not there.
    """
    is_run = has_records(source / "verdicts.jsonl")
    if format_name and not is_run:
        raise InputError(f"--format names an export of a run, and {source} is no run")
    folder = source / (f"exports/{format_name}" if format_name else "dataset") if is_run else source
    if not folder.is_dir():
        raise InputError(f"nothing at {folder}: write it with `trajsmith export` first")
    return folder
