"""From tool specs to the graph: candidates, scores, parameter kinds, weighted edges, findings."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from trajsmith.environments import find_schema_fault
from trajsmith.records import FrozenModel, InputError, ToolSpec, to_one_line
from trajsmith.toolgraph.cross_server import ServerKeys, list_server_keys
from trajsmith.toolgraph.endpoint_table import EndpointTable, build_table
from trajsmith.toolgraph.endpoints import MAX_FIELDS
from trajsmith.toolgraph.graph import (
    INDEPENDENT,
    STRONG,
    WEAK,
    Edge,
    ParameterKind,
    ParameterNode,
    ToolGraph,
    ValueLink,
)
from trajsmith.toolgraph.link_model import LinkModel, load_link_model
from trajsmith.toolgraph.link_scoring import ScoredLinks, score_links
from trajsmith.toolgraph.match import Similarity, sort_by_server
from trajsmith.toolgraph.parameter_kinds import classify_kinds, compute_kind_terms, load_kind_model
from trajsmith.toolgraph.settings import ExecutionSettings, GraphRefineSettings
from trajsmith.toolgraph.tool_findings import deduplicate_tools

LAST_RESORT = 0.05
"""Score from which a link is kept as an edge of weight 1 where a required identifier has nothing better."""
LAST_PROMISE = 0.002
"""The same for tools that declare no outputs, where a parameter is internal."""
LAST_RESORTS = 2
"""Such links per parameter."""
ONE_NAME = 0.9
"""Fit from which a value of the same row goes along with the one that makes the edge."""


class GraphSettings(FrozenModel):
    """Settings of the tool graph."""

    threshold: float | None = Field(None, ge=0, le=1)
    """Score from which a link makes an edge of weight 2 or 3; the shipped model's own if not given."""
    embedding: str = ""
    """Preset (`minilm`, `bge-m3`, `qwen3`), model name or path for sentence-transformers; empty for words only."""
    cross_server: bool = True
    """Also look for edges between servers."""
    execution: ExecutionSettings = ExecutionSettings()
    """How a run tries the links of its environments by calls; building from tools alone makes none."""
    refine: GraphRefineSettings = GraphRefineSettings()
    """How much models are asked about the graph of a run, where the roles `refine` and `classify` have one."""

    @property
    def model(self) -> LinkModel:
        """The shipped model with this threshold."""
        shipped = load_link_model()
        return shipped if self.threshold is None else LinkModel(shipped.weights, self.threshold)


def build_graph(
    tools: Sequence[ToolSpec],
    settings: GraphSettings | None = None,
    similarity: Similarity | None = None,
) -> ToolGraph:
    """Build the graph of any number of tools. Odd tools are findings; the build goes on.

    Args:
        tools: The tools, of one server or of thousands.
        settings: The threshold, and whether servers may feed each other.
        similarity: Encoder of texts, for meaning beyond the shipped words.
    """
    return build_graph_and_keys(tools, settings, similarity)[0]


def build_graph_and_keys(
    tools: Sequence[ToolSpec], settings: GraphSettings | None = None, similarity: Similarity | None = None
) -> tuple[ToolGraph, dict[str, ServerKeys]]:
    """Build the graph, and say what its servers could give each other; nothing if they may not."""
    settings = settings or GraphSettings()
    distinct, findings = deduplicate_tools(tools)
    model = settings.model
    table = build_table(sort_by_server(distinct), similarity)
    links = score_links(table, model, settings.cross_server)
    main = links.score >= model.threshold
    kind_model = load_kind_model()
    internal = kind_model.probability(compute_kind_terms(links)) >= kind_model.threshold
    usable = main | _companions(links, main) | _last_resorts(links, main, internal)
    parameter_kinds = classify_kinds(links, internal, usable)
    order = {tool.full_name: place for place, tool in enumerate(distinct)}
    nodes = _nodes(table, parameter_kinds)
    graph = ToolGraph(
        tools=tuple(distinct),
        parameters=tuple(sorted(nodes, key=lambda node: order[node.tool])),
        edges=_edges(
            links, main, usable, parameter_kinds, ("schema",) if similarity is None else ("schema", "embedding")
        ),
        findings=(*findings, *_oversized(table)),
    )
    return graph, list_server_keys(table) if settings.cross_server else {}


def check_schema(tool: ToolSpec) -> None:
    """Refuse a tool whose input schema cannot be used.

    Raises:
        InputError: Names the tool and the fault.
    """
    fault = find_schema_fault(tool.input_schema)
    if fault is not None:
        message = to_one_line(fault.message, 200)
        raise InputError(f"tool {tool.full_name}: its input schema is no JSON Schema: {message}")
    if tool.input_schema.get("type", "object") != "object":
        raise InputError(f"tool {tool.full_name}: its input schema must be of type object")


def _oversized(table: EndpointTable) -> list[str]:
    return [
        f"tool {table.tools[row].full_name} has more than {MAX_FIELDS} {label}; the first {MAX_FIELDS} are looked at"
        for label, side in (("parameters", table.parameters), ("outputs", table.outputs))
        for row in np.flatnonzero(np.bincount(side.tool, minlength=len(table.tools)) >= MAX_FIELDS).tolist()
    ]


def _companions(links: ScoredLinks, main: Any) -> Any:
    """Values of the row that an edge is about: who found a bus by its time takes its date from there as well."""
    x = links.features
    pair = _pairs(links)
    same = np.maximum(x["named"], x["identifier"]) >= ONE_NAME
    return np.isin(pair, pair[main]) & same & (x["same_server"] > 0) & (x["source_read"] > 0) & (x["circular"] == 0)


def _last_resorts(links: ScoredLinks, main: Any, internal: Any) -> Any:
    """The best that there is for required identifiers, and other internal parameters, that nothing better gives."""
    side, x = links.table.parameters, links.features
    needy = side.flags["identifies"] & side.flags["required"]
    has_giver = np.zeros(len(needy), bool)
    has_giver[links.parameter[main]] = True
    least = np.where(needy[links.parameter], LAST_RESORT, np.inf)
    least[(x["virtual"] > 0) & internal[links.parameter]] = LAST_PROMISE
    fit = (links.score >= least) & ~has_giver[links.parameter] & (x["circular"] == 0) & (x["same_server"] > 0)
    rows = np.flatnonzero(fit)
    rows = rows[np.lexsort((rows, -links.score[rows], links.parameter[rows]))]
    first = np.flatnonzero(np.r_[True, np.diff(links.parameter[rows]) != 0]) if len(rows) else rows
    place = np.arange(len(rows)) - np.repeat(first, np.diff(np.r_[first, len(rows)]))
    chosen = np.zeros(len(links.score), bool)
    chosen[rows[place < LAST_RESORTS]] = True
    return chosen


def _pairs(links: ScoredLinks) -> Any:
    return links.source.astype(np.int64) * len(links.table.tools) + links.target


def _nodes(table: EndpointTable, parameter_kinds: Sequence[tuple[ParameterKind, str]]) -> list[ParameterNode]:
    return [
        ParameterNode(
            tool=table.tools[end.tool].full_name,
            parameter=end.field.path,
            kind=kind,
            required=end.field.required,
            evidence=(why,),
        )
        for end, (kind, why) in zip(table.parameters.endpoints, parameter_kinds, strict=True)
    ]


def _edges(
    links: ScoredLinks,
    main: Any,
    usable: Any,
    parameter_kinds: Sequence[tuple[ParameterKind, str]],
    evidence: tuple[str, ...],
) -> tuple[Edge, ...]:
    table = links.table
    names = [tool.full_name for tool in table.tools]
    outputs = [end.field.path for end in table.outputs.endpoints]
    inputs = [end.field.path for end in table.parameters.endpoints]
    internal = np.array([kind == "internal" for kind, _ in parameter_kinds], bool) & table.parameters.flags["required"]
    home = links.features["same_server"] > 0
    given_at_home = np.zeros(len(internal), bool)
    given_at_home[links.parameter[home & (links.features["identifier"] > 0)]] = True
    relies = internal[links.parameter] & (home | ~given_at_home[links.parameter])
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    chosen = np.flatnonzero(usable)
    for row, source, target in zip(
        chosen.tolist(), links.source[chosen].tolist(), links.target[chosen].tolist(), strict=True
    ):
        rows[names[source], names[target]].append(row)
    scores = np.round(links.score.astype(float), 4).tolist()
    edges = []
    for (source_name, target_name), own in sorted(rows.items()):
        ways = [
            ValueLink(output=outputs[links.output[row]], input=inputs[links.parameter[row]], score=scores[row])
            for row in own
        ]
        relied = any(relies[row] for row in own)
        edges.append(
            Edge(
                source=source_name,
                target=target_name,
                weight=(STRONG if relied else WEAK) if main[own].any() else INDEPENDENT,
                score=max(way.score for way in ways),
                links=tuple(sorted(ways, key=lambda way: (way.input, -way.score, way.output))),
                evidence=evidence,
            )
        )
    return tuple(edges)
