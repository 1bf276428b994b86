"""EnvFactory's question (3.3.2), asked once per parameter, in batches: who knows its value?

The answer is followed where only schemas spoke before. Where recordings or execution have said something the answer is
kept as evidence beside theirs, and a parameter that no tool gives is never made internal.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec
from pydantic import Field

from trajsmith.grounding import SchemaField, list_input_fields
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import narrow_schema
from trajsmith.records import FrozenModel, ModelFault
from trajsmith.toolgraph.graph import ParameterKind, ParameterNode, ToolGraph
from trajsmith.toolgraph.refine.edges import WORDS, ask_all
from trajsmith.toolgraph.settings import GraphRefineSettings

PARAMETERS = PromptSpec(
    "toolgraph/parameters",
    {
        "server": "shop",
        "description": "Orders of a shop.",
        "parameters": [
            {"tool": "get_order", "parameter": "id", "type": "string", "required": True, "description": "Number."}
        ],
    },
)
STRONGER = ("recorded:", "execution:")
"""Beginnings of evidence that a model's word does not overrule."""


class KindVerdict(FrozenModel):
    """Model verdict on one parameter."""

    tool: str
    parameter: str
    kind: Literal["internal", "external", "other"]
    reason: str = Field(min_length=3, max_length=300)


class KindReply(FrozenModel):
    """The model's answer to one batch."""

    parameters: tuple[KindVerdict, ...]


async def classify_parameters(
    graph: ToolGraph, model: ChatModel, prompts: Prompts, settings: GraphRefineSettings | None = None
) -> ToolGraph:
    """The graph with the model's word on every parameter.

    Args:
        graph: Edges as they shall stay; what no edge gives is not made internal.
        model: Any model.
        prompts: Where prompt files are read.
        settings: Bounds.
    """
    settings = settings or GraphRefineSettings()
    findings: list[str] = []
    verdicts: dict[tuple[str, str], KindVerdict] = {}
    asked: list[tuple[str, Sequence[ParameterNode]]] = []
    for server in sorted(graph.inside):
        nodes, most = graph.inside[server].parameters, settings.requests * settings.parameters
        starts = range(0, min(most, len(nodes)), settings.parameters)
        asked += [(server, nodes[start : start + settings.parameters]) for start in starts]
        left = len(nodes) - most
        if left > 0:
            findings.append(f"environment {server}: model: {left} parameters not asked about")
    requests = [_request(graph, server, batch, prompts) for server, batch in asked]
    for (server, batch), reply in zip(asked, await ask_all(model, requests, KindReply), strict=True):
        if isinstance(reply, ModelFault):
            failure = f"no usable answer on {len(batch)} parameters"
            findings.append(f"environment {server}: model: {failure}: {reply.message}")
            continue
        names = {(graph.by_name[node.tool].name, node.parameter): (node.tool, node.parameter) for node in batch}
        verdicts |= {
            names[one.tool, one.parameter]: one for one in reply.parameters if (one.tool, one.parameter) in names
        }
    linked_parameters = {(edge.target, link.input) for edge in graph.edges for link in edge.links}
    judged = tuple(
        _node(node, verdicts.get((node.tool, node.parameter)), linked_parameters) for node in graph.parameters
    )
    return graph.model_copy(update={"parameters": judged, "findings": (*graph.findings, *findings), "parts": None})


def _request(graph: ToolGraph, server: str, batch: Sequence[ParameterNode], prompts: Prompts) -> ChatRequest:
    fields = {
        (name, end.path): end
        for name in {node.tool for node in batch}
        for end in list_input_fields(graph.by_name[name])
    }
    messages = prompts.get(PARAMETERS).messages(
        server=server,
        description=", ".join(tool.name for tool in graph.inside[server].tools[:40]),
        parameters=[_shown(node, fields.get((node.tool, node.parameter)), graph) for node in batch],
    )
    choices = {
        "tool": {graph.by_name[node.tool].name for node in batch},
        "parameter": {node.parameter for node in batch},
    }
    schema = narrow_schema(KindReply, "parameters", choices)
    return ChatRequest(messages=messages, temperature=0.0, purpose="graph.parameters", reply_schema=schema)


def _shown(node: ParameterNode, end: SchemaField | None, graph: ToolGraph) -> dict[str, object]:
    return {
        "tool": graph.by_name[node.tool].name,
        "parameter": node.parameter,
        "type": "/".join(sorted(end.types)) if end and end.types else "any",
        "required": node.required,
        "description": " ".join(end.description.split())[:WORDS] if end else "",
    }


def _node(node: ParameterNode, verdict: KindVerdict | None, linked_parameters: set[tuple[str, str]]) -> ParameterNode:
    if verdict is None:
        return node
    kind: ParameterKind = verdict.kind
    stronger = any(text.startswith(STRONGER) for text in node.evidence)
    if stronger or (kind == "internal" and (node.tool, node.parameter) not in linked_parameters):
        kind = node.kind
    text = f"model: {verdict.kind}: {' '.join(verdict.reason.split())}"
    return msgspec.structs.replace(node, kind=kind, evidence=(*node.evidence, text))
