"""The tool graph: matching, parameter kinds, weighted edges, and sampling of chains that can be called."""

from trajsmith.toolgraph.build import GraphSettings, build_graph, check_schema
from trajsmith.toolgraph.graph import Edge, ParameterNode, ToolGraph, ValueLink
from trajsmith.toolgraph.incremental_build import update_graph
from trajsmith.toolgraph.index import GraphIndex, compute_closure_depths
from trajsmith.toolgraph.linked_graph import compose_graph, list_declared_links, score_world_links
from trajsmith.toolgraph.prerequisites import Prerequisite, find_prerequisites
from trajsmith.toolgraph.sampling import Sampler, sample_across, sample_chains
from trajsmith.toolgraph.sampling_plan import EnvironmentWish, PlanTarget, SamplingPlan, choose_chains
from trajsmith.toolgraph.settings import SAMPLERS, ChainSampler, ExecutionSettings, SampleSettings
from trajsmith.toolgraph.tool_lists import read_tool_list

__all__ = [
    "SAMPLERS",
    "ChainSampler",
    "Edge",
    "EnvironmentWish",
    "ExecutionSettings",
    "GraphIndex",
    "GraphSettings",
    "ParameterNode",
    "PlanTarget",
    "Prerequisite",
    "SampleSettings",
    "Sampler",
    "SamplingPlan",
    "ToolGraph",
    "ValueLink",
    "build_graph",
    "check_schema",
    "choose_chains",
    "compose_graph",
    "compute_closure_depths",
    "find_prerequisites",
    "list_declared_links",
    "read_tool_list",
    "sample_across",
    "sample_chains",
    "score_world_links",
    "update_graph",
]
