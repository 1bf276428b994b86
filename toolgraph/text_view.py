"""The graph as plain lines for a terminal: every tool, what it needs, and who gives it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trajsmith.records import ToolSpec, suggest_names
from trajsmith.toolgraph.graph import Edge, ParameterNode, ToolGraph
from trajsmith.toolgraph.index import find_readers

GIVERS = 3
"""Producers that are named for a parameter; all where one tool is looked at."""


@dataclass
class _Rows:
    """A graph by tool."""

    parameters: dict[str, list[ParameterNode]]
    givers: dict[tuple[str, str], list[tuple[Edge, str]]]
    """(tool, parameter) to the edges that fill it, with the output's path; strong edges and high scores first."""
    takers: dict[str, list[Edge]]
    reads: set[str]

    @classmethod
    def of(cls, graph: ToolGraph) -> "_Rows":
        rows = cls(defaultdict(list), defaultdict(list), defaultdict(list), find_readers(graph.by_name))
        for node in graph.parameters:
            rows.parameters[node.tool].append(node)
        for edge in sorted(graph.edges, key=lambda edge: (-edge.weight, -edge.score, edge.source, edge.target)):
            rows.takers[edge.source].append(edge)
            for link in edge.links:
                rows.givers[edge.target, link.input].append((edge, link.output))
        return rows


def render_graph_lines(graph: ToolGraph, most: int) -> Iterator[str]:
    """Servers, their tools, and for every parameter its kind and its best producers; `most` tools at most."""
    rows = _Rows.of(graph)
    weights = Counter(edge.weight for edge in graph.edges)
    weight_counts = ", ".join(f"{weights[weight]} of weight {weight}" for weight in sorted(weights, reverse=True))
    yield (
        f"{len(graph.tools)} tools, {len(graph.inside)} servers, {len(graph.edges)} "
        f"edges{weight_counts and f': {weight_counts}'}"
    )
    left = most
    for server, part in graph.inside.items():
        yield ""
        yield f"{server}: {len(part.tools)} tools, {len(part.edges)} edges"
        for tool in part.tools[:left]:
            yield from _tool(rows, tool)
        left -= min(left, len(part.tools))
        if not left:
            break
    if len(graph.tools) > most:
        yield ""
        yield f"and {len(graph.tools) - most} tools more"


def render_tool_lines(graph: ToolGraph, tool: ToolSpec) -> Iterator[str]:
    """All about one tool: parameters with the reasons for their kinds, everybody who gives them, and who uses it."""
    rows = _Rows.of(graph)
    yield f"{tool.full_name} ({_effect(rows, tool)}): {' '.join(tool.description.split()) or 'no description'}"
    for node in rows.parameters[tool.full_name]:
        yield f"  {_parameter(node)}: {'; '.join(node.evidence)}"
        for edge, output in rows.givers[node.tool, node.parameter]:
            yield f"    from {edge.source} {output}  {_edge(edge)}"
    takers = rows.takers[tool.full_name]
    if takers:
        yield "  it gives to:"
        for edge in takers:
            links = ", ".join(f"{link.output} -> {link.input}" for link in edge.links)
            yield f"    {edge.target}  {links}  {_edge(edge)}"
    elif not tool.output_schema:
        yield "  it does not say what it gives: it has no output schema"


def _tool(rows: _Rows, tool: ToolSpec) -> Iterator[str]:
    yield f"  {tool.name} ({_effect(rows, tool)})"
    for node in rows.parameters[tool.full_name]:
        givers = rows.givers[node.tool, node.parameter]
        names = [_short(edge, tool.server) for edge, _ in givers[:GIVERS]]
        more = [f"{len(givers) - GIVERS} more"] if len(givers) > GIVERS else []
        arrow = f"  <- {', '.join([*names, *more])}" if givers else ""
        yield f"    {_parameter(node)}{arrow}"


def _short(edge: Edge, server: str) -> str:
    return f"{edge.source.removeprefix(f'{server}.')} ({edge.weight})"


def _effect(rows: _Rows, tool: ToolSpec) -> str:
    return "reads" if tool.full_name in rows.reads else "may write"


def _parameter(node: ParameterNode) -> str:
    return f"{node.parameter} {node.kind}{'' if node.required else ', optional'}"


def _edge(edge: Edge) -> str:
    return f"weight {edge.weight}, score {edge.score:.2f}, by {', '.join(edge.evidence)}"


def suggest_tools(wanted: str, names: Sequence[str]) -> str:
    """Return `; did you mean "..."?` with names that end or are spelt alike, or an empty text."""
    plain = wanted.rsplit(".", 1)[-1].lower()
    by_end = [name for name in names if name.rsplit(".", 1)[-1].lower() == plain]
    hint = suggest_names(wanted, names, most=3, first=by_end)
    return f"; {hint}" if hint else ""
