"""What a language model adds to a graph: edges with a reason, and its word on every parameter."""

from trajsmith.toolgraph.refine.edges import EDGES, EdgeDecision, refine_edges
from trajsmith.toolgraph.refine.parameters import PARAMETERS, classify_parameters
from trajsmith.toolgraph.settings import GraphRefineSettings

__all__ = ["EDGES", "PARAMETERS", "EdgeDecision", "GraphRefineSettings", "classify_parameters", "refine_edges"]
