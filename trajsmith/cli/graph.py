"""`trajsmith graph`: build a tool graph, look at it, print it as JSON Lines, draw chains from it."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from trajsmith.cli.console import print_line, print_note, run_async
from trajsmith.cli.options import MOST_SEED, WHAT, Sandbox
from trajsmith.records import InputError, ensure_writable, storage_boundary, to_one_line

if TYPE_CHECKING:
    from trajsmith.records import ToolSpec
    from trajsmith.toolgraph.match import Similarity

app = typer.Typer(
    help="Build a tool graph: which tool gives what another needs. Look at it, print it, draw chains from it.",
    no_args_is_help=True,
)
SHOWN = 60
"""Tools that `graph show` lists."""
LARGE = 5_000
"""Tools from which a build says beforehand how long it takes."""
PER_SECOND = 1_500
"""Tools that a build gets through in a second of CPU, about."""
BATCH = 512
"""Texts that a model encodes between two looks at the progress bar."""
GraphPath = Annotated[Path, typer.Argument(help="Graph file, for example runs/quickstart/graph.json.")]
Servers = Annotated[list[str] | None, typer.Option("--server", help="Only this server; may be given again.")]


@app.command()
def build(
    target: Annotated[Path, typer.Option("--out", help="Graph file to write; packed if it ends in .gz.")],
    tools: Annotated[
        Path | None, typer.Option("--tools", help="JSON Lines, one MCP tool a line, or the answer of tools/list.")
    ] = None,
    library: Annotated[list[str] | None, typer.Option("--library", help="A bundled environment, or * for all.")] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", metavar="NAME|FILE|YAML", help=f"One environment, to try its links too. {WHAT}"),
    ] = None,
    embedding: Annotated[
        str, typer.Option("--embedding", help="minilm, bge-m3, qwen3, a name or a path (extra `embed`).")
    ] = "",
    cross_server: Annotated[
        bool, typer.Option("--cross-server/--no-cross-server", help="Look for edges between servers too.")
    ] = True,
    update: Annotated[
        bool, typer.Option("--update", help="Take over from the file at --out what did not change since.")
    ] = False,
    recorded: Annotated[
        list[Path] | None,
        typer.Option("--recorded", help="Conversations or executed calls to learn from; may be given again."),
    ] = None,
    sandbox: Sandbox = None,
) -> None:
    """Build the graph of a list of tools, of bundled environments, or of an environment by executing its calls.

    A line of FILE.jsonl is a tool as MCP lists it:
    {"server": "shop", "name": "get_order", "description": "...", "inputSchema": {...}, "outputSchema": {...}}
    Only the name must be there. A whole answer of MCP's tools/list, and tools as OpenAI writes them, are read too.

    With --environment, values that one tool gives are put into others: those that work where unrelated ones fail prove
    a link, those that never work refute it. With --recorded beside it, recorded tasks are played again, and look-ups
    that they skip are found.

    What is odd about a tool is a note on standard error; the build goes on.
    """
    from trajsmith.pipeline.environment_references import open_named_source
    from trajsmith.pipeline.progress import open_progress
    from trajsmith.toolgraph import GraphSettings, ToolGraph, read_tool_list, update_graph
    from trajsmith.toolgraph.embeddings import build_embedding_similarity
    from trajsmith.toolgraph.evidence import (
        ExecutionSettings,
        GraphEvidence,
        apply_evidence,
        collect_evidence,
        compute_schema_scores,
        mine_recordings,
        read_recordings,
    )

    if bool(tools) + bool(library) + bool(environment) != 1:
        raise InputError("give one of --tools FILE.jsonl, --library NAME and --environment NAME")
    if environment and update:
        raise InputError("--update is for --tools and --library: an environment's calls are made anew each time")
    source = open_named_source(environment, sandbox=sandbox) if environment else None
    if source is not None:
        specs = list(run_async(source.spec()).tools)
    else:
        specs = read_tool_list(tools) if tools else _library_tools(library or [])
    if not specs and tools:
        raise InputError(
            f"tools {tools}: the file is empty; it takes one tool a line, see `trajsmith graph build --help`"
        )
    ensure_writable(target)
    old = ToolGraph.load(target) if update and target.exists() else None
    if len(specs) >= LARGE:
        print_note(f"{len(specs)} tools: about {len(specs) / PER_SECOND:.0f} s on one core")
    similarity = _with_bar(build_embedding_similarity(embedding)) if embedding else None
    settings = GraphSettings(embedding=embedding, cross_server=cross_server)
    calls = [one for path in recorded or () for one in read_recordings(path)]
    graph = update_graph(old, specs, settings, similarity)
    if source is not None:
        scores = compute_schema_scores(specs, settings, similarity)
        with open_progress() as progress, progress.stage("try links, play recorded tasks", len(calls), 0, 0) as bar:
            played = collect_evidence(source, scores, ExecutionSettings(), 0, calls, bar.advance)
            graph = apply_evidence(graph, run_async(played), scores, settings)
    elif calls:
        evidence = GraphEvidence(recorded=mine_recordings(calls, graph.tools))
        scores = compute_schema_scores(specs, settings, similarity, evidence.targets)
        graph = apply_evidence(graph, evidence, scores, settings)
    if old is not None and old.evidence and not graph.evidence:
        print_note("note: what execution and recordings had shown went with the parts that were built anew")
    with storage_boundary(target):
        graph.save(target)
    for finding in graph.findings:
        print_note(f"note: {finding}")
    print_note(f"{len(graph.tools)} tools, {len(graph.parameters)} parameters, {len(graph.edges)} edges: {target}")


def _with_bar(encode: "Similarity") -> "Similarity":
    """An encoder that says how far it is, and keeps what it has when it is stopped."""
    import numpy as np

    from trajsmith.pipeline.progress import open_progress

    def encode_batches(texts: Sequence[str]) -> Any:
        batches = [texts[begin : begin + BATCH] for begin in range(0, len(texts), BATCH)]
        with (
            open_progress() as progress,
            progress.stage(f"encode {len(texts)} texts in batches of {BATCH}", len(batches), 0, 0) as bar,
        ):
            vectors = []
            for batch in batches:
                vectors.append(encode(batch))
                bar.advance()
        return np.concatenate(vectors)

    return encode_batches


@app.command()
def edges(graph: GraphPath) -> None:
    """Print the edges as JSON Lines."""
    from trajsmith.toolgraph import ToolGraph

    _print_lines(edge.as_line() for edge in ToolGraph.load(graph).edges)


@app.command()
def params(graph: GraphPath) -> None:
    """Print every parameter with its kind (internal, external, other) as JSON Lines."""
    from trajsmith.toolgraph import ToolGraph
    from trajsmith.toolgraph.parameter_kinds import list_parameter_lines

    _print_lines(list_parameter_lines(ToolGraph.load(graph).parameters))


@app.command()
def show(
    graph: GraphPath,
    tool: Annotated[
        str | None, typer.Option("--tool", help="All about one tool: server.name, or its name if no other has it.")
    ] = None,
    server: Servers = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page for a browser: pan, zoom, search, click for evidence.")
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--most", min=1, help=f"Most tools: {SHOWN} as text, 3000 drawn together; a larger page draws around one."
        ),
    ] = None,
    why: Annotated[
        tuple[str, str] | None,
        typer.Option("--why", metavar="A B", help="Say why there is an edge from tool A to tool B, or why not."),
    ] = None,
) -> None:
    """Show a graph as text, as a page, or one tool or one edge in words.

    As text, every tool stands with its parameters, their kinds, and who gives them with which weight:
    3 the tool relies on it, 2 it is one way among others, 1 nothing better was found.
    """
    from trajsmith.toolgraph import ToolGraph
    from trajsmith.toolgraph.edge_explanation import explain_edge, find_tool
    from trajsmith.toolgraph.html_page import MOST, select_servers, write_page
    from trajsmith.toolgraph.text_view import render_graph_lines, render_tool_lines

    loaded = ToolGraph.load(graph)
    if why is not None:
        lines: Iterable[str] = explain_edge(loaded, *why)
    elif tool is not None:
        lines = render_tool_lines(loaded, find_tool(loaded, tool))
    elif html is not None:
        page = partial(write_page, loaded, title=graph.stem, servers=server or (), most=most or MOST)
        with storage_boundary(ensure_writable(html)):
            tools, shown = page(html)
        print_note(f"{tools} tools, {shown} edges: open {html} in a browser")
        return
    else:
        lines = render_graph_lines(select_servers(loaded, server or ()), most or SHOWN)
    for line in lines:
        print_line(line)


@app.command()
def export(
    graph: GraphPath,
    target: Annotated[Path, typer.Option("--out", help="File to write: .json for node-link JSON, else GraphML.")],
    server: Servers = None,
) -> None:
    """Write the graph as GraphML, for Gephi, Cytoscape, yEd or networkx, or as typed node-link JSON."""
    from trajsmith.toolgraph import ToolGraph
    from trajsmith.toolgraph.html_page import select_servers
    from trajsmith.toolgraph.networkx_graph import write_graphml, write_node_link

    part = select_servers(ToolGraph.load(graph), server or ())
    with storage_boundary(ensure_writable(target)):
        (write_node_link if target.suffix == ".json" else write_graphml)(part, target)
    print_note(f"{len(part.tools)} nodes, {len(part.edges)} edges: {target}")


@app.command()
def sample(
    graph: GraphPath,
    count: Annotated[int, typer.Option("--count", min=1, max=1_000_000, help="Chains to draw.")] = 10,
    length: Annotated[tuple[int, int], typer.Option("--length", metavar="MIN MAX", help="Tools of a chain.")] = (6, 11),
    servers: Annotated[int, typer.Option("--servers", min=1, help="Most servers of a chain.")] = 1,
    difficulty: Annotated[float | None, typer.Option("--difficulty", min=0, max=1, help="The dial, 0 to 1.")] = None,
    method: Annotated[
        str, typer.Option("--method", help="One that `trajsmith plugins --kind samplers` lists.")
    ] = "topology",
    shape: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting of `sample`: --set weak=0.5 --set writes=0.2. May be repeated."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=MOST_SEED, help="The same seed gives the same chains.")] = 0,
    server: Servers = None,
) -> None:
    """Draw chains from a graph and print them as JSON Lines.

    Every chain of `topology` can be called: what a tool needs and a person cannot know, an earlier tool gives.
    With --servers 3 chains may go across up to three servers; --difficulty turns length, servers and shares.
    """
    from pydantic import ValidationError

    from trajsmith.records import format_first_error
    from trajsmith.toolgraph import SampleSettings, ToolGraph, sample_across
    from trajsmith.toolgraph.html_page import select_servers

    wanted: dict[str, Any] = {"count": count, "length": length, "servers": servers, "method": method}
    wanted |= {"difficulty": difficulty} | dict(_setting(one) for one in shape or ())
    try:
        settings = SampleSettings.model_validate(wanted)
    except ValidationError as error:
        raise InputError(f"sample: {format_first_error(error)}") from error
    part = select_servers(ToolGraph.load(graph), server or ())
    _print_lines(chain.model_dump(mode="json", exclude_none=True) for chain in sample_across(part, settings, seed))


def _setting(text: str) -> tuple[str, Any]:
    import yaml

    from trajsmith.records import compose_yaml

    name, sign, value = text.partition("=")
    if not sign:
        raise InputError(f"--set {text}: write it as name=value, for example weak=0.5")
    try:
        return name, compose_yaml(value, yaml.SafeLoader)[1]
    except yaml.YAMLError as error:
        raise InputError(f"--set {to_one_line(text, 80)}: not valid YAML: {to_one_line(error, 200)}") from error


def _print_lines(lines: Iterable[object]) -> None:
    stream = typer.get_binary_stream("stdout")
    stream.writelines(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
    stream.flush()


def _library_tools(names: list[str]) -> "list[ToolSpec]":
    from trajsmith.environments.library import ENVIRONMENTS

    chosen = ENVIRONMENTS.names() if "*" in names else names
    return [tool for name in chosen for tool in ENVIRONMENTS.get(name).describe().tools]
