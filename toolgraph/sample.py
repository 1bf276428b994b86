"""Sampling of tool chains.

`topology` is ours: Algorithms 1 and 2 of EnvFactory (Appendix H) with what the paper promises made certain: every
required internal parameter of every tool has a producer earlier in the chain, no tool stands twice, and little-used
tools come first. `envfactory` follows the paper's pseudocode to the letter; `random_walk` and `weighted_walk`
(Agent-World 3.1.1) are there to compare with.
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt

from toolgraph.graph import GraphIndex
from toolgraph.match import FOREIGN
from trajectory import Chain, Dependency, Frozen, InputError, derive_seed

AFTER_WRITE = 0.6
"""Probability of a look-up although a write, or a result about something else, has given the parameter: what was just
made, or only mentioned, is seldom what is meant."""

IDLE = 20
"""Steps of Algorithm 1 without a new tool, after which it starts anew elsewhere."""

Method = Literal["topology", "envfactory", "random_walk", "weighted_walk"]


def _ordered(length: tuple[int, int]) -> tuple[int, int]:
    if length[0] > length[1]:
        raise ValueError(f"it goes from {length[0]} to {length[1]}: the smaller number comes first")
    return length


class SampleSettings(Frozen):
    """How chains are drawn."""

    count: PositiveInt = 100
    """Chains to draw."""
    length: Annotated[tuple[PositiveInt, PositiveInt], AfterValidator(_ordered)] = (6, 11)
    """Shortest and longest chain, in tools."""
    method: Method = "topology"
    max_depth: NonNegativeInt = 3
    """How deep priors of priors are looked for (EnvFactory: 3)."""
    extra_prior: float = Field(0.1, ge=0, le=1)
    """Probability of a prior for a parameter that would not need one (EnvFactory: 0.1)."""
    branches: PositiveInt = 2
    """Successors that are queued after a tool: one to this many."""


class Sampler:
    """Draws chains from one environment's graph; remembers what it used, so that all tools get their turn."""

    def __init__(self, index: GraphIndex, settings: SampleSettings) -> None:
        self.index = index
        self.settings = settings
        self.used: Counter[str] = Counter()
        self.depths = closure_depths(index)
        self.usable = [tool for tool in index.tools if self.depths.get(tool, 99) <= settings.max_depth]
        """Tools whose priors can be found within the depth limit."""
        if not self.usable:
            raise InputError("no tool of this environment can be called: every one needs an id that no tool gives")

    def draw(self, rng: random.Random) -> tuple[list[str], list[Dependency]]:
        """One chain: plain tool names in order, and the dependencies that make each callable."""
        shortest, longest = self.settings.length
        length = min(rng.randint(shortest, longest), len(self.usable))
        methods: dict[Method, Callable[[random.Random, int], list[str]]] = {
            "topology": self._topology,
            "envfactory": self._envfactory,
            "random_walk": self._random_walk,
            "weighted_walk": self._weighted_walk,
        }
        tools = methods[self.settings.method](rng, length)
        self.used.update(tools)
        return tools, self.dependencies(tools)

    def dependencies(self, tools: list[str]) -> list[Dependency]:
        """Every way to fill an internal parameter from an earlier step, nearest producer first."""
        found = []
        for consumer, tool in enumerate(tools):
            for parameter in (*self.index.needs[tool], *self.index.wants[tool]):
                for producer in reversed(range(consumer)):
                    paths = [
                        link.output
                        for source, link in self.index.producers[tool, parameter]
                        if source == tools[producer]
                    ]
                    found += [
                        Dependency(consumer=consumer, parameter=parameter, producer=producer, output=path)
                        for path in paths
                    ]
        return found

    # Ours

    def _topology(self, rng: random.Random, length: int) -> list[str]:
        chain: list[str] = []
        queue: deque[str] = deque()
        for _ in range(20 * length):
            if len(chain) >= length:
                break
            tool = queue.popleft() if queue else self._least_used(rng, chain)
            if tool is None:
                break
            added = self._closure(rng, tool, chain, 0)
            if added is None or len(chain) + len(added) > max(length, self.settings.length[1] if not chain else length):
                continue
            chain += added
            queue.extend(self._successors(rng, tool, chain))
        return chain

    def _closure(
        self, rng: random.Random, tool: str, chain: list[str], depth: int, pending: frozenset[str] = frozenset()
    ) -> list[str] | None:
        """The tool with all priors that it lacks, in calling order; None if the depth limit forbids it.

        `pending` are the tools whose priors are being looked for: they come later and give nothing yet.
        """
        if tool in chain:
            return []
        if depth > self.settings.max_depth:
            return None
        added: list[str] = []
        for parameter in self.index.needs[tool]:
            producers = [source for source in self.index.sources(tool, parameter) if source != tool]
            have = any(source in chain or source in added for source in producers)
            proper = {source for source, link in self.index.producers[tool, parameter] if link.score > FOREIGN}
            looked_up = any(source in self.index.reads and source in proper for source in (*chain, *added))
            if have and rng.random() >= (self.settings.extra_prior if looked_up else AFTER_WRITE):
                continue
            options = [
                source for source in producers if source not in pending and source not in chain and source not in added
            ]
            options = [source for source in options if self.depths.get(source, 99) + depth < self.settings.max_depth]
            while options:
                prior = self._likely_prior(rng, tool, parameter, options)
                options.remove(prior)
                below = self._closure(rng, prior, [*chain, *added], depth + 1, pending | {tool})
                if below is not None:
                    added += below
                    have = True
                    break
            if not have:
                return None
        return [*added, tool]

    def _likely_prior(self, rng: random.Random, tool: str, parameter: str, options: list[str]) -> str:
        """Reads before writes, close fits before loose ones, short ways before long ones.

        People look a thing up where it is kept; they do not book it again to learn its id.
        """
        scores = dict.fromkeys(options, 0.0)
        for source, link in self.index.producers[tool, parameter]:
            if source in scores:
                scores[source] = max(scores[source], link.score)
        weights = [
            scores[option] ** 10 * (6 if option in self.index.reads else 1) / (1 + self.depths[option]) ** 2
            for option in options
        ]
        return rng.choices(options, weights)[0]

    def _successors(self, rng: random.Random, tool: str, chain: list[str]) -> list[str]:
        options = [
            (target, weight)
            for target, weight in self.index.successors[tool]
            if target not in chain and target in self.depths
        ]
        wanted = rng.randint(1, self.settings.branches)
        chosen: list[str] = []
        for _ in range(min(wanted, len(options))):
            weights = [weight / (1 + self.used[target]) for target, weight in options]
            index = rng.choices(range(len(options)), weights)[0]
            chosen.append(options.pop(index)[0])
        return chosen

    def _least_used(self, rng: random.Random, chain: list[str]) -> str | None:
        options = [tool for tool in self.usable if tool not in chain]
        return self._weighted(rng, options) if options else None

    def _weighted(self, rng: random.Random, options: list[str]) -> str:
        floor = min(self.used[tool] for tool in options)
        return rng.choices(options, [1 / (1 + self.used[tool] - floor) ** 2 for tool in options])[0]

    # To compare with

    def _envfactory(self, rng: random.Random, length: int) -> list[str]:
        """Algorithm 1, line by line. A dead end, or a circle of tools that are all there already, starts anew, as any
        implementation must: the pseudocode would never end there."""
        visited: list[str] = []
        queue = deque([rng.choice(self.index.tools)])
        idle = 0
        while len(visited) < length:
            before = len(visited)
            tool = queue.popleft() if queue and idle < IDLE else rng.choice(self.index.tools)
            for prior in self._sample_priors(rng, visited, tool, 0):
                if prior not in visited:
                    visited.append(prior)
            if tool not in visited:
                visited.append(tool)
            neighbours = [target for target, _ in self.index.successors[tool]]
            if neighbours:
                queue.append(rng.choice(neighbours))
            idle = idle + 1 if len(visited) == before else 0
        return visited

    def _sample_priors(self, rng: random.Random, visited: list[str], tool: str, depth: int) -> list[str]:
        """Algorithm 2; line 7 read as the text of Appendix H has it: valid parameters are skipped but for 10 %."""
        if depth >= self.settings.max_depth:
            return []
        priors: list[str] = []
        for parameter in (*self.index.needs[tool], *self.index.wants[tool]):
            producers = self.index.sources(tool, parameter)
            valid = parameter in self.index.wants[tool] or any(source in visited for source in producers)
            if valid and rng.random() >= self.settings.extra_prior:
                continue
            if not producers:
                continue
            prior = rng.choice(producers)
            if prior not in visited and prior not in priors:
                priors += [*self._sample_priors(rng, [*visited, prior], prior, depth + 1), prior]
        return priors

    def _random_walk(self, rng: random.Random, length: int) -> list[str]:
        return self._walk(rng, length, lambda weight: 1.0)

    def _weighted_walk(self, rng: random.Random, length: int) -> list[str]:
        return self._walk(rng, length, float)

    def _walk(self, rng: random.Random, length: int, weigh: Callable[[int], float]) -> list[str]:
        chain = [rng.choice(self.index.tools)]
        while len(chain) < length:
            options = self.index.successors[chain[-1]] or [(tool, 1) for tool in self.index.tools]
            chain.append(rng.choices([target for target, _ in options], [weigh(weight) for _, weight in options])[0])
        return chain


def closure_depths(index: GraphIndex) -> dict[str, int]:
    """Tool to the number of levels of priors that it needs at least; tools that can never be called are missing."""
    depths: dict[str, int] = {}
    for level in range(len(index.tools) + 1):
        new = {
            tool: level
            for tool in index.tools
            if tool not in depths
            and all(
                any(source in depths and source != tool for source, _ in index.producers[tool, parameter])
                for parameter in index.needs[tool]
            )
        }
        if not new:
            break
        depths.update(new)
    return depths


def sample_chains(
    samplers: dict[str, Sampler], states: dict[str, list[str]], settings: SampleSettings, seed: int
) -> Iterator[Chain]:
    """All chains of a run, environment by environment in turn; the same seed gives the same chains.

    Args:
        samplers: Environment name to its sampler.
        states: Environment name to the hashes of its initial states, used in turn.
    """
    names = sorted(samplers)
    for number in range(settings.count):
        name = names[number % len(names)]
        chain_seed = derive_seed(seed, "chain", number)
        tools, dependencies = samplers[name].draw(random.Random(chain_seed))
        hashes = states[name]
        yield Chain(
            index=number,
            environment=name,
            tools=tuple(tools),
            dependencies=tuple(dependencies),
            state=hashes[(number // len(names)) % len(hashes)],
            sampler={
                "method": settings.method,
                "length": list(settings.length),
                "max_depth": settings.max_depth,
                "extra_prior": settings.extra_prior,
                "branches": settings.branches,
            },
            seed=chain_seed,
        )
