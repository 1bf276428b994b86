"""The tool graph: matching, parameter kinds, weighted edges, and sampling of chains that can be called."""

from toolgraph.build import GraphSettings, build_graph, check_schema
from toolgraph.graph import Edge, Link, ParameterNode, ToolGraph
from toolgraph.index import GraphIndex, closure_depths
from toolgraph.sample import Sampler, sample_across, sample_chains
from toolgraph.settings import ExecutionSettings, SampleSettings

__all__ = [
    "Edge",
    "ExecutionSettings",
    "GraphIndex",
    "GraphSettings",
    "Link",
    "ParameterNode",
    "SampleSettings",
    "Sampler",
    "ToolGraph",
    "build_graph",
    "check_schema",
    "closure_depths",
    "sample_across",
    "sample_chains",
]
