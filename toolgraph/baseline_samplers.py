"""Baseline samplers: EnvFactory's Algorithms 1 and 2, a random walk, and Agent-World's weighted walk.

None of them promises that a chain can be called. They work on the same index as ours, by numbers.
"""

import random
from collections import deque
from itertools import accumulate

from trajsmith.toolgraph.graph import INDEPENDENT, STRONG, WEAK
from trajsmith.toolgraph.index import SamplingNetwork, Slot
from trajsmith.toolgraph.settings import SAMPLERS, SampleSettings

IDLE = 20
"""Steps of Algorithm 1 without a new tool, after which it starts anew elsewhere."""


class _NetworkSampler:
    """A sampler over the tools of a network."""

    def __init__(self, network: SamplingNetwork, settings: SampleSettings) -> None:
        self.network = network
        self.settings = settings
        self.count = len(network.names)


@SAMPLERS.register("envfactory")
class EnvFactorySampler(_NetworkSampler):
    """EnvFactory's topology sampling by its text (3.3.2 and Appendix H)."""

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """Algorithms 1 and 2 as the paper's text describes them: valid parameters are skipped but for 10 %, priors
        stand before what they are for, and one to k neighbours are queued (Appendix H draws one: `branches: 1`).

        A dead end, or a circle of tools that are all there already, starts anew, as any implementation must: the
        pseudocode would never end there.
        """
        visited: dict[int, None] = {}
        queue = deque([rng.randrange(self.count)])
        idle = 0
        while len(visited) < length:
            before = len(visited)
            tool = queue.popleft() if queue and idle < IDLE else rng.randrange(self.count)
            visited |= dict.fromkeys(self._priors(rng, visited, tool, 0))
            visited[tool] = None
            queue.extend(self._neighbours(rng, tool, rng.randint(1, self.settings.branches)))
            idle = idle + 1 if len(visited) == before else 0
        return list(visited)

    def _priors(self, rng: random.Random, visited: dict[int, None], tool: int, depth: int) -> list[int]:
        if depth >= self.settings.max_depth:
            return []
        priors: dict[int, None] = {}
        for slot, free in self._parameters(tool):
            valid = free or any(giver in visited or giver in priors for giver in slot.givers)
            if (valid and rng.random() >= self.settings.extra_prior) or not slot.givers:
                continue
            prior = rng.choice(slot.all_givers)
            if prior not in visited and prior not in priors:
                priors |= dict.fromkeys(self._priors(rng, visited | priors, prior, depth + 1))
                priors[prior] = None
        return list(priors)

    def _parameters(self, tool: int) -> list[tuple[Slot, bool]]:
        """Every parameter that some tool gives, and whether it is valid anyhow: optional, or known to people."""
        valid = (*self.network.wants[tool], *self.network.knows[tool])
        return [*((slot, False) for slot in self.network.needs[tool]), *((slot, True) for slot in valid)]

    def _neighbours(self, rng: random.Random, tool: int, most: int) -> list[int]:
        options = self.network.after[tool]
        return [target for target, _ in rng.sample(options, min(most, len(options)))]


@SAMPLERS.register("envfactory_pseudocode")
class EnvFactoryPseudocodeSampler(EnvFactorySampler):
    """EnvFactory's listings to the letter."""

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """Algorithms 1 and 2 to the letter: the start stands before its own priors, line 7 skips a valid parameter
        with 10 % only, a prior stands before what it is for (line 20), one neighbour is queued."""
        start = rng.randrange(self.count)
        visited, queue, idle = {start: None}, deque([start]), 0
        while len(visited) < length:
            before = len(visited)
            tool = queue.popleft() if queue and idle < IDLE else rng.randrange(self.count)
            visited |= dict.fromkeys(self._priors_by_letter(rng, visited, tool, 0))
            visited[tool] = None
            queue.extend(self._neighbours(rng, tool, 1))
            idle = idle + 1 if len(visited) == before else 0
        return list(visited)

    def _priors_by_letter(self, rng: random.Random, visited: dict[int, None], tool: int, depth: int) -> list[int]:
        priors: dict[int, None] = {}
        if depth >= self.settings.max_depth:
            return []
        seen = dict(visited)
        for slot, free in self._parameters(tool):
            valid = free or not seen.keys().isdisjoint(slot.givers)
            if (valid and rng.random() < self.settings.extra_prior) or not slot.givers:
                continue
            prior = rng.choice(slot.all_givers)
            if prior not in seen:
                below = self._priors_by_letter(rng, seen, prior, depth + 1)
                seen[prior] = None
                priors |= {prior: None, **dict.fromkeys(below)}
        return list(priors)


@SAMPLERS.register("random_walk")
class RandomWalkSampler(_NetworkSampler):
    """A walk along the edges."""

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """Go from tool to tool along any edge; a dead end goes on anywhere."""
        chain = [rng.randrange(self.count)]
        while len(chain) < length:
            options = self.network.after[chain[-1]]
            chain.append(rng.choice(options)[0] if options else rng.randrange(self.count))
        return chain


@SAMPLERS.register("weighted_walk")
class WeightedWalkSampler(_NetworkSampler):
    """Agent-World's walk (3.1.1)."""

    def __init__(self, network: SamplingNetwork, settings: SampleSettings) -> None:
        super().__init__(network, settings)
        self._known_ways: dict[int, tuple[list[int], list[int]]] = {}
        self._starts: list[int] | None = None

    def draw(self, rng: random.Random, length: int) -> list[int]:
        """Draw: starts that give something and rely on nothing come first; edges by weight, weak ones both
        ways, and an edge of weight 1 to every tool that no other edge leads to."""
        chain = [rng.choice(self._good_starts())]
        while len(chain) < length:
            chain.append(self._weighted_step(rng, chain[-1]))
        return chain

    def _weighted_step(self, rng: random.Random, tool: int) -> int:
        targets, bounds = self._ways(tool)
        explicit = bounds[-1] if bounds else 0
        rest = self.count - 1 - len(targets)
        if rng.random() * (explicit + rest * INDEPENDENT) < explicit:
            return rng.choices(targets, cum_weights=bounds)[0]
        near = {*targets, tool} if rest > 0 else set()
        while (other := rng.randrange(self.count)) in near:
            pass
        return other

    def _ways(self, tool: int) -> tuple[list[int], list[int]]:
        """Return the successors and the cumulative weights: strong edges forwards, weak ones both ways."""
        if tool not in self._known_ways:
            back = {source: weight for source, weight in self.network.before[tool].items() if weight == WEAK}
            weights = back | dict(self.network.after[tool])
            self._known_ways[tool] = list(weights), list(accumulate(weights.values()))
        return self._known_ways[tool]

    def _good_starts(self) -> list[int]:
        if self._starts is None:
            relies = {target for options in self.network.after for target, weight in options if weight >= STRONG}
            gives = [tool for tool, options in enumerate(self.network.after) if options]
            self._starts = [tool for tool in gives if tool not in relies] or gives or list(range(self.count))
        return self._starts
