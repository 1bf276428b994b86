"""Applies evidence to a graph: final scores of links, edges, parameter kinds.

A link's score is that of its schemas, moved by what recordings say of it, moved by what execution says of it (see
`trajsmith.toolgraph.evidence.score_rule`). A link makes an edge from the same threshold as before. Parameters that
evidence finds to be internal or external change their kind; a required internal parameter always keeps a way to be
filled.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec
import numpy as np

from trajsmith.records import ToolSpec
from trajsmith.toolgraph.build import LAST_RESORT, GraphSettings
from trajsmith.toolgraph.endpoint_table import build_table
from trajsmith.toolgraph.evidence.contrast_tests import ParameterTrials
from trajsmith.toolgraph.evidence.execution import ExecutionEvidence
from trajsmith.toolgraph.evidence.recorded_flows import RecordedEvidence
from trajsmith.toolgraph.evidence.score_rule import (
    ENOUGH,
    REFUTED,
    is_proved,
    is_refuted,
    score_from_execution,
    score_from_recordings,
)
from trajsmith.toolgraph.evidence.state_probe import UNDECLARED
from trajsmith.toolgraph.graph import (
    INDEPENDENT,
    STRONG,
    WEAK,
    Edge,
    LinkEvidence,
    LinkKey,
    ParameterKind,
    ParameterNode,
    ToolGraph,
    ValueLink,
)
from trajsmith.toolgraph.link_scoring import score_links
from trajsmith.toolgraph.match import Similarity, sort_by_server

CLEAR = 0.7
"""Share of the calls from which a kind is clear (README of the open sets: 30 to 70 % is mixed)."""
FEW = 3
"""Calls or values from which a parameter is judged."""
HARDLY_REFUSED = 0.75
"""Share of values from elsewhere that must work before a parameter takes anything: of `ENOUGH` values, the fewest that
are judged, one may fail."""


@dataclass
class GraphEvidence:
    """All evidence beyond the schemas."""

    recorded: RecordedEvidence | None = None
    executed: Sequence[ExecutionEvidence] = ()
    links: dict[LinkKey, LinkEvidence] = field(init=False)
    """By execution."""
    parameters: dict[tuple[str, str], ParameterTrials] = field(init=False)

    def __post_init__(self) -> None:
        self.links = {row.key: row for one in self.executed for row in one.links}
        self.parameters = {key: tried for one in self.executed for key, tried in one.parameters.items()}

    @property
    def targets(self) -> set[str]:
        """Full names of the tools of which anything was found."""
        targets = {key[1] for key in self.links} | {tool for tool, _ in self.parameters}
        if self.recorded is not None:
            targets |= {tool for tool, _ in self.recorded.origins}
        return targets

    def count_recorded(self, tool: str, parameter: str) -> int:
        """Count the recorded calls that fill a parameter with a value of known origin."""
        origins = None if self.recorded is None else self.recorded.origins.get((tool, parameter))
        return origins.known_origins if origins is not None else 0

    def takes_anything(self, tool: str, parameter: str) -> bool:
        """Return True if hardly a value from elsewhere is refused."""
        tried = self.parameters.get((tool, parameter))
        return tried is not None and tried.tried >= ENOUGH and tried.free >= HARDLY_REFUSED * tried.tried

    def score_by_execution(self, key: LinkKey, score: float) -> float:
        """Score of a link after execution; `score` is what schemas or recordings say.

        An output that no result has gives nothing. Of a parameter that takes anything only those links are left that
        recorded calls show, if there are any; where a few show what fills it, execution adds no link.
        """
        link = self.links.get(key)
        executed = score if link is None else score_from_execution(score, link)
        filled = self.count_recorded(key[1], key[3])
        needless = filled and self.takes_anything(key[1], key[3])
        if needless or any((key[0], key[2]) in one.absent for one in self.executed):
            flow = None if self.recorded is None else self.recorded.flows.get(key)
            executed = executed if flow is not None and flow.tasks else min(executed, REFUTED)
        return min(score, executed) if filled >= FEW else executed

    @property
    def rows(self) -> tuple[LinkEvidence, ...]:
        """As the graph keeps them."""
        recorded = self.recorded.evidence() if self.recorded else ()
        return (*(self.links[key] for key in sorted(self.links)), *recorded)

    @property
    def findings(self) -> list[str]:
        findings = [text for one in self.executed for text in one.findings]
        unknown = sorted(self.recorded.unknown) if self.recorded else []
        if unknown:
            findings.append(
                f"recorded calls of {len(unknown)} tools that the graph does not have: {', '.join(unknown[:5])}"
            )
        return findings


def compute_schema_scores(
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
    links = score_links(build_table(sort_by_server(unique), similarity), settings.model, settings.cross_server)
    table = links.table
    names = [tool.full_name for tool in table.tools]
    outputs = [end.field.path for end in table.outputs.endpoints]
    inputs = [end.field.path for end in table.parameters.endpoints]
    wanted = np.array([targets is None or name in targets for name in names], bool)[links.target]
    columns = (links.source, links.target, links.output, links.parameter, links.score)
    rows = zip(*(column[wanted].tolist() for column in columns), strict=True)
    return {(names[s], names[t], outputs[o], inputs[p]): score for s, t, o, p, score in rows}


def apply_evidence(
    graph: ToolGraph, evidence: GraphEvidence, scores: Mapping[LinkKey, float], settings: GraphSettings | None = None
) -> ToolGraph:
    """The graph as it is after looking at evidence; a later `--update` builds it anew.

    Args:
        graph: As the schemas make it.
        evidence: What was found.
        scores: From `schema_scores`, of the same tools.
        settings: Those that the graph was built with.
    """
    cut = (settings or GraphSettings()).model.threshold
    final = compute_final_scores(evidence, scores, cut)
    filled = {(key[1], key[3]) for key, score in final.items() if score >= cut}
    nodes = tuple(_node(node, evidence, (node.tool, node.parameter) in filled) for node in graph.parameters)
    old_links = {
        (edge.source, edge.target, link.output, link.input): link for edge in graph.edges for link in edge.links
    }
    chosen = {key for key, score in final.items() if score >= cut} | {
        key for key in old_links if final.get(key, old_links[key].score) >= LAST_RESORT
    }
    chosen -= _vague(chosen, evidence)
    chosen |= _only_ways(old_links, chosen, nodes, evidence)
    links: dict[tuple[str, str], list[ValueLink]] = defaultdict(list)
    for source, target, output, parameter in sorted(chosen):
        score = final.get((source, target, output, parameter))
        score = old_links[source, target, output, parameter].score if score is None else round(score, 4)
        links[source, target].append(ValueLink(output=output, input=parameter, score=score))
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


def compute_final_scores(
    evidence: GraphEvidence, scores: Mapping[LinkKey, float], threshold: float
) -> dict[LinkKey, float]:
    """Score of every link that matching sees or that evidence speaks of."""
    keys = scores.keys() | evidence.links.keys()
    if evidence.recorded is not None:
        keys |= evidence.recorded.flows.keys()
    final = {}
    for key in keys:
        score = scores.get(key, 0.0)
        if evidence.recorded is not None:
            score = score_from_recordings(key, score, evidence.recorded, threshold)
        final[key] = evidence.score_by_execution(key, score)
    return final


def _vague(chosen: Iterable[LinkKey], evidence: GraphEvidence) -> set[LinkKey]:
    """Links of undeclared results whose real field execution has shown."""
    shown = {(key[0], key[1], key[3]) for key, link_evidence in evidence.links.items() if is_proved(link_evidence)}
    return {key for key in chosen if key[2] == UNDECLARED and (key[0], key[1], key[3]) in shown}


def _only_ways(
    scored: Mapping[LinkKey, ValueLink],
    chosen: Iterable[LinkKey],
    nodes: Sequence[ParameterNode],
    evidence: GraphEvidence,
) -> set[LinkKey]:
    """The best former link of required internal parameters that would have none, unless execution refuted it."""
    filled = {(target, parameter) for _, target, _, parameter in chosen}
    needy = {(node.tool, node.parameter) for node in nodes if node.required and node.kind == "internal"} - filled
    best: dict[tuple[str, str], LinkKey] = {}
    for key in sorted(scored, key=lambda key: (scored[key].score, key)):
        link_evidence = evidence.links.get(key)
        if key[1::2] in needy and not (link_evidence is not None and is_refuted(link_evidence)):
            best[key[1], key[3]] = key
    return set(best.values())


def _edge(
    pair: tuple[str, str],
    ways: Sequence[ValueLink],
    before: Edge | None,
    internal: Set[tuple[str, str]],
    evidence: GraphEvidence,
    cut: float,
) -> Edge:
    relied = any((pair[1], way.input) in internal for way in ways if way.score >= cut)
    score = max(way.score for way in ways)
    by = list(before.evidence) if before else []
    keys = [(*pair, way.output, way.input) for way in ways]
    if any(is_proved(link_evidence) for key in keys if (link_evidence := evidence.links.get(key))):
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


def _node(node: ParameterNode, evidence: GraphEvidence, filled: bool) -> ParameterNode:
    """The parameter with what evidence says of it; execution has the last word."""
    kind, why = node.kind, list(node.evidence)
    for judge in (_by_recordings, _by_execution):
        verdict = judge(node, evidence, filled)
        if verdict is not None:
            kind, reason = verdict[0] or kind, verdict[1]
            why.append(reason)
    return msgspec.structs.replace(node, kind=kind, evidence=tuple(why))


def _by_recordings(
    node: ParameterNode, evidence: GraphEvidence, filled: bool
) -> tuple[ParameterKind | None, str] | None:
    origins = evidence.recorded.origins.get((node.tool, node.parameter)) if evidence.recorded else None
    if origins is None or not origins.known_origins + origins.choice:
        return None
    user, all_calls = origins.user + origins.both, origins.known_origins + origins.choice
    kind: ParameterKind | None = None
    if all_calls >= FEW:
        if origins.internal >= CLEAR * all_calls and filled:
            kind = "internal"
        elif user >= CLEAR * all_calls:
            kind = "external"
        elif origins.choice >= CLEAR * all_calls:
            kind = "other"
    only = f"only a result had shown it in {origins.internal}"
    return kind, f"recorded: of {all_calls} calls the user had said it in {user}, {only}"


def _by_execution(
    node: ParameterNode, evidence: GraphEvidence, filled: bool
) -> tuple[ParameterKind | None, str] | None:
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
        f"worked the state holds {len(tried.held)} and other tools give {len(tried.given_elsewhere)}"
    )
    return None, text
