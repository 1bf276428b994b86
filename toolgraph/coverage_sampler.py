"""Chains that cover the edges of a graph in few draws: every step takes the edges that no chain has gone yet.

Greedy set cover: among the tools that a chain can take next, the one with the most uncovered edges from tools of the
chain. Chains are closed like those of the topology sampler, which goes on alone once all edges are covered.
"""

import random

from trajsmith.toolgraph.chain_draft import PartialChain
from trajsmith.toolgraph.index import SamplingNetwork
from trajsmith.toolgraph.settings import SAMPLERS, SampleSettings
from trajsmith.toolgraph.topology_sampler import PATIENCE, Step, TopologySampler


@SAMPLERS.register("coverage")
class CoverageSampler(TopologySampler):
    """Draws chains that can be called, along uncovered edges first; a draw looks at all tools once."""

    def __init__(self, network: SamplingNetwork, settings: SampleSettings) -> None:
        super().__init__(network, settings)
        self.uncovered: dict[int, set[int]] = {}
        """Tool to the successors that no chain has called after it."""
        for tool in self.usable:
            own, foreign = self.fans[tool]
            targets = set(own.targets) | (set(foreign.targets) if settings.servers > 1 else set())
            if targets:
                self.uncovered[tool] = targets

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """Draw a chain of `length` tools, as the topology sampler does, and count the edges that it covers."""
        chain = super().draw(rng, length)
        first = next((tool for tool in chain if tool in self.uncovered), None)
        left = len(self.uncovered[first]) if first is not None else 0
        for place, tool in enumerate(chain):
            rest = self.uncovered.get(tool)
            if rest is not None:
                rest.difference_update(chain[place + 1 :])
                if not rest:
                    del self.uncovered[tool]
        if first is not None and len(self.uncovered.get(first, ())) == left:
            del self.uncovered[first]  # no chain of this length holds what is left of it
        return chain

    def _next(self, rng: random.Random, draft: PartialChain, misses: int) -> Step | None:
        step = self._along_uncovered(rng, draft) if misses < PATIENCE // 2 else None
        return step or super()._next(rng, draft, misses)

    def _along_uncovered(self, rng: random.Random, draft: PartialChain) -> Step | None:
        """The tool with the most uncovered edges from the chain; at the start, the one with the most of its own."""
        gains: dict[int, int] = {}
        lead: dict[int, int] = {}
        for before in draft.chain:
            for target in self.uncovered.get(before, ()):
                gains[target] = gains.get(target, 0) + 1
                lead[target] = before
        allowed = [tool for tool in sorted(gains) if draft.welcomes(tool)]
        if allowed:
            best = max(allowed, key=lambda tool: (gains[tool], len(self.uncovered.get(tool, ())), rng.random()))
            return lead[best], best
        starts = [tool for tool in self.uncovered if draft.welcomes(tool)]
        if draft.homes:
            starts = [tool for tool in starts if self.network.server[tool] in draft.homes]
        return (None, max(starts, key=lambda tool: (len(self.uncovered[tool]), rng.random()))) if starts else None
