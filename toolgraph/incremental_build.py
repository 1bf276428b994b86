"""Incremental rebuild: each server's part of the graph is keyed by the digest of its inputs.

What a graph says inside a server depends on that server's tools alone. So when one server changes, its part is built
anew and the others are taken over; the result equals a full build, byte for byte. Edges between servers are another
matter: there the tools of all servers compete for every parameter, so a change anywhere builds them all anew. Graphs
without them (`cross_server: false`) are updated in the time that the changed servers take.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from trajsmith.records import ToolSpec, content_hash, hash_bytes
from trajsmith.toolgraph.build import GraphSettings, build_graph
from trajsmith.toolgraph.graph import ParameterNode, ToolGraph
from trajsmith.toolgraph.match import Similarity

PACKAGES = ("toolgraph", "grounding")
"""Whose code and data decide what a graph says."""
SUFFIXES = frozenset({".py", ".json", ".npz", ".npy"})


def update_graph(
    old: ToolGraph | None,
    tools: Sequence[ToolSpec],
    settings: GraphSettings | None = None,
    similarity: Similarity | None = None,
) -> ToolGraph:
    """The graph of `tools`, taking over from `old` what still holds; without `old`, a full build.

    Raises:
        InputError: A tool cannot be used.
    """
    settings = settings or GraphSettings()
    parts = compute_part_digests(tools, settings)
    known = {} if old is None or old.parts is None else old.parts
    ordered = list(dict.fromkeys(tool.full_name for tool in tools))
    if old is not None and known == parts and [tool.full_name for tool in old.tools] == ordered:
        return old
    changed = {server for server, digest in parts.items() if known.get(server) != digest}
    if old is None or changed == parts.keys() or settings.cross_server:
        whole = build_graph(tools, settings, similarity)
        return whole.model_copy(update={"parts": parts, "findings": tuple(sorted(whole.findings))})
    fresh = build_graph([tool for tool in tools if tool.server in changed], settings, similarity)
    return _merged(old, fresh, ordered, parts.keys() - changed).model_copy(update={"parts": parts})


def compute_part_digests(tools: Iterable[ToolSpec], settings: GraphSettings) -> dict[str, str]:
    """Server to the digest of its tools, the settings and the builder itself."""
    by_server: dict[str, list[object]] = {}
    for tool in tools:
        by_server.setdefault(tool.server, []).append(tool.model_dump(mode="json", exclude_none=True))
    basis = [settings.model_dump(mode="json", exclude={"execution", "refine"}), compute_builder_digest()]
    return {server: content_hash([*basis, specs]) for server, specs in by_server.items()}


@lru_cache(maxsize=1)
def compute_builder_digest() -> str:
    """Hash of the code and data that build graphs: another version of trajsmith takes nothing over."""
    root = Path(__file__).parents[1]
    files = (file for package in PACKAGES for file in (root / package).rglob("*") if file.suffix in SUFFIXES)
    return content_hash({str(file.relative_to(root)): hash_bytes(file.read_bytes()) for file in files})


def _merged(old: ToolGraph, fresh: ToolGraph, ordered: Sequence[str], kept_servers: Collection[str]) -> ToolGraph:
    """Parts of the kept servers from `old`, the others from `fresh`, in the order of the tools."""
    stays = {tool.full_name: tool for tool in old.tools if tool.server in kept_servers}
    tools = stays | fresh.by_name
    nodes: dict[str, list[ParameterNode]] = {name: [] for name in ordered}
    for node in (*(node for node in old.parameters if node.tool in stays), *fresh.parameters):
        nodes[node.tool].append(node)
    edges = [edge for edge in old.edges if edge.source in stays and edge.target in stays]
    return ToolGraph(
        tools=tuple(tools[name] for name in ordered),
        parameters=tuple(node for group in nodes.values() for node in group),
        edges=tuple(sorted([*edges, *fresh.edges], key=lambda edge: (edge.source, edge.target))),
        findings=tuple(sorted([*_findings(old, kept_servers), *fresh.findings])),
        evidence=tuple(row for row in old.evidence if row.source in stays and row.target in stays),
    )


def _findings(graph: ToolGraph, servers: Collection[str]) -> list[str]:
    """Return the findings about tools of these servers; every finding begins with its tool's name."""
    others = (tool.full_name for tool in graph.tools if tool.server not in servers)
    foreign = tuple(f"tool {name}{end}" for name in others for end in (" ", ":"))
    return [finding for finding in graph.findings if not finding.startswith(foreign)]
