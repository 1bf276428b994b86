"""Files for other programs: GraphML for Gephi, Cytoscape and yEd, node-link JSON for NetworkX and D3."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from trajsmith.records import open_whole_file
from trajsmith.toolgraph.graph import ToolGraph

if TYPE_CHECKING:
    import networkx

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot carry, in whatever form."""


def _label(graph: ToolGraph) -> "networkx.DiGraph[str]":
    """Return the tools and their edges with attributes that are texts, numbers or booleans, as GraphML holds them."""
    internal: dict[str, list[str]] = {}
    for node in graph.parameters:
        if node.kind == "internal":
            internal.setdefault(node.tool, []).append(node.parameter)
    view = graph.to_networkx(parameters=False)
    view.graph.clear()
    for name, node in view.nodes(data=True):
        for key in ("node_type", "actor", "spec"):
            del node[key]
        node["internal"] = ", ".join(internal.get(name, []))
    for _, _, edge in view.edges(data=True):
        del edge["edge_type"]
        edge["links"] = "; ".join(f"{output} -> {path} ({score:.2f})" for output, path, score in edge["links"])
        edge["evidence"] = ", ".join(edge["evidence"])
    return view


def write_graphml(graph: ToolGraph, path: Path) -> None:
    """Write the graph as GraphML, whole or not at all; a character that XML cannot carry becomes U+FFFD."""
    import networkx

    digraph = networkx.relabel_nodes(_label(graph), _clean)
    for attributes in (*digraph.nodes.values(), *digraph.edges.values()):
        attributes.update({name: _clean(value) for name, value in attributes.items() if isinstance(value, str)})
    with open_whole_file(path) as file:
        networkx.write_graphml_xml(digraph, file)


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def write_node_link(graph: ToolGraph, path: Path) -> None:
    """Write the typed graph as node-link JSON, whole or not at all; `networkx.node_link_graph` reads it."""
    import networkx

    data = networkx.node_link_data(graph.to_networkx(), edges="edges")
    with open_whole_file(path) as file:
        file.write(orjson.dumps(data, option=orjson.OPT_INDENT_2))
