"""What a language model adds to a graph: edges with a reason, and its word on every parameter."""

from toolgraph.refine.edges import EDGES, Decision, refine_edges
from toolgraph.refine.parameters import PARAMETERS, classify_parameters
from toolgraph.settings import RefineSettings

__all__ = ["EDGES", "PARAMETERS", "Decision", "RefineSettings", "classify_parameters", "refine_edges"]
