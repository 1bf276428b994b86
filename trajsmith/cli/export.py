"""`trajsmith export`: the dataset again, other formats, or a look at what the loss sees."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from trajsmith.cli.console import out, print_line
from trajsmith.records import InputError, RunError, suggest_names

if TYPE_CHECKING:
    from trajsmith.export import MultiFormatWriter
    from trajsmith.pipeline.format_export import Include
    from trajsmith.pipeline.run_directory import RunDirectory

HARBOR = "harbor"
"""Format that is a folder per task."""
HUB_TRACES = "hub_traces"
"""Format that is a file per session."""
Formats = Annotated[
    list[str] | None, typer.Option("--format", help="Write only this format. May be repeated; --formats lists them.")
]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for --format, in place of RUN/exports/NAME.")]
Window = Annotated[
    int | None, typer.Option("--window", min=1, help="Assistant turns of history in per_turn and per_step rows.")
]
Preview = Annotated[
    bool, typer.Option("--preview", help="Show what is in the loss with the template of --model; check every row.")
]
Model = Annotated[str, typer.Option("--model", help="Model folder or name, for --preview.")]
Rows = Annotated[int, typer.Option("--rows", min=0, help="Rows that --preview shows; all are checked.")]
Page = Annotated[Path | None, typer.Option("--html", help="Also write the preview as HTML.")]
IncludeOption = Annotated[
    str, typer.Option("--include", help="accepted, rejected or all; rejected rows have scores and reasons.")
]
MaxLength = Annotated[int | None, typer.Option("--max-length", min=1, help="The trainer's max_length, for --preview.")]


def show_formats() -> None:
    """Every format with its one line."""

    from trajsmith.export import FORMATS
    from trajsmith.pipeline.task_packages import FORMS

    table = Table("format", "rows", title=None)
    for name, exporter in FORMATS.load_all().items():
        table.add_row(name, exporter.about)
    table.add_row(HARBOR, "a folder of Harbor tasks: MCP server with the user, solution, replay and checks as the test")
    table.add_row(
        HUB_TRACES, "a folder for the trace viewer of the Hub: a file per session, in its session trace format"
    )
    for name, form in FORMS.items():
        table.add_row(name, form.about)
    out.print(table)


def write_folder_formats(run: "RunDirectory", names: list[str] | None, target: Path | None) -> list[str] | None:
    """Write the formats that have no rows, and return the other formats; None where none was named.

    Raises:
        InputError: One of the formats is unknown; nothing is written.
    """
    if names is None:
        return None
    from trajsmith.export import FORMATS
    from trajsmith.pipeline.task_packages import FORMS

    folder_formats = (HARBOR, HUB_TRACES, *FORMS)
    chosen, known = list(dict.fromkeys(names)), [*FORMATS.names(), *folder_formats]
    for name in chosen:
        if name not in known:
            hint = suggest_names(name, known)
            close = f" ({hint})" if hint else ""
            raise InputError(f"no format named {name!r}{close}; there are: {', '.join(known)}")
    for name in chosen:
        if name in folder_formats:
            folder = run.file(f"exports/{name}") if target is None else target / name if len(chosen) > 1 else target
            _write_folder(run, name, folder)
    return [name for name in chosen if name not in folder_formats]


def _write_folder(run: "RunDirectory", name: str, folder: Path) -> None:
    unit = "tasks"
    if name == HUB_TRACES:
        from trajsmith.pipeline.trace_export import WRITTEN, write_session_folder

        counts, place, unit = write_session_folder(run, folder), folder, "sessions"
    elif name == HARBOR:
        from trajsmith.pipeline.harbor_tasks import TASKS_FOLDER, WRITTEN, write_harbor_tasks

        counts, place = write_harbor_tasks(run, folder), folder / TASKS_FOLDER
    else:
        from trajsmith.pipeline.task_packages import WRITTEN, write_task_package

        counts, place = write_task_package(run, name, folder), folder
    print_line(f"{name}: {counts.pop(WRITTEN)} {unit} in {place}")
    for reason, number in counts.most_common():
        out.print(f"  left out: {reason}: {number}", markup=False)


def show_written(matrix: "MultiFormatWriter") -> None:
    """Print the files that were written and the formats that were refused."""
    for name, writer in matrix.writers.items():
        counts = ", ".join(f"{number} {split}" for split, number in writer.splits.items())
        print_line(f"{name}: {counts} rows in {writer.directory}")
        for reason, number in matrix.dropped[name].most_common():
            out.print(f"  refused: {reason}: {number}", markup=False)


def preview_mask(folder: Path, model: str, rows: int, page: Path | None, max_length: int | None) -> None:
    """Show rows as a trainer sees them, and refuse those that it would damage.

    Raises:
        InputError: No model is named, or model or dataset cannot be used.
        RunError: Rows are refused; each reason is printed with its first row.
    """
    from trajsmith.pipeline.mask_preview import preview_rows, render_masked_row, write_page

    if not model:
        raise InputError("--preview needs --model: the model whose chat template the rows will be trained with")
    looked = preview_rows(folder, model, rows, max_length)
    for masked in looked.shown:
        out.print(f"{masked.id}: {masked.trained} of {masked.tokens} tokens in the loss", markup=False)
        out.print(render_masked_row(masked), soft_wrap=True)
    for name, value in looked.facts():
        out.print(f"{name}: {value}", markup=False)
    for reason, number in looked.refused.most_common():
        print_line(f"refused: {reason}: {number} (first {looked.examples[reason]})")
    if page:
        write_page(looked, model, page)
        print_line(f"open {page} in a browser")
    if looked.refused:
        raise RunError(f"{sum(looked.refused.values())} rows would be damaged in training; see the reasons above")


def parse_include(text: str) -> "Include":
    """Return what `--include` names.

    Raises:
        InputError: It is none of the three.
    """
    from trajsmith.pipeline.format_export import ACCEPTED

    for choice in ACCEPTED:
        if choice == text:
            return choice
    raise InputError(f"--include {text}: it is one of {', '.join(ACCEPTED)}")


def choose_formats(names: list[str] | None, include: "Include") -> list[str] | None:
    """Return the formats to write: rejected rows go into their own format where none is named."""
    from trajsmith.pipeline.format_export import JUDGED

    return [JUDGED] if include != "accepted" and not names else names


def check_options(names: list[str] | None, target: Path | None, window: int | None) -> None:
    """Refuse options that would do nothing.

    Raises:
        InputError: `--out` or `--window` without `--format`.
    """
    if not names and (target or window):
        raise InputError("--out and --window go with --format NAME, for example: export RUN --format per_step")
