"""`trajsmith graph`: build a tool graph, look at it, print it as JSON Lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from environments.library import library_environment, library_names
from toolgraph import GraphSettings, ToolGraph, build_graph
from toolgraph.embed import embedding_similarity
from trajectory import InputError, ToolSpec, first_fault

app = typer.Typer(help="Build a tool graph and look at it.", no_args_is_help=True)
out = Console(highlight=False)
GraphPath = Annotated[Path, typer.Argument(help="Graph file, for example runs/quickstart/graph.json.")]


@app.command()
def build(
    target: Annotated[Path, typer.Option("--out", help="Graph file to write.")],
    tools: Annotated[
        Path | None, typer.Option("--tools", help="JSON Lines, one MCP tool with its `server` a line.")
    ] = None,
    library: Annotated[list[str] | None, typer.Option("--library", help="A bundled environment, or * for all.")] = None,
    embedding: Annotated[str, typer.Option("--embedding", help="Model name or path (extra `embed`).")] = "",
) -> None:
    """Build the graph of a list of tools, or of bundled environments."""
    if (tools is None) == (not library):
        raise InputError("give either --tools FILE.jsonl or --library NAME")
    specs = list(read_tools(tools)) if tools else _library_tools(library or [])
    similarity = embedding_similarity(embedding) if embedding else None
    graph = build_graph(specs, GraphSettings(embedding=embedding), similarity)
    try:
        graph.save(target)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from error
    for finding in graph.findings:
        typer.echo(f"note: {finding}", err=True)
    typer.echo(
        f"{len(graph.tools)} tools, {len(graph.parameters)} parameters, {len(graph.edges)} edges: {target}", err=True
    )


@app.command()
def edges(graph: GraphPath) -> None:
    """Print the edges as JSON Lines."""
    for edge in ToolGraph.load(graph).edges:
        typer.echo(orjson.dumps(edge.as_line()))


@app.command()
def params(graph: GraphPath) -> None:
    """Print every parameter with its kind (internal, external, other) as JSON Lines."""
    for node in ToolGraph.load(graph).parameters:
        line = {"tool": node.tool, "parameter": node.parameter, "kind": node.kind, "evidence": list(node.evidence)}
        typer.echo(orjson.dumps(line))


@app.command()
def show(
    graph: GraphPath,
    tool: Annotated[str | None, typer.Option("--tool", help="Only edges to and from this tool (server.name).")] = None,
) -> None:
    """Show a graph as a table, strongest edges first."""
    loaded = ToolGraph.load(graph)
    found = [edge for edge in loaded.edges if tool is None or tool in (edge.source, edge.target)]
    if tool is not None and tool not in {spec.full_name for spec in loaded.tools}:
        raise InputError(f"{graph} has no tool {tool!r}")
    table = Table("from", "to", "weight", "score", "by", title=f"{len(loaded.tools)} tools, {len(found)} edges")
    for edge in sorted(found, key=lambda edge: (-edge.weight, -edge.score, edge.source, edge.target))[:200]:
        links = ", ".join(f"{link.output} -> {link.input}" for link in edge.links[:2])
        table.add_row(edge.source, edge.target, str(edge.weight), f"{edge.score:.2f}", links.replace("[", "\\["))
    out.print(table)
    if len(found) > 200:
        out.print(f"and {len(found) - 200} more: use --tool, or `trajsmith graph edges`")


def read_tools(path: Path) -> Iterator[ToolSpec]:
    """Tools from JSON Lines.

    Raises:
        InputError: The file is missing, or a line is no tool; the text names the line.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _tool(line, f"{path}:{number}")
    except OSError as error:
        raise InputError(f"tools {path}: {error.strerror}") from error


def _tool(line: bytes, where: str) -> ToolSpec:
    try:
        return ToolSpec.model_validate_json(line)
    except ValidationError as error:
        raise InputError(f"{where}: {first_fault(error)}") from error


def _library_tools(names: list[str]) -> list[ToolSpec]:
    chosen = library_names() if "*" in names else names
    return [tool for name in chosen for tool in library_environment(name).describe().tools]
