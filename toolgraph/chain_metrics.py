"""Metrics of a chain's structure, for task difficulty and for comparing samplers."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from trajsmith.records import Dependency
from trajsmith.toolgraph.graph import STRONG, WEAK
from trajsmith.toolgraph.index import GraphIndex


@dataclass(frozen=True)
class ChainShape:
    """Counts of one chain."""

    length: int
    servers: int
    strong: int
    """Steps that rely on an earlier one."""
    weak: int
    """Steps that an earlier one can help, but need not."""
    independent: int
    """Steps that no edge but of weight 1 leads to from an earlier one; the first is never counted."""
    writes: int
    """Tools that may change something."""
    branches: int
    """Steps whose results several later steps use."""
    joins: int
    """Steps that take values of several earlier steps, for different parameters."""
    repeats: int
    """Steps that call a tool again."""
    open_needs: int
    """Required internal parameters without a producer before them: 0 in a chain that can be called."""


def measure_chain(index: GraphIndex, tools: Sequence[str], dependencies: Sequence[Dependency]) -> ChainShape:
    """Count one chain; `tools` are names as the index has them."""
    weights = [_weight(index, tools, step) for step in range(1, len(tools))]
    source = {(dependency.consumer, dependency.parameter): dependency.producer for dependency in reversed(dependencies)}
    used: dict[int, set[int]] = defaultdict(set)
    takes: dict[int, set[int]] = defaultdict(set)
    for (consumer, _), producer in source.items():
        used[producer].add(consumer)
        takes[consumer].add(producer)
    return ChainShape(
        length=len(tools),
        servers=len({index.specs[tool].server for tool in tools}),
        strong=sum(weight >= STRONG for weight in weights),
        weak=sum(weight == WEAK for weight in weights),
        independent=sum(weight < WEAK for weight in weights),
        writes=sum(tool not in index.reads for tool in tools),
        branches=sum(len(consumers) > 1 for consumers in used.values()),
        joins=sum(len(producers) > 1 for producers in takes.values()),
        repeats=len(tools) - len(set(tools)),
        open_needs=sum((n, one) not in source for n, tool in enumerate(tools) for one in index.needs.get(tool, ())),
    )


def _weight(index: GraphIndex, tools: Sequence[str], step: int) -> int:
    """Weight of the heaviest edge from an earlier step, 0 if there is none."""
    return max((index.weights.get((tool, tools[step]), 0) for tool in tools[:step]), default=0)
