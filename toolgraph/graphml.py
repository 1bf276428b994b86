"""The graph as GraphML, for Gephi, Cytoscape, yEd, networkx: tools as nodes, with what the edges say as attributes."""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from trajsmith.records import ToolSpec
from trajsmith.records.storage import open_whole_file
from trajsmith.toolgraph.graph import Edge, ParameterNode, ToolGraph

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot carry, in whatever form."""

NODE = {"server": "string", "name": "string", "description": "string", "writes": "boolean", "internal": "string"}
EDGE = {"weight": "int", "score": "double", "links": "string", "evidence": "string"}

Values = dict[str, str | int | float | bool]


def write_graphml(graph: ToolGraph, path: Path) -> None:
    """Write the file; a part of it never stands there."""
    with open_whole_file(path) as file:
        file.writelines(line.encode() for line in _lines(graph))


def _lines(graph: ToolGraph) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for kind, columns in (("node", NODE), ("edge", EDGE)):
        for name, type_ in columns.items():
            yield f'<key id="{kind}_{name}" for="{kind}" attr.name="{name}" attr.type="{type_}"/>\n'
    yield '<graph id="tools" edgedefault="directed">\n'
    internal: dict[str, list[ParameterNode]] = {}
    for node in graph.parameters:
        if node.kind == "internal":
            internal.setdefault(node.tool, []).append(node)
    for tool in graph.tools:
        yield _element("node", f"id={_quoted(tool.full_name)}", _node(tool, internal.get(tool.full_name, [])))
    for edge in graph.edges:
        yield _element("edge", f"source={_quoted(edge.source)} target={_quoted(edge.target)}", _edge(edge))
    yield "</graph>\n</graphml>\n"


def _node(tool: ToolSpec, internal: list[ParameterNode]) -> Values:
    return {
        "server": tool.server,
        "name": tool.name,
        "description": tool.description,
        "writes": tool.declares_write,
        "internal": ", ".join(node.parameter for node in internal),
    }


def _edge(edge: Edge) -> Values:
    links = "; ".join(f"{link.output} -> {link.input} ({link.score:.2f})" for link in edge.links)
    return {"weight": edge.weight, "score": edge.score, "links": links, "evidence": ", ".join(edge.evidence)}


def _element(kind: str, names: str, values: Values) -> str:
    data = "".join(f'<data key="{kind}_{name}">{_text(value)}</data>' for name, value in values.items())
    return f"<{kind} {names}>{data}</{kind}>\n"


def _text(value: str | int | float | bool) -> str:
    return escape(_NOT_XML.sub("\ufffd", str(value).lower() if isinstance(value, bool) else str(value)))


def _quoted(name: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", name))
