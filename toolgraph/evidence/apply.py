"""Evidence into a graph: final scores of links, edges, kinds of parameters.

A link's score is that of its schemas, moved by what recordings say of it, moved by what execution says of it (see
`toolgraph.evidence.rule`). A link makes an edge from the same threshold as before. Parameters that evidence finds to be
internal or external change their kind; a required internal parameter always keeps a way to be filled.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec
import numpy as np

from toolgraph.build import LAST_RESORT, GraphSettings
from toolgraph.evidence.contrast import Tried
from toolgraph.evidence.execution import Executed
from toolgraph.evidence.mining import Mined
from toolgraph.evidence.probing import UNDECLARED
from toolgraph.evidence.rule import executed_score, proves, recorded_score, refutes
from toolgraph.found import LinkEvidence, LinkKey
from toolgraph.graph import INDEPENDENT, STRONG, WEAK, Edge, Link, ParameterKind, ParameterNode, ToolGraph
from toolgraph.links import score_links
from toolgraph.match import Similarity, by_server
from toolgraph.table import build_table
from trajectory import ToolSpec

CLEAR = 0.7
"""Share of the calls from which a kind is clear (README of the open sets: 30 to 70 % is mixed)."""
FEW = 3
"""Calls or values from which a parameter is judged."""


@dataclass
class Evidence:
    """All that was found beside the schemas."""

    recorded: Mined | None = None
    executed: Sequence[Executed] = ()
    links: dict[LinkKey, LinkEvidence] = field(init=False)
    """By execution."""
    parameters: dict[tuple[str, str], Tried] = field(init=False)

    def __post_init__(self) -> None:
        self.links = {row.key: row for one in self.executed for row in one.links}
        self.parameters = {key: tried for one in self.executed for key, tried in one.parameters.items()}

    @property
    def targets(self) -> set[str]:
        """Full names of the tools of which anything was found."""
        found = {key[1] for key in self.links} | {tool for tool, _ in self.parameters}
        if self.recorded is not None:
            found |= {tool for tool, _ in self.recorded.origins}
        return found

    @property
    def rows(self) -> tuple[LinkEvidence, ...]:
        """As the graph keeps them."""
        recorded = self.recorded.evidence() if self.recorded else ()
        return (*(self.links[key] for key in sorted(self.links)), *recorded)

    @property
    def findings(self) -> list[str]:
        found = [text for one in self.executed for text in one.findings]
        unknown = sorted(self.recorded.unknown) if self.recorded else []
        if unknown:
            found.append(
                f"recorded calls of {len(unknown)} tools that the graph does not have: {', '.join(unknown[:5])}"
            )
        return found


def schema_scores(
    tools: Sequence[ToolSpec],
    settings: GraphSettings | None = None,
    similarity: Similarity | None = None,
    targets: Collection[str] | None = None,
) -> dict[LinkKey, float]:
    """Score by schemas of every link that matching sees, far below the threshold too.

    Args:
        tools: As of `build_graph`, like settings and similarity.
        settings: The threshold plays no part.
        similarity: Encoder of texts.
        targets: Full names of the tools whose links are wanted; all if None.
    """
    settings = settings or GraphSettings()
    unique = list({tool.full_name: tool for tool in reversed(tools)}.values())
    links = score_links(build_table(by_server(unique), similarity), settings.model, settings.cross_server)
    table = links.table
    names = [tool.full_name for tool in table.tools]
    outputs = [end.field.path for end in table.outputs.endpoints]
    inputs = [end.field.path for end in table.parameters.endpoints]
    wanted = np.array([targets is None or name in targets for name in names], bool)[links.target]
    columns = (links.source, links.target, links.output, links.parameter, links.score)
    rows = zip(*(column[wanted].tolist() for column in columns), strict=True)
    return {(names[s], names[t], outputs[o], inputs[p]): score for s, t, o, p, score in rows}


def with_evidence(
    graph: ToolGraph, evidence: Evidence, scores: Mapping[LinkKey, float], settings: GraphSettings | None = None
) -> ToolGraph:
    """The graph as it is after looking at evidence; a later `--update` builds it anew.

    Args:
        graph: As the schemas make it.
        evidence: What was found.
        scores: From `schema_scores`, of the same tools.
        settings: Those that the graph was built with.
    """
    cut = (settings or GraphSettings()).model.threshold
    final = final_scores(evidence, scores, cut)
    given = {(key[1], key[3]) for key, score in final.items() if score >= cut}
    nodes = tuple(_node(node, evidence, (node.tool, node.parameter) in given) for node in graph.parameters)
    kept = {(edge.source, edge.target, link.output, link.input): link for edge in graph.edges for link in edge.links}
    chosen = {key for key, score in final.items() if score >= cut} | {
        key for key in kept if final.get(key, kept[key].score) >= LAST_RESORT
    }
    chosen -= _vague(chosen, evidence)
    chosen |= _only_ways(kept, chosen, nodes, evidence)
    links: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for source, target, output, parameter in sorted(chosen):
        score = final.get((source, target, output, parameter))
        score = kept[source, target, output, parameter].score if score is None else round(score, 4)
        links[source, target].append(Link(output=output, input=parameter, score=score))
    before = {(edge.source, edge.target): edge for edge in graph.edges}
    internal = {(node.tool, node.parameter) for node in nodes if node.required and node.kind == "internal"}
    touched = {key[:2] for key in final}
    edges = []
    for pair, ways in sorted(links.items()):
        old = before.get(pair)
        home = graph.by_name[pair[0]].server == graph.by_name[pair[1]].server
        needed = internal if home or (old is not None and old.weight == STRONG) else frozenset()
        untouched = old is not None and pair not in touched
        edges.append(old if old is not None and untouched else _edge(pair, ways, old, needed, evidence, cut))
    return graph.model_copy(
        update={
            "edges": tuple(edges),
            "parameters": _with_ways(nodes, edges),
            "evidence": evidence.rows,
            "findings": (*graph.findings, *evidence.findings),
            "parts": None,
        }
    )


def _with_ways(nodes: Sequence[ParameterNode], edges: Sequence[Edge]) -> tuple[ParameterNode, ...]:
    """Internal parameters whose every link was refuted are not internal: nobody is left to give them."""
    filled = {(edge.target, link.input) for edge in edges for link in edge.links}
    why = "execution: no output gives a value that works"
    return tuple(
        msgspec.structs.replace(node, kind="external", evidence=(*node.evidence, why))
        if node.kind == "internal" and (node.tool, node.parameter) not in filled
        else node
        for node in nodes
    )


def final_scores(evidence: Evidence, scores: Mapping[LinkKey, float], threshold: float) -> dict[LinkKey, float]:
    """Score of every link that matching sees or that evidence speaks of."""
    keys = scores.keys() | evidence.links.keys()
    if evidence.recorded is not None:
        keys |= evidence.recorded.flows.keys()
    final = {}
    for key in keys:
        score = scores.get(key, 0.0)
        if evidence.recorded is not None:
            score = recorded_score(key, score, evidence.recorded, threshold)
        found = evidence.links.get(key)
        final[key] = score if found is None else executed_score(score, found)
    return final


def _vague(chosen: Iterable[LinkKey], evidence: Evidence) -> set[LinkKey]:
    """Links of undeclared results whose real field execution has shown."""
    shown = {(key[0], key[1], key[3]) for key, found in evidence.links.items() if proves(found)}
    return {key for key in chosen if key[2] == UNDECLARED and (key[0], key[1], key[3]) in shown}


def _only_ways(
    kept: Mapping[LinkKey, Link], chosen: Iterable[LinkKey], nodes: Sequence[ParameterNode], evidence: Evidence
) -> set[LinkKey]:
    """The best former link of required internal parameters that would have none, unless execution refuted it."""
    filled = {(target, parameter) for _, target, _, parameter in chosen}
    needy = {(node.tool, node.parameter) for node in nodes if node.required and node.kind == "internal"} - filled
    best: dict[tuple[str, str], LinkKey] = {}
    for key in sorted(kept, key=lambda key: (kept[key].score, key)):
        found = evidence.links.get(key)
        if key[1::2] in needy and not (found is not None and refutes(found)):
            best[key[1], key[3]] = key
    return set(best.values())


def _edge(
    pair: tuple[str, str],
    ways: Sequence[Link],
    before: Edge | None,
    internal: Set[tuple[str, str]],
    evidence: Evidence,
    cut: float,
) -> Edge:
    relied = any((pair[1], way.input) in internal for way in ways if way.score >= cut)
    score = max(way.score for way in ways)
    by = list(before.evidence) if before else []
    keys = [(*pair, way.output, way.input) for way in ways]
    if any(proves(found) for key in keys if (found := evidence.links.get(key))):
        by.append("execution")
    if evidence.recorded and any(key in evidence.recorded.flows and evidence.recorded.flows[key].tasks for key in keys):
        by.append("recorded")
    return Edge(
        source=pair[0],
        target=pair[1],
        weight=(STRONG if relied else WEAK) if score >= cut else INDEPENDENT,
        score=score,
        links=tuple(sorted(ways, key=lambda way: (way.input, -way.score, way.output))),
        evidence=tuple(dict.fromkeys(by or ("schema",))),
    )


def _node(node: ParameterNode, evidence: Evidence, given: bool) -> ParameterNode:
    """The parameter with what evidence says of it; execution has the last word."""
    kind, why = node.kind, list(node.evidence)
    for judge in (_by_recordings, _by_execution):
        verdict = judge(node, evidence, given)
        if verdict is not None:
            kind, reason = verdict[0] or kind, verdict[1]
            why.append(reason)
    return msgspec.structs.replace(node, kind=kind, evidence=tuple(why))


def _by_recordings(node: ParameterNode, evidence: Evidence, given: bool) -> tuple[ParameterKind | None, str] | None:
    origins = evidence.recorded.origins.get((node.tool, node.parameter)) if evidence.recorded else None
    if origins is None or not origins.told + origins.choice:
        return None
    user, all_calls = origins.user + origins.both, origins.told + origins.choice
    kind: ParameterKind | None = None
    if all_calls >= FEW:
        if origins.internal >= CLEAR * all_calls and given:
            kind = "internal"
        elif user >= CLEAR * all_calls:
            kind = "external"
        elif origins.choice >= CLEAR * all_calls:
            kind = "other"
    only = f"only a result had shown it in {origins.internal}"
    return kind, f"recorded: of {all_calls} calls the user had said it in {user}, {only}"


def _by_execution(node: ParameterNode, evidence: Evidence, given: bool) -> tuple[ParameterKind | None, str] | None:
    tried = evidence.parameters.get((node.tool, node.parameter))
    if tried is None or not tried.tried:
        return None
    accepted = len(tried.accepted)
    if tried.free == tried.tried:
        free = tried.tried >= FEW and node.kind == "internal" and not node.required
        return (
            "external" if free else None,
            f"execution: it takes any value, {tried.free} of {tried.tried} from elsewhere worked",
        )
    text = (
        f"execution: {tried.tried - tried.free} of {tried.tried} values from elsewhere failed; of {accepted} that "
        f"worked the state holds {len(tried.held)} and other tools give {len(tried.given)}"
    )
    return None, text
