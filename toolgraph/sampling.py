"""Sampling of tool chains, from one environment or across several.

`topology` is ours (see `trajsmith.toolgraph.topology_sampler`): Algorithms 1 and 2 of EnvFactory (Appendix H) with
what the paper promises made certain. `envfactory` follows the paper's text, `envfactory_pseudocode` its listings to
the letter; `random_walk` and `weighted_walk` (Agent-World 3.1.1) are there to compare with.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from trajsmith.grounding import list_output_fields
from trajsmith.phrasing import Scenario, ScenarioBook
from trajsmith.records import Chain, Dependency, InputError, derive_seed
from trajsmith.toolgraph.graph import ToolGraph
from trajsmith.toolgraph.index import NEVER, GraphIndex, Slot, compute_closure_depths
from trajsmith.toolgraph.scenario_sampler import ScenarioChain, ScenarioSampler
from trajsmith.toolgraph.settings import SAMPLERS, CountsUse, SampleSettings

__all__ = ["SampleSettings", "Sampler", "compute_closure_depths", "sample_across", "sample_chains"]

MOST_DRAWS = 1000
"""Draws of one chain until it has no tool of `without_tools`."""
LEAD_UP_DRAWS = 20
"""Draws of the look-ups before one call until they have no tool of `without_tools`."""


class Sampler:
    """Draws chains from an index; remembers what it used, so that all tools get their turn."""

    def __init__(self, index: GraphIndex, settings: SampleSettings, scenarios: ScenarioBook | None = None) -> None:
        """`scenarios` are those of the one environment of the index."""
        self.index = index
        self.settings = settings.turned()
        self.network = index.network if self.settings.servers > 1 else index.own_network
        self._used = [0] * len(self.network.names)
        depths = zip(self.network.names, self.network.depths, strict=True)
        self.usable = [name for name, depth in depths if depth <= self.settings.max_depth]
        """Tools whose priors can be found within the depth limit."""
        if not self.usable:
            raise InputError("no tool of this environment can be called: every one needs an id that no tool gives")
        self.chains = SAMPLERS.get(self.settings.method)(self.network, self.settings)
        self.stories = ScenarioSampler(scenarios or ScenarioBook(), self.network, self.settings)

    @property
    def used(self) -> Counter[str]:
        """Tool to the number of times that it stood in a chain."""
        return Counter({name: count for name, count in zip(self.network.names, self._used, strict=True) if count})

    @property
    def depths(self) -> dict[str, int]:
        """Tool to the levels of priors that it needs at least; tools that can never be called are missing."""
        depths = zip(self.network.names, self.network.depths, strict=True)
        return {name: depth for name, depth in depths if depth < NEVER}

    def draw(self, rng: random.Random) -> tuple[list[str], list[Dependency]]:
        """One chain: tool names (as the index has them) in order, and the dependencies that make each callable."""
        shortest, longest = self.settings.length
        length = min(rng.randint(shortest, longest), len(self.usable))
        chain = self.chains.draw(rng, length)
        for tool in chain:
            self._used[tool] += 1
        return [self.network.names[tool] for tool in chain], self._dependencies(chain)

    def allows(self, environment: str, tools: Iterable[str]) -> bool:
        """Return True if none of the tools of an environment is left out by `without_tools`."""
        left_out = self.settings.without_tools
        return not left_out or not any(f"{environment}.{tool}" in left_out for tool in tools)

    def draw_chain(
        self, rng: random.Random, environment: str
    ) -> tuple[list[str], list[Dependency], ScenarioChain | None]:
        """Draw a chain of one environment, inside a scenario for the share of chains that are, without tools left out.

        Raises:
            InputError: `without_tools` leaves hardly a chain.
        """
        for _ in range(MOST_DRAWS):
            story = self.draw_scenario(rng)
            if story is not None:
                tools, dependencies = [self.network.names[tool] for tool in story[0].tools], story[1]
            else:
                tools, dependencies = self.draw(rng)
            if self.allows(environment, tools):
                return tools, dependencies, story[0] if story is not None else None
        raise self._make_exhausted_error(environment)

    def draw_across(self, rng: random.Random) -> tuple[list[str], list[Dependency]]:
        """Draw a chain over the servers of the index, without tools left out.

        Raises:
            InputError: `without_tools` leaves hardly a chain.
        """
        for _ in range(MOST_DRAWS):
            names, dependencies = self.draw(rng)
            specs = (self.index.specs[name] for name in names)
            if all(self.allows(spec.server, (spec.name,)) for spec in specs):
                return names, dependencies
        raise self._make_exhausted_error("several servers")

    def _make_exhausted_error(self, environment: str) -> InputError:
        names = ", ".join(self.settings.without_tools)
        return InputError(f"sample.without_tools: hardly a chain of {environment} does without {names}: name fewer")

    def draw_scenario(self, rng: random.Random) -> tuple[ScenarioChain, list[Dependency]] | None:
        """One chain inside a scenario, for the share of chains that are; None for the others."""
        if not self.stories.scenarios or rng.random() >= self.settings.scenarios:
            return None
        story = self.stories.draw(rng)
        if story is None:
            return None
        for tool in story.tools:
            self._used[tool] += 1
            if isinstance(self.chains, CountsUse):
                self.chains.use(tool)
        return story, self._story_dependencies(story)

    def draw_other_story(self, chain: Chain, tried: Collection[str]) -> Chain | None:
        """Return a chain in place of one whose state its scenario does not fit, with the same id and state.

        Args:
            chain: The chain; what is drawn depends on it alone.
            tried: Scenarios that were tried on this state.
        """
        seed = derive_seed(chain.seed, "another story", len(tried))
        story = self.stories.draw_other(tried, random.Random(seed))
        if story is None or not self.allows(chain.environment, (self.network.names[tool] for tool in story.tools)):
            return None
        update = {
            "tools": tuple(self.network.names[tool] for tool in story.tools),
            "dependencies": tuple(self._story_dependencies(story)),
            "seed": seed,
            "scenario": story.scenario,
            "steps": tuple(story.steps),
        }
        return chain.model_copy(update=update)

    def draw_lead_up(
        self, scenario: Scenario, rng: random.Random, environment: str
    ) -> tuple[list[str], list[str], list[Dependency]] | None:
        """Draw a chain in a scenario that is in no book, without tools left out; it counts for nothing.

        Returns:
            Tools, the step that each is ("" for look-ups), and dependencies; None if nothing leads to the steps.
        """
        stories = ScenarioSampler(ScenarioBook(scenarios=(scenario,)), self.network, self.settings)
        for _ in range(LEAD_UP_DRAWS):
            drawn = stories.draw(rng) if stories.scenarios else None
            if drawn is None:
                return None
            tools = [self.network.names[tool] for tool in drawn.tools]
            if self.allows(environment, tools):
                return tools, drawn.steps, self._dependencies(drawn.tools)
        return None

    def dependencies(self, tools: Sequence[str]) -> list[Dependency]:
        """Every way to fill an internal parameter from an earlier step, nearest producer first."""
        return self._dependencies([self.network.number[tool] for tool in tools])

    def _story_dependencies(self, story: ScenarioChain) -> list[Dependency]:
        """Those of its tools, and for what no tool of it gives, those that the scenario declares by `same_as`."""
        dependencies = self._dependencies(story.tools)
        filled = {(one.consumer, one.parameter) for one in dependencies}
        for consumer, parameter, producer, name in self.stories.list_references(story):
            if (consumer, parameter) not in filled:
                tool = self.index.specs[self.network.names[story.tools[producer]]]
                paths = [output.path for output in list_output_fields(tool) if output.name == name]
                dependencies += [
                    Dependency(consumer=consumer, parameter=parameter, producer=producer, output=path) for path in paths
                ]
        return dependencies

    def _dependencies(self, chain: Sequence[int]) -> list[Dependency]:
        dependencies = []
        needs, wants = self.network.needs, self.network.wants
        for consumer, tool in enumerate(chain):
            for slot in (*needs[tool], *wants[tool]):
                listed = any(self._looks_up(slot, one) for one in chain[:consumer])
                for producer in range(consumer - 1, -1, -1):
                    if listed and self.network.reads[chain[producer]] and not self._looks_up(slot, chain[producer]):
                        continue  # an order is chosen from the orders, not from the returns
                    for path in slot.givers.get(chain[producer], ()):
                        dependencies.append(
                            Dependency(consumer=consumer, parameter=slot.name, producer=producer, output=path)
                        )
        return dependencies

    def _looks_up(self, slot: Slot, tool: int) -> bool:
        return self.network.reads[tool] and self.network.lists_rows_of(slot, tool)


def sample_chains(
    samplers: dict[str, Sampler], states: dict[str, list[str]], settings: SampleSettings, seed: int
) -> Iterator[Chain]:
    """All chains of a run, environment by environment in turn; the same seed gives the same chains.

    Args:
        samplers: Environment name to its sampler.
        states: Environment name to the hashes of its initial states, used in turn; a scenario takes the one in which it
            was told least.
        settings: How many chains; what each record says of its sampler.
        seed: Seed of the run.
    """
    names = sorted(samplers)
    record = settings.as_record()
    counts: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    for number in range(settings.count):
        name = names[number % len(names)]
        chain_seed = derive_seed(seed, "chain", number)
        sampler, rng = samplers[name], random.Random(chain_seed)
        tools, dependencies, story = sampler.draw_chain(rng, name)
        hashes, turn = states[name], number // len(names)
        scenario = story.scenario if story else ""
        uses = counts[name]
        place = min(
            range(len(hashes)), key=lambda one: (uses[scenario, one] if scenario else 0, (one - turn) % len(hashes))
        )
        uses[scenario, place] += 1
        yield Chain(
            index=number,
            environment=name,
            tools=tuple(tools),
            dependencies=tuple(dependencies),
            state=hashes[place],
            sampler=record,
            seed=chain_seed,
            scenario=scenario,
            steps=tuple(story.steps) if story else (),
        )


def sample_across(
    graph: ToolGraph,
    settings: SampleSettings,
    seed: int,
    states: dict[str, list[str]] | None = None,
    servers: Iterable[str] | None = None,
) -> Iterator[Chain]:
    """Chains over a whole graph, each on up to `settings.servers` servers; the same seed gives the same chains.

    A chain on one server is like one of `sample_chains`. On several, `servers` names the server of every step, and
    `environment` and `state` are those of the first.

    Args:
        graph: The graph of all environments.
        settings: How many chains, and how they are drawn.
        seed: Seed of the run.
        states: Server to the hashes of its initial states, used in turn; empty hashes where it is None.
        servers: Only these servers; all if None.
    """
    index = GraphIndex(graph, None if servers is None else list(servers))
    sampler, record = Sampler(index, settings), settings.as_record()
    for number in range(settings.count):
        chain_seed = derive_seed(seed, "chain", number)
        names, dependencies = sampler.draw_across(random.Random(chain_seed))
        specs = [index.specs[name] for name in names]
        homes = tuple(spec.server for spec in specs)
        hashes = (states or {}).get(homes[0]) or [""]
        yield Chain(
            index=number,
            environment=homes[0],
            tools=tuple(spec.name for spec in specs),
            dependencies=tuple(dependencies),
            state=hashes[number % len(hashes)],
            sampler=record,
            seed=chain_seed,
            servers=homes if len(set(homes)) > 1 else None,
        )
