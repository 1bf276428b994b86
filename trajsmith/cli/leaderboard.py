"""`trajsmith leaderboard`: results of several models and benchmarks as one table."""

from pathlib import Path
from typing import Annotated

import typer

from trajsmith.cli.console import out, print_line


def leaderboard(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that trajsmith bench wrote.")],
    target: Annotated[Path | None, typer.Option("--out", help="File of the table: .md, .csv or .json.")] = None,
    bfcl: Annotated[
        Path | None, typer.Option("--bfcl", help="Folder for BFCL's own result files of the folders of bfcl.")
    ] = None,
) -> None:
    """Print the scores of several models and benchmarks as one table, with 95 % intervals and numbers of plays.

    A column is a category of a benchmark; another version, user or judge is another column. Models are ordered by their
    mean over the columns that all of them have. For example: trajsmith leaderboard runs/bfcl-* --out scores.md
    """
    from rich.table import Table

    from trajsmith.evals import build_leaderboard, export_bfcl, format_cell, read_bench_results, render_leaderboard
    from trajsmith.records import InputError, ensure_writable, write_whole_file

    results = [read_bench_results(folder) for folder in folders]
    ranking = build_leaderboard(results)
    if target is not None:
        text = render_leaderboard(ranking, target.suffix)
        write_whole_file(ensure_writable(target, make=True), text.encode())
    table = Table("column", *ranking.rows)
    for column in ranking.columns:
        table.add_row(column, *(format_cell(cells.get(column)) for cells in ranking.rows.values()))
    out.print(table)
    if len(ranking.rows) > 1 and not ranking.shared:
        print_line("no column is common to all models: they cannot be ordered")
    if target is not None:
        print_line(f"table: {target}")
    if bfcl is not None:
        chosen = [folder for folder, one in zip(folders, results, strict=True) if one.suite == "bfcl"]
        if not chosen:
            raise InputError("--bfcl: none of these folders holds results of bfcl")
        files = [file for folder in chosen for file in export_bfcl(folder, bfcl)]
        print_line(f"{len(files)} result files of BFCL: {bfcl}")
