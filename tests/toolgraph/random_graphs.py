"""Small random graphs, made without the matcher: whatever it may say, sampling must keep its promises."""

import random
from functools import lru_cache

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import Edge, ParameterNode, ToolGraph, ValueLink

SCHEMA = {"type": "object", "properties": {}}
KINDS = ("internal", "internal", "internal", "external", "other")


@lru_cache(maxsize=1000)
def tool(server: str, name: str, reads: bool | None) -> ToolSpec:
    return ToolSpec.model_validate(
        {"server": server, "name": name, "inputSchema": SCHEMA, "annotations": {"readOnlyHint": reads}}
    )


def random_graph(seed: int, servers: int = 1, most: int = 12) -> ToolGraph:
    """Up to `most` tools; needs may be mutual, circular, or given by nobody; edges may cross servers."""
    rng = random.Random(seed)
    tools = [
        tool(f"server{rng.randrange(servers)}", f"tool_{number}", rng.random() < 0.5)
        for number in range(rng.randint(1, most))
    ]
    density = rng.choice((0.05, 0.15, 0.3, 0.6))
    nodes, links = [], {}
    for target in tools:
        for number in range(rng.choice((0, 0, 1, 1, 2, 3))):
            node = ParameterNode(
                tool=target.full_name,
                parameter=f"p{number}",
                kind=rng.choice(KINDS),
                required=rng.random() < 0.7,
                evidence=("random",),
            )
            nodes.append(node)
            for source in tools:
                if source is not target and rng.random() < density:
                    link = ValueLink(
                        output=f"$.o{rng.randrange(3)}", input=node.parameter, score=round(rng.random(), 2)
                    )
                    links.setdefault((source.full_name, target.full_name), []).append(link)
    edges = [
        Edge(
            source=source,
            target=target,
            weight=rng.choice((1, 2, 2, 3, 3)),
            score=max(link.score for link in found),
            links=tuple(found),
            evidence=("schema", "random"),
        )
        for (source, target), found in sorted(links.items())
    ]
    return ToolGraph(tools=tuple(tools), parameters=tuple(nodes), edges=tuple(edges))


def callable_ones(graph: ToolGraph) -> set[str]:
    """Tools that can ever be called, found the slow and obvious way: again and again, until nothing is new."""
    needs = {tool.full_name: set() for tool in graph.tools}
    for node in graph.parameters:
        if node.kind == "internal" and node.required:
            needs[node.tool].add(node.parameter)
    found: set[str] = set()
    while True:
        edges = [edge for edge in graph.edges if edge.weight >= 2 and edge.source in found]
        given = {(edge.target, link.input) for edge in edges for link in edge.links}
        new = {name for name in needs if name not in found and all((name, one) in given for one in needs[name])}
        if not new:
            return found
        found |= new
