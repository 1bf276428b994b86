"""Edges that a model adds and prunes, per environment, bounded, and never against execution.

EnvFactory (3.3.1, step 2) lets a model look over the edges that similarity proposed; Agent-World (3.1.1) has it say
which are strong, weak or independent. Here it sees all tools of one environment and a batch of targets with what feeds
them; what it says must name fields that exist, and what execution proved stays, what execution refuted stays out.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from pydantic import BaseModel, Field

from trajsmith.grounding import list_input_fields, list_output_fields
from trajsmith.models import ChatModel, ChatRequest
from trajsmith.models.prompts import Prompts, PromptSpec
from trajsmith.models.structured import complete_structured, narrow_schema
from trajsmith.records import FrozenModel, JsonObject, ModelFault, ModelFaultKind, ToolSpec
from trajsmith.toolgraph.build import GraphSettings
from trajsmith.toolgraph.evidence.score_rule import is_proved, is_refuted
from trajsmith.toolgraph.graph import INDEPENDENT, STRONG, WEAK, Edge, LinkEvidence, LinkKey, ToolGraph, ValueLink
from trajsmith.toolgraph.settings import GraphRefineSettings

Reply = TypeVar("Reply", bound=BaseModel)

FOR_GOOD: frozenset[ModelFaultKind] = frozenset({"bad_reply", "content_filter", "context_overflow", "bad_request"})
"""Kinds of fault that the same question meets again whenever it is asked."""


async def ask_all(model: ChatModel, requests: Sequence[ChatRequest], schema: type[Reply]) -> list[Reply | ModelFault]:
    """The answers in the order of the questions; a fault in place of one that the model will never give.

    Raises:
        ModelFault: The server does not answer. All other questions are answered and cached by then.
    """
    replies = await asyncio.gather(
        *(complete_structured(model, request, schema) for request in requests), return_exceptions=True
    )
    answers: list[Reply | ModelFault] = []
    for one in replies:
        if isinstance(one, BaseException) and not (isinstance(one, ModelFault) and one.kind in FOR_GOOD):
            raise one
        answers.append(one)
    return answers


EDGES = PromptSpec(
    "toolgraph/edges",
    {
        "server": "shop",
        "tools": [{"name": "list_orders", "description": "Lists.", "takes": ["email"], "gives": ["$.orders[*].id"]}],
        "targets": [
            {"name": "get_order", "edges": [{"source": "list_orders", "output": "$.orders[*].id", "parameter": "id"}]}
        ],
    },
)
WEIGHTS = {"strong": STRONG, "weak": WEAK, "independent": INDEPENDENT}
BELIEVED = 0.5
"""Score of a link that only a model sees."""
WORDS = 240
"""Characters of a description that are shown."""


class EdgeVerdict(FrozenModel):
    """Model verdict on one possible value flow."""

    action: Literal["add", "prune"]
    source: str
    output: str
    target: str
    parameter: str
    kind: Literal["strong", "weak", "independent"] = "weak"
    reason: str = Field(min_length=3, max_length=400)


class EdgeReply(FrozenModel):
    """The model's answer to one batch."""

    edges: tuple[EdgeVerdict, ...]


@dataclass(frozen=True)
class EdgeDecision:
    """Decision on one verdict."""

    verdict: EdgeVerdict
    server: str
    done: bool
    why: str
    """The model's reason; why it was not followed if it was not."""


async def refine_edges(
    graph: ToolGraph,
    model: ChatModel,
    prompts: Prompts,
    settings: GraphRefineSettings | None = None,
    built: GraphSettings | None = None,
) -> tuple[ToolGraph, list[EdgeDecision]]:
    """The graph after a model looked over the edges inside every environment, and all that it said.

    Args:
        graph: With the evidence that it has.
        model: Any model.
        prompts: Where prompt files are read.
        settings: Bounds.
        built: Settings of the build, for the threshold.
    """
    settings = settings or GraphRefineSettings()
    decisions: list[EdgeDecision] = []
    findings: list[str] = []
    links = {(edge.source, edge.target, link.output, link.input) for edge in graph.edges for link in edge.links}
    evidence = {row.key: row for row in graph.evidence if row.by == "execution"}
    asked: list[tuple[str, Sequence[ToolSpec]]] = []
    for server in sorted(graph.inside):
        part = graph.inside[server].tools
        batches = list(_batches(part, settings.targets))
        asked += [(server, batch) for batch in batches[: settings.requests]]
        if len(batches) > settings.requests:
            left = len(part) - settings.requests * settings.targets
            findings.append(f"environment {server}: model: edges to {left} tools were not asked about")
    requests = [_request(graph, server, batch, prompts) for server, batch in asked]
    judges = {server: _Judge(server, _fields(graph, server), links, evidence) for server, _ in asked}
    for (server, batch), reply in zip(asked, await ask_all(model, requests, EdgeReply), strict=True):
        if isinstance(reply, ModelFault):
            subject = f"edges to {batch[0].name} and others"
            findings.append(f"environment {server}: model: no usable answer on {subject}: {reply.message}")
            continue
        decisions += [judges[server].decide(verdict, {tool.name for tool in batch}) for verdict in reply.edges]
    refined = _applied(graph, decisions, max(BELIEVED, (built or GraphSettings()).model.threshold))
    return refined.model_copy(update={"findings": (*graph.findings, *findings), "parts": None}), decisions


def _batches(tools: Sequence[ToolSpec], size: int) -> Iterator[Sequence[ToolSpec]]:
    for start in range(0, len(tools), size):
        yield tools[start : start + size]


def _request(graph: ToolGraph, server: str, batch: Sequence[ToolSpec], prompts: Prompts) -> ChatRequest:
    messages = prompts.get(EDGES).messages(**_question(graph, server, batch))
    fields, targets = _fields(graph, server), [tool.name for tool in batch]
    choices = {
        "source": fields,
        "target": targets,
        "output": {path for outputs, _ in fields.values() for path in outputs or {"$"}},
        "parameter": {path for target in targets for path in fields[target][1]},
    }
    schema = narrow_schema(EdgeReply, "edges", choices)
    return ChatRequest(messages=messages, temperature=0.0, purpose="graph.edges", reply_schema=schema)


def _question(graph: ToolGraph, server: str, batch: Sequence[ToolSpec]) -> JsonObject:
    inside = graph.inside[server]
    names = {tool.full_name: tool.name for tool in inside.tools}
    fed: Mapping[str, list[JsonObject]] = defaultdict(list)
    for edge in inside.edges:
        fed[edge.target] += [
            {"source": names[edge.source], "output": link.output, "parameter": link.input} for link in edge.links
        ]
    fields = _fields(graph, server)
    return {
        "server": server,
        "tools": [
            {
                "name": tool.name,
                "description": " ".join(tool.description.split())[:WORDS],
                "takes": sorted(fields[tool.name][1]),
                "gives": sorted(fields[tool.name][0]),
            }
            for tool in inside.tools
        ],
        "targets": [{"name": tool.name, "edges": fed[tool.full_name]} for tool in batch],
    }


def _fields(graph: ToolGraph, server: str) -> dict[str, tuple[set[str], set[str]]]:
    """Plain tool name to its output paths and parameter paths."""
    return {
        tool.name: ({end.path for end in list_output_fields(tool)}, {end.path for end in list_input_fields(tool)})
        for tool in graph.inside[server].tools
    }


@dataclass(frozen=True)
class _Judge:
    """Known facts of one environment against which verdicts are tested."""

    server: str
    fields: Mapping[str, tuple[set[str], set[str]]]
    links: set[LinkKey]
    evidence: Mapping[LinkKey, LinkEvidence]

    def decide(self, verdict: EdgeVerdict, asked: set[str]) -> EdgeDecision:
        """Decide if a verdict is applied."""
        problem = _nonsense(verdict, self.fields, asked) or self._against(verdict)
        return EdgeDecision(verdict, self.server, problem is None, problem or verdict.reason)

    def _against(self, verdict: EdgeVerdict) -> str | None:
        key = _key(self.server, verdict)
        link_evidence = self.evidence.get(key)
        if verdict.action == "add":
            refuted = link_evidence is not None and is_refuted(link_evidence)
            return (
                f"execution refutes it: {link_evidence.failed} values failed, none worked"
                if link_evidence and refuted
                else None
            )
        if key not in self.links:
            return "there is no such link"
        if link_evidence is not None and is_proved(link_evidence):
            return (
                f"execution proves it: {link_evidence.worked} worked, {link_evidence.elsewhere_failed} "
                "from elsewhere failed"
            )
        return None


def _nonsense(verdict: EdgeVerdict, fields: Mapping[str, tuple[set[str], set[str]]], asked: set[str]) -> str | None:
    if verdict.target not in asked:
        return "the target was not asked about"
    if verdict.source not in fields:
        return "there is no such source"
    if verdict.source == verdict.target:
        return "a tool gives itself nothing"
    gives = fields[verdict.source][0] or {"$"}
    if verdict.action == "add" and verdict.output not in gives:
        return "the source has no such output"
    if verdict.parameter not in fields[verdict.target][1]:
        return "the target has no such parameter"
    return None


def _key(server: str, verdict: EdgeVerdict) -> LinkKey:
    return f"{server}.{verdict.source}", f"{server}.{verdict.target}", verdict.output, verdict.parameter


def _applied(graph: ToolGraph, decisions: Sequence[EdgeDecision], score: float) -> ToolGraph:
    followed = {_key(one.server, one.verdict): one.verdict for one in decisions if one.done}
    edges: dict[tuple[str, str], Edge] = {(edge.source, edge.target): edge for edge in graph.edges}
    for (source, target, output, parameter), verdict in sorted(followed.items(), key=lambda item: item[0]):
        old = edges.get((source, target))
        links = tuple(link for link in (old.links if old else ()) if (link.output, link.input) != (output, parameter))
        if verdict.action == "add":
            links += (ValueLink(output=output, input=parameter, score=score),)
        if not links:
            edges.pop((source, target), None)
            continue
        proved = old is not None and "execution" in old.evidence
        weight = WEIGHTS[verdict.kind] if verdict.action == "add" and not proved else old.weight if old else WEAK
        edges[source, target] = Edge(
            source=source,
            target=target,
            weight=max(weight, old.weight) if old and verdict.action == "add" else weight,
            score=max(link.score for link in links),
            links=tuple(sorted(links, key=lambda link: (link.input, -link.score, link.output))),
            evidence=tuple(dict.fromkeys((*(old.evidence if old else ()), "model"))),
        )
    return graph.model_copy(update={"edges": tuple(edges[pair] for pair in sorted(edges))})
