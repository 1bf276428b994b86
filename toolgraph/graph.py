"""The tool graph: tools and parameters, typed weighted edges with evidence, and its file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import orjson
from pydantic import GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from trajsmith.records import FrozenModel, InputError, JsonObject, ToolSpec, format_first_error
from trajsmith.toolgraph import storage
from trajsmith.toolgraph.networkx_view import build_view, read_graph_attributes, read_view

LinkKey = tuple[str, str, str, str]
"""Source, target (full names), output path, parameter path."""


class LinkEvidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Counts of one link, from one kind of evidence."""

    source: str
    target: str
    output: str
    input: str
    by: Literal["execution", "recorded"]
    worked: int = 0
    """Execution: (state, value) pairs with which the target did something. Recorded: tasks that pass a value on."""
    failed: int = 0
    """Execution: pairs with which it did nothing, though the same call works with another value."""
    elsewhere_worked: int = 0
    """Execution: values of the same type from elsewhere with which the target did something all the same."""
    elsewhere_failed: int = 0
    """Execution: values of the same type from elsewhere with which it did nothing."""
    chance: int = 0
    """Execution: values that worked too, but are numbers that another thing may have by chance; they say nothing."""
    states: int = 0
    """Execution: initial states in which a value worked."""
    known: int = 0
    """Recorded: times that the user had said the value too."""
    again: int = 0
    """Recorded: times that an earlier result had shown the value already, or the call was asked with it."""

    @property
    def summary(self) -> str:
        """Return the counts in words."""
        if self.by == "recorded":
            known = f"; {self.known} times the user had said it too" if self.known else ""
            again = f"; {self.again} times its result showed what was known already" if self.again else ""
            return f"recorded: {self.worked} tasks pass the value on{known}{again}"
        elsewhere = self.elsewhere_worked + self.elsewhere_failed
        chance = f"; {self.chance} numbers worked that fit by chance" if self.chance else ""
        return (
            f"execution: {self.worked} values worked and {self.failed} failed; "
            f"of {elsewhere} from elsewhere {self.elsewhere_failed} failed{chance}"
        )

    @property
    def key(self) -> LinkKey:
        return self.source, self.target, self.output, self.input


if TYPE_CHECKING:
    import networkx

ParameterKind = Literal["internal", "external", "other"]
STRONG, WEAK, INDEPENDENT = 3, 2, 1
MAKE = "build it again with `trajsmith graph build`; in a run, delete it and use `trajsmith resume`"
"""What to do about a file that is no graph."""


class ValueLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One way in which a value flows: an output path of the source, a parameter path of the target."""

    output: str
    input: str
    score: float


class Edge(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A value made by `source` can be used by `target`. Weights as in Agent-World 3.1.1."""

    source: str
    """Full name, server.tool."""
    target: str
    weight: int
    """3: the target relies on it; 2: it can also come from elsewhere; 1: only for lack of anything better."""
    score: float
    links: tuple[ValueLink, ...]
    evidence: tuple[str, ...]
    """"schema", "embedding", "model", "execution", "recorded"."""

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


class ParameterNode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One input parameter and where its values come from."""

    tool: str
    """Full name."""
    parameter: str
    """Path of the leaf, for example "order_id" or "items[*].sku"."""
    kind: ParameterKind
    """internal: only tools give it; external: a person knows it; other: a choice, a default, a flag."""
    required: bool
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class StructRows:
    """Lets a pydantic model hold rows of a struct, which take a fraction of the memory of models."""

    kind: type[msgspec.Struct]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        writer = core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins)
        return core_schema.no_info_plain_validator_function(self._read, serialization=writer)

    def _read(self, rows: Sequence[Any]) -> tuple[Any, ...]:
        if isinstance(rows, (list, tuple)) and all(isinstance(row, self.kind) for row in rows):
            return tuple(rows)
        try:
            return msgspec.convert(rows, tuple[self.kind, ...])  # type: ignore[name-defined]
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error


@dataclass
class ServerPart:
    """Part of a graph within one server."""

    tools: list[ToolSpec] = field(default_factory=list)
    parameters: list[ParameterNode] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)


class ToolGraph(FrozenModel):
    """Tools, parameters and edges. Immutable; look-ups are built on demand by `GraphIndex`."""

    tools: tuple[ToolSpec, ...]
    parameters: Annotated[tuple[ParameterNode, ...], StructRows(ParameterNode)]
    edges: Annotated[tuple[Edge, ...], StructRows(Edge)]
    findings: tuple[str, ...] = ()
    """What was odd about the tools, one sentence each."""
    evidence: Annotated[tuple[LinkEvidence, ...], StructRows(LinkEvidence)] = ()
    """What execution and recordings say of links, also of those that they refuted."""
    parts: dict[str, str] | None = None
    """Server to the digest of what its part was built from (tools, settings, builder); None if nobody asked."""
    keys: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] | None = None
    """Server to what it could give to others, and ask of them (`toolgraph.cross_server`); None if nobody asked."""

    @cached_property
    def by_name(self) -> dict[str, ToolSpec]:
        """Full name to tool."""
        return {tool.full_name: tool for tool in self.tools}

    @cached_property
    def inside(self) -> dict[str, ServerPart]:
        """Server to what belongs to it alone; edges between servers are nowhere in it."""
        by_server: dict[str, ServerPart] = {tool.server: ServerPart() for tool in self.tools}
        home = {name: tool.server for name, tool in self.by_name.items()}
        for tool in self.tools:
            by_server[tool.server].tools.append(tool)
        for node in self.parameters:
            by_server[home[node.tool]].parameters.append(node)
        for edge in self.edges:
            if home[edge.source] == home[edge.target]:
                by_server[home[edge.source]].edges.append(edge)
        return by_server

    def to_networkx(self, parameters: bool = True) -> "networkx.DiGraph[str]":
        """Return the graph as a `networkx.MultiDiGraph`, to query it with NetworkX's own algorithms.

        Nodes, told apart by their attribute `node_type`:

        * `"tool"`, named `server.tool`: `server`, `name`, `description`, `writes` (True unless it declares that it only
          reads), `actor` (who may call it), `spec` (the whole tool as JSON).
        * `"parameter"`, named `server.tool(path)`: `tool`, `path` (of the leaf, `items[*].sku`), `kind` (`internal`:
          only tools give it, `external`: a person knows it, `other`), `required`, `evidence`.

        Edges, told apart by `edge_type`:

        * `"dependency"`, tool to tool: `weight` (3 needed, 2 possible, 1 weak), `score`, `links` (tuples of output
          path, input path, score) and `evidence`.
        * `"value"`, tool to parameter, one for each `output` path that can fill it: `score`.
        * `"input"`, parameter to its tool: `required`.

        Args:
            parameters: False leaves out the parameters: a `networkx.DiGraph` in which every path is a chain of tools.

        Example:
            >>> import networkx as nx
            >>> tools = graph.to_networkx(parameters=False)
            >>> nx.ancestors(tools, "retail.cancel_order")
        """
        view = build_view(self.tools, self.parameters, self.edges, whole=parameters)
        view.graph.update(findings=self.findings, evidence=msgspec.to_builtins(self.evidence))
        return view

    @classmethod
    def from_networkx(cls, view: "networkx.DiGraph[str]") -> "ToolGraph":
        """Return the graph of what `to_networkx` gives, changed or not, or of `node_link_graph` of its JSON.

        Raises:
            InputError: A node or an edge lacks an attribute, or an edge leads to a tool that is no node.
        """
        try:
            return cls.model_validate(read_view(view) | read_graph_attributes(view))._checked()
        except ValueError as error:
            raise InputError(f"networkx graph: {' '.join(str(error).split())[:200]}") from error

    def _checked(self) -> "ToolGraph":
        """Itself, if it names only tools that it has.

        Raises:
            ValueError: It names others.
        """
        names = {node.tool for node in self.parameters}
        names |= {name for edge in self.edges for name in (edge.source, edge.target)}
        unknown = names - self.by_name.keys()
        if unknown:
            raise ValueError(f"it has no tool {min(unknown)!r}, but an edge or a parameter of it")
        return self

    def to_bytes(self) -> bytes:
        """The graph as its file holds it: one JSON object, rows as columns."""
        tools = [orjson.Fragment(orjson.dumps(tool.model_dump(mode="json", exclude_none=True))) for tool in self.tools]
        head: JsonObject = {"tools": tools, "findings": list(self.findings)}
        if self.parts is not None:
            head["parts"] = self.parts
        if self.keys is not None:
            head["keys"] = self.keys
        tables: dict[str, Sequence[msgspec.Struct]] = {"parameters": self.parameters, "edges": self.edges}
        if self.evidence:
            tables["evidence"] = self.evidence
        return orjson.dumps({**head, **storage.pack(tables)})

    def save(self, path: Path) -> None:
        """Write the file; a name that ends in .gz is packed."""
        storage.write(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path) -> "ToolGraph":
        """Read a graph file: columns, or rows as `model_dump` gives them; packed or not.

        Raises:
            InputError: The file is missing or no graph.
        """
        try:
            data = storage.read(path)
            if storage.is_packed(data):
                kinds: dict[str, type[msgspec.Struct]] = {"parameters": ParameterNode, "edges": Edge}
                if "evidence" in data:
                    kinds["evidence"] = LinkEvidence
                data |= storage.unpack(data, kinds)
            return cls.model_validate(data)._checked()
        except OSError as error:
            raise InputError(f"graph {path}: {error.strerror or error}; {MAKE}") from error
        except ValidationError as error:
            raise InputError(f"graph {path}: {format_first_error(error)}; {MAKE}") from error
        except ValueError as error:
            raise InputError(f"graph {path}: {' '.join(str(error).split())[:200]}; {MAKE}") from error
