"""The graph as one HTML page: pan, zoom, filter by server, search, click for evidence. No network, no other file."""

from collections.abc import Sequence
from pathlib import Path

import orjson
from msgspec import Struct

from trajsmith.records import InputError, JsonObject, build_page_policy, open_whole_file, template_environment
from trajsmith.toolgraph import storage
from trajsmith.toolgraph.graph import ToolGraph
from trajsmith.toolgraph.index import find_readers
from trajsmith.toolgraph.layout import place_tools
from trajsmith.toolgraph.text_view import suggest_tools

TEMPLATES = Path(__file__).parent / "templates"
MOST = 3000
"""Tools that are drawn together: browsers draw more, but nobody reads it."""
WORDS = 160
"""Characters of a description on the page of a larger graph."""


def write_page(
    graph: ToolGraph, path: Path, title: str, servers: Sequence[str] = (), most: int = MOST
) -> tuple[int, int]:
    """Write the page; gives the numbers of tools and edges on it.

    A graph of more than `most` tools is drawn around one tool at a time, found by the search.

    Raises:
        InputError: An unknown server.
    """
    from jinja2 import FileSystemLoader
    from markupsafe import Markup

    part = select_servers(graph, servers)
    loader = template_environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    loader.globals["page_policy"] = build_page_policy
    page = loader.get_template("graph.html.j2").render(
        title=title,
        data=Markup(orjson.dumps(build_page_data(part, most)).decode().replace("<", "\\u003c")),
        css=Markup((TEMPLATES / "graph.css").read_text("utf-8")),
        js=Markup((TEMPLATES / "graph.js").read_text("utf-8")),
    )
    with open_whole_file(path) as file:
        file.write(page.encode())
    return len(part.tools), len(part.edges)


def select_servers(graph: ToolGraph, servers: Sequence[str]) -> ToolGraph:
    """The part of a graph that lies on these servers; all of it if none are named.

    Raises:
        InputError: The graph has no such server.
    """
    if not servers:
        return graph
    for server in servers:
        if server not in graph.inside:
            near = suggest_tools(server, list(graph.inside)) or f": it has {_some(list(graph.inside))}"
            raise InputError(f"the graph has no server {server!r}{near}")
    tools_by_name = {tool.full_name: tool for tool in graph.tools if tool.server in servers}
    return ToolGraph(
        tools=tuple(tools_by_name.values()),
        parameters=tuple(node for node in graph.parameters if node.tool in tools_by_name),
        edges=tuple(edge for edge in graph.edges if edge.source in tools_by_name and edge.target in tools_by_name),
        evidence=tuple(row for row in graph.evidence if row.source in tools_by_name and row.target in tools_by_name),
    )


def build_page_data(graph: ToolGraph, most: int = MOST) -> JsonObject:
    """Return the data of the page's script: tools with their positions, and the graph's columns."""
    homes = {server: number for number, server in enumerate(graph.inside)}
    number = {tool.full_name: place for place, tool in enumerate(graph.tools)}
    large = len(graph.tools) > most
    if large:
        places, discs = [(0.0, 0.0)] * len(graph.tools), [(0.0, 0.0, 0.0)] * len(homes)
    else:
        places, discs = place_tools(
            [homes[tool.server] for tool in graph.tools],
            [(number[edge.source], number[edge.target]) for edge in graph.edges],
        )
    words = WORDS if large else None
    reads = find_readers(graph.by_name)
    tools = [
        [
            tool.full_name,
            tool.name,
            homes[tool.server],
            tool.description[:words],
            int(tool.full_name not in reads),
            *place,
        ]
        for tool, place in zip(graph.tools, places, strict=True)
    ]
    servers = [[server, *disc] for server, disc in zip(homes, discs, strict=True)]
    tables: dict[str, Sequence[Struct]] = {
        "parameters": graph.parameters, "edges": graph.edges, "evidence": graph.evidence,
    }  # fmt: skip
    return {"large": large, "servers": servers, "tools": tools, **storage.pack(tables)}


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
