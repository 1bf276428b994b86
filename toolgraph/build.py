"""From tool specs to the graph: candidate pairs by shared words, scores, parameter kinds, edges."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import jsonschema
from pydantic import Field

from grounding.fields import SchemaField, input_fields, output_fields
from grounding.names import GENERIC, ID_WORDS, is_identifier
from toolgraph.graph import STRONG, WEAK, Edge, Link, ParameterKind, ParameterNode, ToolGraph
from toolgraph.match import Similarity, concept, score
from trajectory import Frozen, InputError, ToolSpec


class GraphSettings(Frozen):
    """How the tool graph is built."""

    strong: float = Field(0.7, ge=0, le=1)
    """Score from which a link can make an internal parameter."""
    weak: float = Field(0.55, ge=0, le=1)
    """Score from which a link makes an edge."""
    embedding: str = ""
    """Model name or path for sentence-transformers (extra `embed`); empty for names only."""
    cross_server: bool = True
    """Also look for edges between servers."""


@dataclass(frozen=True, slots=True)
class Candidate:
    source: ToolSpec
    target: ToolSpec
    link: Link
    parameter: SchemaField


def build_graph(
    tools: Sequence[ToolSpec], settings: GraphSettings | None = None, similarity: Similarity | None = None
) -> ToolGraph:
    """Build the graph of any number of tools.

    Raises:
        InputError: A tool's input schema is no JSON Schema of an object.
    """
    settings = settings or GraphSettings()
    unique, findings = _unique(tools)
    for tool in unique:
        check_schema(tool)
    inputs = {tool.full_name: input_fields(tool) for tool in unique}
    candidates = _candidates(unique, inputs, settings, similarity)
    by_parameter: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_parameter[candidate.target.full_name, candidate.link.input].append(candidate)
    parameters = tuple(
        _classify(tool, field, by_parameter.get((tool.full_name, field.path), []), settings)
        for tool in unique
        for field in inputs[tool.full_name]
    )
    return ToolGraph(
        tools=tuple(unique), parameters=parameters, edges=_edges(candidates, parameters, similarity), findings=findings
    )


def check_schema(tool: ToolSpec) -> None:
    """Refuse a tool whose input schema cannot be used.

    Raises:
        InputError: Names the tool and the fault.
    """
    try:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    except jsonschema.SchemaError as error:
        raise InputError(f"tool {tool.full_name}: its input schema is no JSON Schema: {error.message}") from error
    if tool.input_schema.get("type", "object") != "object":
        raise InputError(f"tool {tool.full_name}: its input schema must be of type object")


def _unique(tools: Iterable[ToolSpec]) -> tuple[list[ToolSpec], tuple[str, ...]]:
    found: dict[str, ToolSpec] = {}
    findings = []
    for tool in tools:
        if tool.full_name in found:
            findings.append(f"tool {tool.full_name} is there twice; the first one counts")
        found.setdefault(tool.full_name, tool)
    return list(found.values()), tuple(findings)


def _candidates(
    tools: Sequence[ToolSpec],
    inputs: dict[str, list[SchemaField]],
    settings: GraphSettings,
    similarity: Similarity | None,
) -> list[Candidate]:
    """All links above the weak threshold; only pairs that share a telling word, or a server, are looked at."""
    by_word: dict[str, list[tuple[ToolSpec, SchemaField]]] = defaultdict(list)
    by_server: dict[str, list[tuple[ToolSpec, SchemaField]]] = defaultdict(list)
    for tool in tools:
        echoed = {concept(field) for field in inputs[tool.full_name]}
        for field in output_fields(tool):
            if concept(field) in echoed and is_identifier("_".join(concept(field))):
                continue  # it only says again what it was asked with
            by_server[tool.server].append((tool, field))
            for word in set(concept(field)) - GENERIC - ID_WORDS:
                by_word[word].append((tool, field))
    found = []
    for target in tools:
        for parameter in inputs[target.full_name]:
            near = list(by_server[target.server])
            if settings.cross_server:
                telling = set(concept(parameter)) - GENERIC - ID_WORDS
                near += [pair for word in telling for pair in by_word[word] if pair[0].server != target.server]
            best: dict[tuple[str, str], tuple[float, ToolSpec, SchemaField]] = {}
            for source, field in near:
                if source.full_name == target.full_name:
                    continue
                value = score(field, parameter, similarity)
                if value >= settings.weak:
                    best[source.full_name, field.path] = (value, source, field)
            for value, source, field in best.values():
                link = Link(output=field.path, input=parameter.path, score=round(value, 4))
                found.append(Candidate(source, target, link, parameter))
    return found


def _classify(tool: ToolSpec, field: SchemaField, links: Sequence[Candidate], settings: GraphSettings) -> ParameterNode:
    kind, why = _kind(field, [link for link in links if link.source.server == tool.server], settings)
    return ParameterNode(tool=tool.full_name, parameter=field.path, kind=kind, required=field.required, evidence=(why,))


def _kind(field: SchemaField, links: Sequence[Candidate], settings: GraphSettings) -> tuple[ParameterKind, str]:
    if field.is_choice:
        return "other", "schema: a choice"
    if is_identifier("_".join(concept(field))):
        strong = [link for link in links if link.link.score >= settings.strong]
        if strong:
            return "internal", f"schema: an identifier that {strong[0].source.name} gives"
        return "external", "schema: an identifier that no tool gives"
    if field.schema.get("default") is not None:
        return "other", "schema: has a default"
    return "external", "schema: no identifier"


def _edges(
    candidates: Sequence[Candidate], parameters: Sequence[ParameterNode], similarity: Similarity | None
) -> tuple[Edge, ...]:
    kinds = {(node.tool, node.parameter): node for node in parameters}
    links: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        links[candidate.source.full_name, candidate.target.full_name].append(candidate)
    evidence = ("schema",) if similarity is None else ("schema", "embedding")
    edges = []
    for (source, target), found in sorted(links.items()):
        nodes = [kinds[target, candidate.link.input] for candidate in found]
        strong = any(node.kind == "internal" and node.required for node in nodes)
        edges.append(
            Edge(
                source=source,
                target=target,
                weight=STRONG if strong else WEAK,
                score=max(candidate.link.score for candidate in found),
                links=tuple(
                    sorted(
                        (candidate.link for candidate in found), key=lambda link: (link.input, -link.score, link.output)
                    )
                ),
                evidence=evidence,
            )
        )
    return tuple(edges)
