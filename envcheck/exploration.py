"""Calling every tool with many arguments, from initial states and from states that calls have led to."""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property

from trajsmith.envcheck.argument_sampler import ArgumentContext, ArgumentSampler
from trajsmith.envcheck.case_runner import CallOutcome, CaseRunner
from trajsmith.envcheck.facts.state_columns import StateColumns
from trajsmith.envcheck.findings import CaseStep, CheckCase, StartState
from trajsmith.envcheck.state_view import StateRowChange, View
from trajsmith.records import JsonObject, ToolSpec, derive_seed


@dataclass
class Observation:
    """One call with the steps that led to it and its outcome."""

    start: StartState
    prefix: tuple[CaseStep, ...]
    """Calls since the initial state that changed something."""
    outcome: CallOutcome
    before: View
    after: View
    drawn: bool = True
    """False if the arguments were made to try something, and not to succeed."""

    @property
    def step(self) -> CaseStep:
        return self.outcome.step

    @property
    def tool(self) -> str:
        return self.step.tool

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @cached_property
    def changed(self) -> bool:
        return not self.before.equals(self.after)

    @cached_property
    def changes(self) -> list[StateRowChange]:
        return self.before.changes(self.after)

    def case(self, about: JsonObject | None = None) -> CheckCase:
        return CheckCase(start=self.start, steps=(*self.prefix, self.step), about=about or {})


@dataclass
class ExplorationEffort:
    """Size of an exploration in calls, so that one seed gives the same findings on every machine."""

    first: int = 24
    """Tries per tool at each initial state until enough of them succeeded."""
    enough: int = 5
    """Calls of a tool that succeed at one initial state."""
    hard: int = 60
    """Tries per tool and initial state while none has succeeded at all."""
    again: int = 2
    """Writes of each tool and initial state that are made a second time at once."""
    walks: int = 6
    """Walks per initial state."""
    length: int = 14
    """Calls that succeed on a walk."""
    tries: int = 5
    """Arguments that are tried for a step of a walk."""
    rare: int = 4
    """Successful calls below which a tool gets plays of its own."""
    detours: int = 6
    """Other calls in such a play."""


@dataclass
class ExplorationLog:
    """All observations of an exploration."""

    observations: list[Observation] = field(default_factory=list)
    by_tool: dict[str, list[Observation]] = field(default_factory=lambda: defaultdict(list))

    def add(self, seen: Observation) -> None:
        self.observations.append(seen)
        self.by_tool[seen.tool].append(seen)

    def succeeded(self, tool: str) -> list[Observation]:
        return [seen for seen in self.by_tool[tool] if seen.ok]


class Explorer:
    """Explores one environment."""

    def __init__(
        self, runner: CaseRunner, data: StateColumns, sampler: ArgumentSampler, effort: ExplorationEffort, seed: int
    ) -> None:
        self.runner = runner
        self.data = data
        self.sampler = sampler
        self.effort = effort
        self.seed = seed
        self.tools = runner.spec.tools
        self.log = ExplorationLog()
        self._wins: dict[str, int] = defaultdict(int)
        self._writes: dict[str, int] = defaultdict(int)

    async def explore(self, starts: list[StartState]) -> ExplorationLog:
        """Each tool at each initial state, then walks."""
        for start in starts:
            await self._around(start)
        for number in range(self.effort.walks):
            for start in starts:
                await self._walk(start, random.Random(derive_seed(self.seed, "walk", number, start.seed, start.index)))
        for tool in self.tools:
            for number, start in enumerate(starts):
                if self._wins[tool.name] < self.effort.rare:
                    rng = random.Random(derive_seed(self.seed, "persist", tool.name, number))
                    await self._persist(start, tool, rng)
        return self.log

    async def search_further(self, starts: list[StartState]) -> None:
        """Play from further initial states for the sake of tools that have never succeeded, until one of their calls
        does."""
        for tool in self.tools:
            for number, start in enumerate(starts):
                if self._wins[tool.name]:
                    break
                await self._persist(start, tool, random.Random(derive_seed(self.seed, "further", tool.name, number)))

    async def _persist(self, start: StartState, tool: ToolSpec, rng: random.Random) -> None:
        """A play for the sake of one tool that hardly ever succeeds: other calls in between may make it possible."""
        await self.runner.reset_to(start)
        self.sampler.forget_results()
        prefix: tuple[CaseStep, ...] = ()
        scene = ArgumentContext(await self.runner.view(), self.data)
        for number in range(self.effort.detours * 2):
            chosen = self._choose(rng) if number % 2 == 0 else tool
            for _ in range(self.effort.tries * (1 + number % 2)):
                seen = await self._try(start, prefix, chosen, scene, rng)
                if seen.outcome.fault is not None:
                    return
                if seen.changed:
                    prefix, scene = (*prefix, seen.step), ArgumentContext(seen.after, self.data)
                if seen.ok:
                    break

    async def _around(self, start: StartState) -> None:
        """Every tool from one initial state, going back after every change."""
        rng = random.Random(derive_seed(self.seed, "around", start.seed, start.index))
        root = await self.runner.reset_to(start)
        self.sampler.forget_results()
        mark = await self.runner.mark()
        scene = ArgumentContext(root, self.data)
        for tool in self.tools:
            wins = tries = 0
            while wins < self.effort.enough and tries < self._limit(tool):
                tries += 1
                seen = await self._try(start, (), tool, scene, rng)
                wins += seen.ok
                if seen.ok and seen.changed and wins <= self.effort.again:
                    await self.observe(start, (seen.step,), seen.step)
                if seen.changed or seen.outcome.fault is not None:
                    await self.runner.restore(mark)

    def _limit(self, tool: ToolSpec) -> int:
        return self.effort.first if self._wins[tool.name] else self.effort.hard

    async def _walk(self, start: StartState, rng: random.Random) -> None:
        """A play of calls one after another, each from where the last one led."""
        await self.runner.reset_to(start)
        self.sampler.forget_results()
        prefix: tuple[CaseStep, ...] = ()
        scene = ArgumentContext(await self.runner.view(), self.data)
        for _ in range(self.effort.length):
            tool = self._choose(rng)
            for _ in range(self.effort.tries):
                seen = await self._try(start, prefix, tool, scene, rng)
                if seen.outcome.fault is not None:
                    return
                if seen.changed:
                    prefix = (*prefix, seen.step)
                    scene = ArgumentContext(seen.after, self.data)
                if seen.ok:
                    break

    def _choose(self, rng: random.Random) -> ToolSpec:
        """A tool; those that have succeeded less, and those that write, more often."""
        weights = [(2.0 if tool.declares_write else 1.0) / (1 + self._wins[tool.name]) ** 0.5 for tool in self.tools]
        return rng.choices(self.tools, weights)[0]

    async def _try(
        self,
        start: StartState,
        prefix: tuple[CaseStep, ...],
        tool: ToolSpec,
        scene: ArgumentContext,
        rng: random.Random,
    ) -> Observation:
        arguments = self.sampler.draw(tool.name, scene, rng)
        return await self.observe(start, prefix, CaseStep(tool=tool.name, arguments=arguments, actor=tool.actor))

    async def observe(
        self, start: StartState, prefix: tuple[CaseStep, ...], step: CaseStep, drawn: bool = True
    ) -> Observation:
        """One call where the main session stands."""
        before = await self.runner.view()
        outcome = await self.runner.call(step)
        after = before if outcome.fault is not None else await self.runner.view()
        seen = Observation(start, prefix, outcome, before, after, drawn)
        self.log.add(seen)
        if outcome.ok:
            self._wins[step.tool] += 1
            self.sampler.learn_from_result(step.tool, outcome.content)
            if drawn:
                self.sampler.record_success(step.tool, step.arguments)
        elif outcome.refusal:
            self.sampler.learn_from_refusal(step.tool, outcome.refusal)
        return seen
