"""`trajsmith env gen`: environments from documents, tool lists and tables, without a model."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from trajectory import InputError, RunError

if TYPE_CHECKING:
    from envgen.generate import Blueprint, Made
    from envgen.generate.tool_lists import ToolList

out_ = Console(highlight=False)
SHOWN = 8


def gen(
    out: Annotated[Path, typer.Option("--out", help="Directory that the environment's folder is made in.")],
    from_openapi: Annotated[Path | None, typer.Option("--from-openapi", help="An OpenAPI document (3.0, 3.1).")] = None,
    from_mcp: Annotated[
        str | None,
        typer.Option("--from-mcp", help="A tool list (JSON or JSON Lines), FILE or FILE:SERVER; or RUN.yaml:NAME."),
    ] = None,
    from_tables: Annotated[
        Path | None,
        typer.Option("--from-tables", help="CSV, JSON, JSON Lines or SQLite: a file, or a directory of them."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the environment.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the examination.")] = 0,
) -> None:
    """Make an environment from a source, and keep it if its tests pass and the doctor gives at least 0.9.

    Exit code 1 if it is rejected: its files are in OUT/rejected with the reasons. A killed run goes on where it was.
    """
    from envgen.generate import make

    made = make(_reader(from_openapi, from_mcp, from_tables), out, name, seed)
    _tell(made)
    if not made.accepted:
        raise RunError(f"{made.name} is rejected: {made.reasons[0]} (kept in {made.directory})")


def _reader(openapi: Path | None, mcp: str | None, tables: Path | None) -> "Callable[[], Blueprint]":
    if sum(given is not None for given in (openapi, mcp, tables)) != 1:
        raise InputError("give exactly one of --from-openapi, --from-mcp, --from-tables")
    if openapi is not None:
        from envgen.generate.from_openapi import read_openapi

        return lambda: read_openapi(openapi)
    if tables is not None:
        from envgen.generate.from_tables import read_tables

        return lambda: read_tables(tables)
    from envgen.generate.from_mcp import read_mcp

    return lambda: read_mcp(_tool_list(mcp or ""))


def _tool_list(reference: str) -> "ToolList":
    """A tool list from a file, or from a server that a run's configuration names."""
    from envgen.generate.tool_lists import ToolList, read_tool_list

    if Path(reference.partition(":")[0]).suffix not in (".yaml", ".yml"):
        return read_tool_list(reference)
    from trajsmith.naming import named_source

    source = named_source(reference)
    spec = asyncio.run(source.spec())
    tools = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
         "output_schema": tool.output_schema}
        for tool in spec.tools
    ]  # fmt: skip
    return ToolList(spec.name, tools)


def _tell(made: "Made") -> None:
    from envgen.generate import Blueprint

    blueprint = Blueprint.model_validate_json((made.directory / "blueprint.json").read_bytes())
    verdict = "accepted" if made.accepted else "rejected"
    score = "no score" if made.score is None else f"{made.score:.2f}"
    out_.print(f"{made.name}: {verdict}, doctor {score}, tests: {made.tests}", markup=False)
    out_.print(
        f"{made.entities} entities, {made.tools} tools, {made.left_out} left out, {made.seconds} s", markup=False
    )
    for one in blueprint.left_out[:SHOWN]:
        out_.print(f"left out: {one.what}: {one.reason}", markup=False, soft_wrap=True)
    if len(blueprint.left_out) > SHOWN:
        out_.print(
            f"{len(blueprint.left_out) - SHOWN} more are listed in {made.directory / 'blueprint.json'}", markup=False
        )
    for reason in made.reasons:
        out_.print(f"reason: {reason}", markup=False, soft_wrap=True)
    if made.accepted:
        out_.print(f"use it: - python: {made.directory / (made.name + '.py')}", markup=False, soft_wrap=True)
