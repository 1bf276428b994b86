"""The graph as a NetworkX graph, and as GraphML for Gephi, Cytoscape and yEd."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from trajsmith.records.storage import open_whole_file
from trajsmith.toolgraph.graph import ToolGraph

if TYPE_CHECKING:
    import networkx

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot carry, in whatever form."""


def to_networkx(graph: ToolGraph) -> "networkx.DiGraph[str]":
    """Return the tools as nodes, by full name, and the edges with what is known of them as attributes.

    Nodes have `server`, `name`, `description`, `writes` and `internal` (parameters that only tools give);
    edges have `weight` (1 to 3), `score`, `links` and `evidence`. All attributes are texts, numbers or booleans.

    Example:
        >>> digraph = to_networkx(ToolGraph.load(Path("runs/quickstart/graph.json")))  # doctest: +SKIP
        >>> networkx.descendants(digraph, "bank.open_account")  # doctest: +SKIP
    """
    import networkx

    internal: dict[str, list[str]] = {}
    for node in graph.parameters:
        if node.kind == "internal":
            internal.setdefault(node.tool, []).append(node.parameter)
    digraph: networkx.DiGraph[str] = networkx.DiGraph()
    for tool in graph.tools:
        digraph.add_node(
            tool.full_name,
            server=tool.server,
            name=tool.name,
            description=tool.description,
            writes=tool.declares_write,
            internal=", ".join(internal.get(tool.full_name, [])),
        )
    for edge in graph.edges:
        links = "; ".join(f"{link.output} -> {link.input} ({link.score:.2f})" for link in edge.links)
        digraph.add_edge(
            edge.source,
            edge.target,
            weight=edge.weight,
            score=edge.score,
            links=links,
            evidence=", ".join(edge.evidence),
        )
    return digraph


def write_graphml(graph: ToolGraph, path: Path) -> None:
    """Write the graph as GraphML, whole or not at all; a character that XML cannot carry becomes U+FFFD."""
    import networkx

    digraph = networkx.relabel_nodes(to_networkx(graph), _clean)
    for attributes in (*digraph.nodes.values(), *digraph.edges.values()):
        attributes.update({name: _clean(value) for name, value in attributes.items() if isinstance(value, str)})
    with open_whole_file(path) as file:
        networkx.write_graphml_xml(digraph, file)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
