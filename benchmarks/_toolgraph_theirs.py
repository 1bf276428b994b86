"""EnvFactory's tools and its published samplers, run from a checkout as they are, on a graph of ours.

The samplers walk over tools, parameters and relations of their own classes; these are filled from our graph, so that
all samplers see the same edges. What their modules import beside (plots, model clients) is not needed for that, and is
stood in for. Needs networkx.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from trajsmith.environments.file_reading import read_json
from trajsmith.records import ToolSpec
from trajsmith.toolgraph import ToolGraph

UNUSED = (
    "matplotlib", "matplotlib.pyplot", "matplotlib.patches", "matplotlib.cm", "matplotlib.colors", "matplotlib.lines",
    "tqdm", "src.graph.prompts", "src.manager.llm_client_manager", "src.utils.utils",
)  # fmt: skip
"""Modules that theirs import and that drawing a chain never calls."""

Draw = Callable[[int], list[str]]


def published_tools(checkout: Path) -> list[ToolSpec]:
    """The tools that the metadata of a checkout declares; empty if there is none."""
    tools = []
    for path in sorted((checkout / "envs" / "metadata").glob("*_metadata.json")):
        entry = read_json(path)
        for tool in entry["tools"]:
            tools.append(
                ToolSpec(
                    server=entry["class_name"],
                    name=tool["name"],
                    description=tool.get("description") or "",
                    input_schema=tool.get("input_schema") or {"type": "object"},
                    output_schema=tool.get("output_schema"),
                )
            )
    return tools


def published_samplers(checkout: Path, graph: ToolGraph, length: int) -> dict[str, Draw]:
    """Name to a function that draws a chain of full names from a seed."""
    sys.modules.update({name: MagicMock() for name in UNUSED})
    sys.path.insert(0, str(checkout))
    from src.graph import sampler as samplers
    from src.graph import tool_graph

    theirs, names = _filled(tool_graph, graph)

    def drawn(sampler: Any) -> Draw:
        return lambda seed: [names[id(tool)] for tool in theirs.sample(sampler, length, seed=seed).init_tool_chain]

    return {
        "EnvFactory's code, topology": drawn(samplers.TopologySampler()),
        "EnvFactory's code, random walk": drawn(samplers.RandomWalkSampler()),
    }


def _filled(module: Any, graph: ToolGraph) -> tuple[Any, dict[int, str]]:
    """Their graph with our tools, parameters and edges; and the full name of each of their tools."""
    theirs, kinds = module.ToolGraph(), module.EdgeType
    theirs.server_to_tools = {}
    tools = {spec.full_name: module.Tool({"server": spec.server, "name": spec.full_name}) for spec in graph.tools}
    for tool in tools.values():
        theirs.graph.add_node(tool)
        theirs.server_to_tools.setdefault(tool.server, []).append(tool)
    inputs, outputs = {}, {}
    for node in graph.parameters:
        parameter = inputs[node.tool, node.parameter] = module.Parameter(node.parameter, "", "string")
        parameter.set_user_provided(node.kind != "internal")
        tools[node.tool].input_schema["parameters"].append(parameter)
        theirs.graph.add_edge(parameter, tools[node.tool], edge_type=kinds.Tool_Input, required=node.required)
    for edge in graph.edges:
        theirs.graph.add_edge(tools[edge.source], tools[edge.target], edge_type=kinds.Tool_Depend)
        for link in edge.links:
            output = outputs.get((edge.source, link.output))
            if output is None:
                output = outputs[edge.source, link.output] = module.Parameter(link.output, "", "string")
                tools[edge.source].output_schema["parameters"].append(output)
                theirs.graph.add_edge(tools[edge.source], output, edge_type=kinds.Tool_Output)
            theirs.graph.add_edge(output, inputs[edge.target, link.input], edge_type=kinds.Parameter_Relate)
    return theirs, {id(tool): name for name, tool in tools.items()}
