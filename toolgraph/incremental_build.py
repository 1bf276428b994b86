"""Incremental rebuild: each server's part of the graph is keyed by the digest of its inputs.

What a graph says inside a server depends on that server's tools alone, and what it says between servers on who comes
first for a key (`toolgraph.cross_server`). So when one server changes, its part is built anew, and the parts of those
servers that the change reaches; the others are taken over. The result equals a full build, byte for byte.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from trajsmith.records import ToolSpec, content_hash, hash_bytes
from trajsmith.toolgraph.build import GraphSettings, build_graph_and_keys
from trajsmith.toolgraph.cross_server import ServerKeys, find_reached_servers, list_server_keys
from trajsmith.toolgraph.endpoint_table import build_table
from trajsmith.toolgraph.graph import ParameterNode, ToolGraph
from trajsmith.toolgraph.match import Similarity, sort_by_server
from trajsmith.toolgraph.tool_findings import deduplicate_tools

PACKAGES = ("toolgraph", "grounding")
"""Whose code and data decide what a graph says."""
_NAME_ENDS = re.compile("[ :]")
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
    known = {} if old is None or old.parts is None or old.keys is None else old.parts
    ordered = list(dict.fromkeys(tool.full_name for tool in tools))
    if old is not None and known == parts and [tool.full_name for tool in old.tools] == ordered:
        return old
    changed = {server for server in known.keys() | parts.keys() if known.get(server) != parts.get(server)}
    if old is None or not known or changed >= parts.keys():
        whole, keys = build_graph_and_keys(tools, settings, similarity)
        return whole.model_copy(
            update={"parts": parts, "keys": _plain(keys), "findings": tuple(sorted(whole.findings))}
        )
    keys = {name: ServerKeys(*row) for name, row in (old.keys or {}).items()}
    mine = list_changed_keys(tools, changed) if settings.cross_server else {}
    after = {name: row for name, row in keys.items() if name not in changed} | mine
    reached, beside = find_reached_servers(keys, after, changed)
    anew = reached | (changed & parts.keys())
    fresh, _ = build_graph_and_keys([tool for tool in tools if tool.server in anew | beside], settings, similarity)
    merged = _merged(old, fresh, ordered, parts.keys() - anew)
    return merged.model_copy(update={"parts": parts, "keys": _plain(after)})


def _plain(keys: Mapping[str, ServerKeys]) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the keys as the graph's file holds them."""
    return {name: tuple(keys[name]) for name in sorted(keys)}


def list_changed_keys(tools: Sequence[ToolSpec], changed: Collection[str]) -> dict[str, ServerKeys]:
    """Return the keys of the changed servers."""
    distinct, _ = deduplicate_tools([tool for tool in tools if tool.server in changed])
    return list_server_keys(build_table(sort_by_server(distinct)))


def compute_part_digests(tools: Iterable[ToolSpec], settings: GraphSettings) -> dict[str, str]:
    """Server to the digest of its tools, the settings and the builder itself."""
    by_server: dict[str, list[ToolSpec]] = {}
    for tool in tools:
        by_server.setdefault(tool.server, []).append(tool)
    basis = [settings.model_dump(mode="json", exclude={"execution", "refine"}), compute_builder_digest()]
    return {
        server: content_hash([*basis, [tool.model_dump(mode="json", exclude_none=True) for tool in specs]])
        for server, specs in by_server.items()
    }


@lru_cache(maxsize=1)
def compute_builder_digest() -> str:
    """Hash of the code and data that build graphs: another version of trajsmith takes nothing over."""
    root = Path(__file__).parents[1]
    files = (file for package in PACKAGES for file in (root / package).rglob("*") if file.suffix in SUFFIXES)
    return content_hash({str(file.relative_to(root)): hash_bytes(file.read_bytes()) for file in files})


def _merged(old: ToolGraph, fresh: ToolGraph, ordered: Sequence[str], kept_servers: Collection[str]) -> ToolGraph:
    """Parts of the kept servers from `old`, the others from `fresh`, tools in their order; an edge is its target's."""
    stays = {tool.full_name: tool for tool in old.tools if tool.server in kept_servers}
    tools = fresh.by_name | stays
    nodes: dict[str, list[ParameterNode]] = {name: [] for name in ordered}
    for node in old.parameters:
        if node.tool in stays:
            nodes[node.tool].append(node)
    for node in fresh.parameters:
        if node.tool not in stays:
            nodes[node.tool].append(node)
    edges = [edge for edge in old.edges if edge.target in stays]
    return ToolGraph(
        tools=tuple(tools[name] for name in ordered),
        parameters=tuple(node for group in nodes.values() for node in group),
        edges=tuple(
            sorted(
                [*edges, *(edge for edge in fresh.edges if edge.target not in stays)],
                key=lambda edge: (edge.source, edge.target),
            )
        ),
        findings=tuple(sorted([*_findings(old, kept_servers), *_findings(fresh, fresh.inside.keys() - kept_servers)])),
        evidence=tuple(row for row in old.evidence if row.source in stays and row.target in stays),
    )


def _findings(graph: ToolGraph, servers: Collection[str]) -> list[str]:
    """Return the findings about tools of these servers; every finding begins with its tool's name."""
    return [
        finding
        for finding in graph.findings
        if any(
            (tool := graph.by_name.get(finding[5 : end.start()])) is not None and tool.server in servers
            for end in _NAME_ENDS.finditer(finding, 6)
        )
    ]
