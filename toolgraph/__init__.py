"""The tool graph: matching, parameter kinds, weighted edges, and sampling of chains that can be called."""

from toolgraph.build import GraphSettings, build_graph, check_schema
from toolgraph.graph import Edge, GraphIndex, Link, ParameterNode, ToolGraph
from toolgraph.sample import Sampler, SampleSettings, closure_depths, sample_chains

__all__ = [
    "Edge",
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
    "sample_chains",
]
