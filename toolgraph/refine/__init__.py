"""What a language model adds to a graph: edges with a reason, and its word on every parameter."""

from toolgraph.refine.edges import Decision, RefineSettings, refine_edges
from toolgraph.refine.parameters import classify_parameters

__all__ = ["Decision", "RefineSettings", "classify_parameters", "refine_edges"]
