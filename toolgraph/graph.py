"""The tool graph: tools and parameters, typed weighted edges with evidence, and its file."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from trajectory import Frozen, InputError, ToolSpec, first_fault

ParameterKind = Literal["internal", "external", "other"]
STRONG, WEAK = 3, 2


class Link(Frozen):
    """One way in which a value flows: an output path of the source, a parameter path of the target."""

    output: str
    input: str
    score: float


class Edge(Frozen):
    """A value made by `source` can be used by `target`. Weights as in Agent-World 3.1.1."""

    source: str
    """Full name, server.tool."""
    target: str
    weight: int
    """3: the target relies on it; 2: it can also come from elsewhere; 1: only for lack of anything better."""
    score: float
    links: tuple[Link, ...]
    evidence: tuple[str, ...]
    """"schema", "embedding", "model", "execution"."""

    def as_line(self) -> dict[str, Any]:
        """The edge as `graph edges` prints it."""
        return {
            "source": self.source,
            "target": self.target,
            "weight": self.weight,
            "score": self.score,
            "parameters": [{"output": link.output, "input": link.input} for link in self.links],
            "evidence": list(self.evidence),
        }


class ParameterNode(Frozen):
    """One input parameter and where its values come from."""

    tool: str
    """Full name."""
    parameter: str
    """Path of the leaf, for example "order_id" or "items[*].sku"."""
    kind: ParameterKind
    """internal: only tools give it; external: a person knows it; other: a choice, a default, a flag."""
    required: bool
    evidence: tuple[str, ...]


class ToolGraph(Frozen):
    """Tools, parameters and edges. Immutable; look-ups are built on demand by `GraphIndex`."""

    tools: tuple[ToolSpec, ...]
    parameters: tuple[ParameterNode, ...]
    edges: tuple[Edge, ...]
    findings: tuple[str, ...] = ()
    """What was odd about the tools, one sentence each."""

    def save(self, path: Path) -> None:
        path.write_bytes(orjson.dumps(self.model_dump(mode="json", exclude_none=True)))

    @classmethod
    def load(cls, path: Path) -> "ToolGraph":
        """Read a graph file.

        Raises:
            InputError: The file is missing or no graph.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise InputError(f"graph {path}: {error.strerror}") from error
        except ValidationError as error:
            raise InputError(f"graph {path}: {first_fault(error)}") from error


class GraphIndex:
    """Look-ups over the part of a graph that belongs to one environment, as the sampler needs them."""

    def __init__(self, graph: ToolGraph, server: str) -> None:
        self.tools = [tool.name for tool in graph.tools if tool.server == server]
        self.reads = {tool.name for tool in graph.tools if tool.server == server and not tool.declares_write}
        prefix = f"{server}."
        self.needs: dict[str, list[str]] = defaultdict(list)
        """Tool to the required internal parameters that make it depend on others."""
        self.wants: dict[str, list[str]] = defaultdict(list)
        """Tool to its optional internal parameters."""
        self.producers: dict[tuple[str, str], list[tuple[str, Link]]] = defaultdict(list)
        """(tool, parameter) to tools that give it, with the link."""
        self.successors: dict[str, list[tuple[str, int]]] = defaultdict(list)
        """Tool to (next tool, weight)."""
        kinds = {(node.tool, node.parameter): node for node in graph.parameters}
        for node in _of_server(graph.parameters, prefix):
            if node.kind == "internal":
                (self.needs if node.required else self.wants)[node.tool.removeprefix(prefix)].append(node.parameter)
        for edge in graph.edges:
            if not (edge.source.startswith(prefix) and edge.target.startswith(prefix)):
                continue
            source, target = edge.source.removeprefix(prefix), edge.target.removeprefix(prefix)
            self.successors[source].append((target, edge.weight))
            for link in edge.links:
                known = kinds.get((edge.target, link.input))
                if known is not None and known.kind == "internal":
                    self.producers[target, link.input].append((source, link))

    def sources(self, tool: str, parameter: str) -> list[str]:
        """Tools that give a parameter, each once."""
        return list(dict.fromkeys(source for source, _ in self.producers[tool, parameter]))


def _of_server(nodes: Iterable[ParameterNode], prefix: str) -> Iterator[ParameterNode]:
    return (node for node in nodes if node.tool.startswith(prefix))
