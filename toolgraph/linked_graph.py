"""The graph of a linked world: those of its environments as one server, and an edge for each value that crosses."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from trajsmith.grounding import list_input_fields, list_output_fields, split_path, split_reference
from trajsmith.phrasing import ScenarioBook
from trajsmith.records import EnvironmentSpec, ToolSpec
from trajsmith.toolgraph.graph import WEAK, Edge, LinkEvidence, LinkKey, ToolGraph, ValueLink

DECLARED = 0.9
"""Score of a link that the stories of a world declare."""


def list_declared_links(
    book: ScenarioBook, spec: EnvironmentSpec, homes: Mapping[str, tuple[str, str]]
) -> set[LinkKey]:
    """Return the links between environments that stories make: a result of one step is an argument of another.

    Args:
        book: Stories of the world.
        spec: The environments as one.
        homes: Tool to its environment and its name there.
    """
    tools = {tool.name: tool for tool in spec.tools}
    links: set[LinkKey] = set()
    for scenario in book.scenarios:
        for step in scenario.steps:
            for parameter, reference in step.same_as.items():
                name, field, _ = split_reference(reference)
                earlier = scenario.find_step(name)
                if earlier is None or homes[earlier.tool][0] == homes[step.tool][0]:
                    continue
                source, target = tools[earlier.tool], tools[step.tool]
                inputs = [leaf.path for leaf in list_input_fields(target) if parameter in (leaf.path, leaf.name)]
                for output in _list_outputs(source, field):
                    links.update((source.full_name, target.full_name, output, leaf) for leaf in inputs)
    return links


def _list_outputs(tool: ToolSpec, field: str) -> list[str]:
    wanted = tuple(field.split("."))
    paths = [leaf.path for leaf in list_output_fields(tool)]
    names = {path: tuple(part for part in split_path(path) if part != "*") for path in paths}
    return [path for path in paths if names[path][-len(wanted) :] == wanted]


def compose_graph(
    parts: ToolGraph,
    spec: EnvironmentSpec,
    homes: Mapping[str, tuple[str, str]],
    declared: Iterable[LinkKey],
    executed: Iterable[LinkEvidence] = (),
) -> ToolGraph:
    """Return the graph of a world.

    Args:
        parts: Graph with the environments as servers of their own.
        spec: The environments as one.
        homes: Tool of the world to its environment and its name there.
        declared: Links between environments.
        executed: What execution says of them.
    """
    proved = {row.key for row in executed if row.worked}
    names = {f"{environment}.{tool}": f"{spec.name}.{own}" for own, (environment, tool) in homes.items()}
    inside = [parts.inside[name] for name in dict.fromkeys(environment for environment, _ in homes.values())]
    nodes = [replace(node, tool=names[node.tool]) for part in inside for node in part.parameters]
    edges = [
        replace(edge, source=names[edge.source], target=names[edge.target]) for part in inside for edge in part.edges
    ]
    crossing: dict[tuple[str, str], list[LinkKey]] = defaultdict(list)
    for key in sorted(declared):
        crossing[key[0], key[1]].append(key)
    for (source, target), keys in crossing.items():
        links = tuple(ValueLink(output=output, input=leaf, score=DECLARED) for _, _, output, leaf in keys)
        evidence = ("declared", "execution") if not proved.isdisjoint(keys) else ("declared",)
        edges.append(Edge(source=source, target=target, weight=WEAK, score=DECLARED, links=links, evidence=evidence))
    return ToolGraph(tools=spec.tools, parameters=tuple(nodes), edges=tuple(edges))


def score_world_links(parts: ToolGraph, declared: Iterable[LinkKey]) -> dict[LinkKey, float]:
    """Return the score of each link of a world, those between its environments with them.

    Args:
        parts: Graph of the world without links between its environments.
        declared: Links between them.
    """
    inside = {
        (edge.source, edge.target, link.output, link.input): link.score for edge in parts.edges for link in edge.links
    }
    return inside | dict.fromkeys(declared, DECLARED)
