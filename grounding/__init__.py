"""Finding arguments that make calls succeed, by execution; provenance of every argument."""

from grounding.known import leaves, needed, selector_key
from grounding.references import Unresolved, resolve
from grounding.search import Grounder, GroundSettings, is_empty

__all__ = ["GroundSettings", "Grounder", "Unresolved", "is_empty", "leaves", "needed", "resolve", "selector_key"]
