"""Explains in words why an edge exists or not."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trajsmith.records import InputError, ToolSpec
from trajsmith.toolgraph.build import GraphSettings
from trajsmith.toolgraph.graph import INDEPENDENT, STRONG, WEAK, Edge, LinkEvidence, ParameterNode, ToolGraph
from trajsmith.toolgraph.match import REASONS, Similarity, score_pairs
from trajsmith.toolgraph.text_view import suggest_tools


@dataclass(frozen=True)
class ExplainedPair:
    """One output of a tool against one parameter of another."""

    output: str
    input: str
    score: float
    needed: float
    """Score from which it makes an edge."""
    reasons: tuple[str, ...]
    """Plain words, half sentences."""


def explain_match(
    source: ToolSpec,
    target: ToolSpec,
    settings: GraphSettings,
    similarity: Similarity | None = None,
    tools: Iterable[ToolSpec] = (),
) -> list[ExplainedPair]:
    """All pairs that were looked at, best first.

    Args:
        source: The giving tool.
        target: The taking tool.
        settings: How the graph was built.
        similarity: As in the build.
        tools: All tools of the graph: a link is also judged by what else the two servers have.
    """
    servers = {source.server, target.server}
    near = {tool.full_name: tool for tool in (*tools, source, target) if tool.server in servers}
    model = settings.model
    judged = score_pairs(list(near.values()), source.full_name, target.full_name, model, similarity)
    return [ExplainedPair(pair.output, pair.input, pair.score, model.threshold, pair.reasons) for pair in judged]


MEANS = {
    STRONG: "{target} relies on what {source} gives",
    WEAK: "{target} can use what {source} gives, but the value can also come from elsewhere",
    INDEPENDENT: "{target} needs such a value and nothing gives it better; that {source} gives it is a guess",
}
BY = {
    "schema": "the schemas fit: names, types, descriptions",
    "embedding": "the descriptions mean similar things to an embedding model",
    "model": "a language model judged that it is so",
    "execution": "it was run: {target} succeeded with a value that {source} had just given",
    "recorded": "recorded conversations pass the value on",
}
SPEAKING = frozenset(speaks for speaks, _ in REASONS.values() if speaks)
SHOWN = 5
"""Near misses and other givers that are told."""


def explain_edge(graph: ToolGraph, source: str, target: str, settings: GraphSettings | None = None) -> list[str]:
    """Lines that say why the graph has an edge between two tools, or what speaks against it.

    Args:
        graph: The graph.
        source: Full name of the giving tool, or its plain name if only one tool has it.
        target: The taking tool, likewise.
        settings: How the graph was built, for what fell short; the defaults if None.

    Raises:
        InputError: The graph has no such tool, or several.
    """
    giver, taker = find_tool(graph, source), find_tool(graph, target)
    edge = next((e for e in graph.edges if (e.source, e.target) == (giver.full_name, taker.full_name)), None)
    if edge is not None:
        return list(_there(graph, edge, giver, taker, settings or GraphSettings()))
    return list(_not_there(graph, giver, taker, settings or GraphSettings()))


def find_tool(graph: ToolGraph, name: str) -> ToolSpec:
    """The tool with this full name, or the only one with this plain name.

    Raises:
        InputError: There is none, or there are several.
    """
    if name in graph.by_name:
        return graph.by_name[name]
    matches = [tool for tool in graph.tools if tool.name == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(tool.full_name for tool in matches[:SHOWN])
        raise InputError(f"{len(matches)} tools are named {name!r}: say which, for example {names}")
    near = suggest_tools(name, list(graph.by_name)) or "; full names are server.tool"
    raise InputError(f"the graph has no tool {name!r}{near}")


def _there(graph: ToolGraph, edge: Edge, giver: ToolSpec, taker: ToolSpec, settings: GraphSettings) -> Iterator[str]:
    words = {"source": giver.name, "target": taker.name}
    yield f"{edge.source} -> {edge.target}: there is an edge of weight {edge.weight}, score {edge.score:.2f}."
    if edge.weight in MEANS:
        yield f"Weight {edge.weight}: {MEANS[edge.weight].format(**words)}."
    for name in edge.evidence:
        yield f"Evidence {name!r}: {BY.get(name, 'see the documentation').format(**words)}."
    if "embedding" in edge.evidence and not settings.embedding:
        yield "The reasons below come from names and descriptions only."
    nodes = {node.parameter: node for node in graph.parameters if node.tool == edge.target}
    reasons = {
        (pair.output, pair.input): pair.reasons for pair in explain_match(giver, taker, settings, tools=graph.tools)
    }
    for parameter in dict.fromkeys(link.input for link in edge.links):
        links = [link for link in edge.links if link.input == parameter]
        yield f"Parameter {parameter}:"
        for link in links:
            because = _format_reasons(reasons.get((link.output, link.input), ()))
            yield f"  it can be filled from {link.output} of the result, score {link.score:.2f}: {because}"
            for row in _evidence_rows(graph, giver, taker, link.output, link.input):
                yield f"    {row.summary}"
        yield from _role(graph, edge, parameter, nodes.get(parameter))


def _evidence_rows(
    graph: ToolGraph, giver: ToolSpec, taker: ToolSpec, output: str, parameter: str
) -> list[LinkEvidence]:
    """Return the evidence rows of one link."""
    key = giver.full_name, taker.full_name, output, parameter
    return [row for row in graph.evidence if row.key == key]


def _role(graph: ToolGraph, edge: Edge, parameter: str, node: ParameterNode | None) -> Iterator[str]:
    """Yield the role of the parameter and its other sources."""
    if node is not None:
        need = "required" if node.required else "optional"
        yield f"  it is {node.kind} and {need}: {'; '.join(node.evidence)}"
    others = [name for name in _givers(graph, edge.target, parameter) if name != edge.source]
    yield f"  other tools give it too: {_some(others)}" if others else "  no other tool gives it"


def _givers(graph: ToolGraph, tool: str, parameter: str) -> list[str]:
    """Return the tools that give a parameter, the likeliest first."""
    weights = {
        edge.source: max(link.score for link in edge.links if link.input == parameter)
        for edge in graph.edges
        if edge.target == tool and any(link.input == parameter for link in edge.links)
    }
    return sorted(weights, key=lambda name: (-weights[name], name))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _not_there(graph: ToolGraph, giver: ToolSpec, taker: ToolSpec, settings: GraphSettings) -> Iterator[str]:
    yield f"{giver.full_name} -> {taker.full_name}: there is no edge."
    if giver.full_name == taker.full_name:
        yield "It is one and the same tool; a tool gives itself nothing."
        return
    if any((edge.source, edge.target) == (taker.full_name, giver.full_name) for edge in graph.edges):
        yield f"There is one the other way round: {taker.full_name} -> {giver.full_name}."
    considered = explain_match(giver, taker, settings, tools=graph.tools)
    if not considered:
        yield from _nothing_to_compare(giver, taker)
        return
    if not giver.output_schema:
        yield f"{giver.name} has no output schema: what it gives is guessed from its name."
    looked = "One pair of an output and a parameter was" if len(considered) == 1 else f"{len(considered)} pairs were"
    yield f"{looked} looked at; {considered[0].needed:.2f} is needed for an edge; the nearest for each parameter:"
    best: dict[str, ExplainedPair] = {}
    for pair in considered:
        best.setdefault(pair.input, pair)
    for pair in list(best.values())[:SHOWN]:
        yield f"  {pair.output} -> {pair.input}: score {pair.score:.2f}: {_format_reasons(pair.reasons)}"
        for row in _evidence_rows(graph, giver, taker, pair.output, pair.input):
            yield f"    {row.summary}"
    nodes = [node for node in graph.parameters if node.tool == taker.full_name and node.parameter in best]
    for node in nodes[:SHOWN]:
        givers = _givers(graph, taker.full_name, node.parameter)
        provenance = f"given by {_some(givers)}" if givers else "no tool gives it"
        yield f"Parameter {node.parameter} is {node.kind}: {'; '.join(node.evidence)}; {provenance}."


def _format_reasons(reasons: Sequence[str]) -> str:
    """Return the reasons for and against a link as text."""
    speaking = [reason for reason in reasons if reason in SPEAKING]
    against = "; ".join(reason for reason in reasons if reason not in SPEAKING)
    if not speaking:
        return against or "it fits"
    return f"{'; '.join(speaking)}; but {against}" if against else "; ".join(speaking)


def _nothing_to_compare(giver: ToolSpec, taker: ToolSpec) -> Iterator[str]:
    if not giver.output_schema:
        yield f"{giver.name} does not say what it gives: it has no output schema."
    elif not taker.parameters:
        yield f"{taker.name} takes no parameters."
    else:
        yield f"The schemas of {giver.name} and {taker.name} have no values that could be compared."
