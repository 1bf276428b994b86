"""What must be called before a tool can be called: its internal parameters, who gives them, and what those need."""

from collections import deque
from dataclasses import dataclass

from trajsmith.records import InputError
from trajsmith.toolgraph.index import GraphIndex


@dataclass(frozen=True)
class Prerequisite:
    """One required internal parameter, of the tool that is asked about or of a tool that is needed before it."""

    tool: str
    parameter: str
    givers: tuple[str, ...]
    """Tools that give it, best first; empty if none does."""
    depth: int
    """0 for the tool itself, 1 for its best givers, and so on."""


def find_prerequisites(index: GraphIndex, tool: str, max_depth: int = 3) -> list[Prerequisite]:
    """Return what a tool needs before it can be called, itself first, following the best giver of every parameter.

    The time depends on what the tool needs, not on the size of the graph.

    Args:
        index: Look-ups over the graph; names as the index has them.
        tool: The tool to call.
        max_depth: Levels of givers that are followed.

    Raises:
        InputError: The index has no such tool.
    """
    if tool not in index.specs:
        raise InputError(f"the graph has no tool {tool!r}; `trajsmith graph show` lists them")
    rows: list[Prerequisite] = []
    waiting, seen = deque([(tool, 0)]), {tool}
    while waiting:
        name, depth = waiting.popleft()
        for parameter in index.needs.get(name, ()):
            links = index.producers.get((name, parameter), ())
            scores: dict[str, float] = {}
            for source, link in links:
                scores[source] = max(scores.get(source, 0.0), link.score)
            givers = tuple(sorted(scores, key=lambda source: (-scores[source], source not in index.reads, source)))
            rows.append(Prerequisite(name, parameter, givers, depth))
            if givers and givers[0] not in seen and depth < max_depth:
                seen.add(givers[0])
                waiting.append((givers[0], depth + 1))
    return rows
