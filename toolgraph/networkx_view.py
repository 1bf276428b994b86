"""The rows of a tool graph as a typed NetworkX graph, and back; `ToolGraph.to_networkx` says what is in it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from trajsmith.records import InputError, JsonObject, ToolSpec

if TYPE_CHECKING:
    import networkx


def build_view(
    tools: Iterable[ToolSpec], parameters: Iterable[Any], edges: Iterable[Any], whole: bool
) -> "networkx.DiGraph[str]":
    """Return a `MultiDiGraph` of tools and parameters, or, unless `whole`, a `DiGraph` of tools alone."""
    import networkx

    view: networkx.DiGraph[str] = networkx.MultiDiGraph() if whole else networkx.DiGraph()
    for tool in tools:
        view.add_node(
            tool.full_name, node_type="tool", server=tool.server, name=tool.name, description=tool.description,
            writes=tool.declares_write, actor=tool.actor, spec=tool.model_dump(mode="json", exclude_none=True),
        )  # fmt: skip
    for node in parameters if whole else ():
        name = f"{node.tool}({node.parameter})"
        view.add_node(
            name, node_type="parameter", tool=node.tool, path=node.parameter, kind=node.kind,
            required=node.required, evidence=node.evidence,
        )  # fmt: skip
        view.add_edge(name, node.tool, edge_type="input", required=node.required)
    for edge in edges:
        links = tuple((link.output, link.input, link.score) for link in edge.links)
        view.add_edge(
            edge.source, edge.target, edge_type="dependency", weight=edge.weight, score=edge.score, links=links,
            evidence=edge.evidence,
        )  # fmt: skip
        for output, path, score in links if whole else ():
            view.add_edge(edge.source, f"{edge.target}({path})", edge_type="value", output=output, score=score)
    return view


def read_view(view: "networkx.DiGraph[str]") -> JsonObject:
    """Return the rows of a graph that `build_view` made, or that has the same attributes; JSON lists do for tuples.

    Raises:
        InputError: A node or an edge lacks what it must have.
    """
    rows: JsonObject = {"tools": [], "parameters": [], "edges": []}
    for name, node in view.nodes(data=True):
        if node.get("node_type", "tool") == "tool":
            rows["tools"].append(_tool(name, node))
        else:
            chosen = _pick(f"parameter {name}", node, ("tool", "kind", "required"))
            path = node.get("path", name)
            rows["parameters"].append({**chosen, "parameter": path, "evidence": list(node.get("evidence", ()))})
    for source, target, edge in view.edges(data=True):
        if edge.get("edge_type", "dependency") == "dependency":
            chosen = _pick(f"edge {source} -> {target}", edge, ("weight", "score"))
            links = [dict(zip(("output", "input", "score"), link, strict=True)) for link in edge.get("links", ())]
            evidence = list(edge.get("evidence", ()))
            rows["edges"].append({**chosen, "source": source, "target": target, "links": links, "evidence": evidence})
    rows["edges"].sort(key=lambda edge: (edge["source"], edge["target"]))
    return rows


def read_graph_attributes(view: "networkx.DiGraph[str]") -> JsonObject:
    """Return the findings and the evidence that the whole graph carries."""
    return {name: msgspec.to_builtins(view.graph[name]) for name in ("findings", "evidence") if name in view.graph}


def _tool(name: str, node: Any) -> JsonObject:
    """Return the record of a tool: as it was, or, in a graph made by hand, a tool without parameters."""
    if isinstance(node.get("spec"), dict):
        return dict(node["spec"])
    server, _, short = name.partition(".")
    known = {"server": node.get("server", server), "name": node.get("name", short or name)}
    return {**known, "description": node.get("description", ""), "inputSchema": {"type": "object", "properties": {}}}


def _pick(label: str, attributes: Any, names: tuple[str, ...]) -> JsonObject:
    missing = [name for name in names if name not in attributes]
    if missing:
        raise InputError(f"networkx graph: {label} has no attribute {missing[0]!r}; see ToolGraph.to_networkx")
    return {name: attributes[name] for name in names}
