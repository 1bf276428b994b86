"""Chains inside scenarios: the steps of one story, each with the look-ups that lead to it."""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

from trajsmith.grounding import get_leaf_name
from trajsmith.phrasing import Scenario, ScenarioBook, ScenarioStep
from trajsmith.toolgraph.index import SamplingNetwork, Slot
from trajsmith.toolgraph.settings import SampleSettings

FRESH = 0.6
"""Probability of a look-up of its own for a thing that must not be the one of before."""
OWNER = 0.7
"""What it counts to say in which other thing something is looked up, beside a value that has to be said."""
BY_NAME = 20.0
"""Factor on the weight of a look-up by name: who says what a thing is called wants it found, not listed."""
LESS_SAID = 0.03
"""Factor on the weight of a look-up for each value that the user has to say for it."""
CLOSE = 0.75
"""Share of the best link's score from which a look-up may give a parameter."""


@dataclass
class ScenarioChain:
    """Tools of one story, as numbers of the network, and the step that each of them is."""

    scenario: str
    tools: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    """Name of the step, "" for a look-up."""


class ScenarioSampler:
    """Draws chains inside the scenarios of one environment; all of them get their turn."""

    def __init__(self, book: ScenarioBook, network: SamplingNetwork, settings: SampleSettings) -> None:
        self.network = network
        self.settings = settings
        reads = (tool for tool in network.number.values() if network.reads[tool])
        self._listed = {field for tool in reads for field in network.outputs[tool]}
        """Fields of the results of look-ups; others are tested on the result of the step itself."""
        self.scenarios = [scenario for scenario in book.scenarios if self._is_usable(scenario)]
        self.used: Counter[str] = Counter()
        """Scenario to the chains that were drawn in it."""
        self.tools: Counter[int] = Counter()
        """Tool to the chains that it was drawn for as a step."""

    def _is_usable(self, scenario: Scenario) -> bool:
        """A scenario of which at least one tool is there; others are those of another version of the environment."""
        return any(step.tool in self.network.number for step in scenario.steps)

    def draw(self, rng: random.Random) -> ScenarioChain | None:
        """One chain in the scenario that was used least; None if no step of any can be led up to."""
        for scenario in sorted(self.scenarios, key=lambda one: (self.used[one.id], self._rank(one), rng.random())):
            self.used[scenario.id] += 1
            chain = self._draw_long(scenario, rng)
            if chain.tools:
                self.tools.update(number for number, name in zip(chain.tools, chain.steps, strict=True) if name)
                return chain
        return None

    def draw_other(self, tried: Collection[str], rng: random.Random) -> ScenarioChain | None:
        """One chain in a scenario that is not among `tried`, whatever was drawn before; it counts for nothing."""
        apart = copy(self)
        apart.tools = Counter(dict.fromkeys(self.network.number.values(), 1))
        others = [scenario for scenario in self.scenarios if scenario.id not in tried]
        chains = (apart._draw_long(scenario, rng) for scenario in rng.sample(others, len(others)))
        return next((chain for chain in chains if chain.tools), None)

    def list_references(self, chain: ScenarioChain) -> Iterator[tuple[int, str, int, str]]:
        """Yield (step, parameter, earlier step, name of the value there) of internal parameters that `same_as` ties."""
        scenario = next(one for one in self.scenarios if one.id == chain.scenario)
        steps = {step.name: step for step in scenario.steps}
        for consumer, name in enumerate(chain.steps):
            for slot in self.network.needs[chain.tools[consumer]] if name else ():
                same = steps[name].same_as
                reference = same.get(slot.name) or same.get(get_leaf_name(slot.name))
                if reference is not None:
                    giver, _, value = reference.partition(".")
                    yield consumer, slot.name, chain.steps.index(giver), value.split(".")[-1]

    def _draw_long(self, scenario: Scenario, rng: random.Random) -> ScenarioChain:
        """Draw a chain, with as many optional steps as make it long enough."""
        chain = self._draw(scenario, rng, set())
        optional = {step.name for step in scenario.steps if step.share < 1} - set(chain.steps)
        forced: set[str] = set()
        while optional and len(chain.tools) < self.settings.length[0]:
            forced.add(optional.pop() if len(optional) == 1 else rng.choice(sorted(optional)))
            optional -= forced
            chain = self._draw(scenario, rng, forced)
        return chain

    def _rank(self, scenario: Scenario) -> int:
        """Return how often the tool was drawn that the scenario has and that was drawn least."""
        numbers = [self.network.number[step.tool] for step in scenario.steps if step.tool in self.network.number]
        return min(self.tools[number] for number in numbers)

    def _draw(self, scenario: Scenario, rng: random.Random, forced: set[str]) -> ScenarioChain:
        chain = ScenarioChain(scenario.id)
        included: set[str] = set()
        for step in self._order(scenario, rng, forced):
            if any(name not in included for name in list_referred_steps(step)):
                continue
            addition = self._lead_up(step, chain, rng)
            if addition is None:
                continue
            lookups, number = addition
            chain.tools += [*lookups, number]
            chain.steps += [*("" for _ in lookups), step.name]
            included.add(step.name)
        return chain

    def _order(self, scenario: Scenario, rng: random.Random, forced: set[str]) -> list[ScenarioStep]:
        """The steps that are told, in an order that `follows` allows. An optional one is told, too, while its tool has
        not had its turn."""
        steps = [step for step in scenario.steps if step.tool in self.network.number]
        waiting = [
            step
            for step in steps
            if rng.random() < step.share or step.name in forced or not self.tools[self.network.number[step.tool]]
        ]
        above = {
            step.name: [other.name for other in scenario.steps[:number]] for number, step in enumerate(scenario.steps)
        }
        order: list[ScenarioStep] = []
        while waiting:
            left = {step.name for step in waiting}
            ready = [step for step in waiting if left.isdisjoint(_list_before(step, above[step.name]))]
            step = ready[0] if len(ready) == 1 else rng.choice(ready)
            waiting.remove(step)
            order.append(step)
        return order

    def _lead_up(self, step: ScenarioStep, chain: ScenarioChain, rng: random.Random) -> tuple[list[int], int] | None:
        """Look-ups that a step needs before it, and its tool; None where it cannot be led up to or has no room."""
        number = self.network.number[step.tool]
        lookups: list[int] = []
        for slot in self.network.needs[number]:
            names = {slot.name, get_leaf_name(slot.name)}
            if names & step.same_as.keys():
                continue
            fresh = bool(names & step.other_than.keys())
            if not self._supply(slot, chain, lookups, step, rng, fresh, 0):
                return None
        room = self.settings.length[1] - len(chain.tools)
        return (lookups, number) if len(lookups) < room else None

    def _supply(
        self,
        slot: Slot,
        chain: ScenarioChain,
        lookups: list[int],
        step: ScenarioStep,
        rng: random.Random,
        fresh: bool,
        depth: int,
    ) -> bool:
        """Add a look-up that gives a parameter, with what it needs itself, unless the chain gives it already."""
        proper = set(self._list_lookups(slot))
        showing = {tool for tool in proper if self._shows(tool, step)} if not depth else set()
        before = {tool for tool in (*chain.tools, *lookups) if tool in (showing or proper)}
        if before and not (fresh and self._takes_input(before) and rng.random() < FRESH):
            return True
        if depth <= self.settings.max_depth:
            for giver in self._weigh(slot, proper, step, (*chain.tools, *lookups), rng):
                mark = len(lookups)
                needs = self.network.needs[giver]
                if all(self._supply(need, chain, lookups, step, rng, False, depth + 1) for need in needs):
                    lookups.append(giver)
                    return True
                del lookups[mark:]
        return any(tool in slot.givers for tool in (*chain.tools, *lookups))

    def _list_lookups(self, slot: Slot) -> list[int]:
        """Reads that give a parameter about as well as any does; those alone that list what it refers to, if any do."""
        best = max(slot.scores.values(), default=0.0)
        lookups = [
            giver
            for giver, score in slot.scores.items()
            if self.network.reads[giver]
            and score >= CLOSE * best
            and self.network.depths[giver] <= self.settings.max_depth
        ]
        return [giver for giver in lookups if self.network.lists_rows_of(slot, giver)] or lookups

    def _count_asked(self, tool: int, before: Sequence[int], depth: int = 0) -> float:
        """Return how many values the user has to say for a look-up, with those that it needs itself."""
        asked: float = self.network.asked[tool]
        for need in self.network.needs[tool] if depth < self.settings.max_depth else ():
            lookups = self._list_lookups(need)
            asked += OWNER
            if not any(one in lookups for one in before):
                asked += min((self._count_asked(one, before, depth + 1) for one in lookups), default=0)
        return asked

    def _takes_input(self, tools: set[int]) -> bool:
        """Return whether one of some look-ups could show other things when it is called again."""
        return any(self.network.inputs[tool] for tool in tools)

    def _shows(self, tool: int, step: ScenarioStep) -> bool:
        """Return whether a result has the fields that a step tests."""
        wanted = (*step.where, *step.where_same, *step.days_old, *step.days_near, *step.up_to, *step.at_least)
        fields = [field for field in wanted if field.split(".")[-1] in self._listed]
        return all(field.split(".")[-1] in self.network.outputs[tool] for field in fields)

    def _weigh(
        self, slot: Slot, lookups: set[int], step: ScenarioStep, before: Sequence[int], rng: random.Random
    ) -> Iterator[int]:
        """Look-ups in random order: those first that show what `where` tests, then those for which the user has
        to say no value more, near ones and close fits."""
        ranked = []
        asked = {giver: self._count_asked(giver, before) for giver in sorted(lookups)}
        least = min(asked.values(), default=0.0)
        for giver, count in asked.items():
            depth = self.network.depths[giver]
            ready = depth and all(any(tool in need.givers for tool in before) for need in self.network.needs[giver])
            weight = slot.scores[giver] ** 4 / (1 + (0 if ready else depth)) ** 2 * LESS_SAID**count
            weight *= BY_NAME if self.network.by_name[giver] else 1.0
            draw = rng.random() ** (1 / max(weight, 1e-9))
            ranked.append((self._shows(giver, step), count < least + 1, draw, giver))
        yield from (giver for *_, giver in sorted(ranked, reverse=True))


def list_referred_steps(step: ScenarioStep) -> list[str]:
    """Return the earlier steps whose values a step needs."""
    tables = (step.same_as, step.other_than, step.later_than, step.where_same)
    return [reference.split(".")[0] for table in tables for reference in table.values()]


def _list_before(step: ScenarioStep, above: Sequence[str]) -> list[str]:
    """Names of the steps that come before a step, whether they are told or not."""
    return [*(above if step.follows is None else step.follows), *list_referred_steps(step)]
