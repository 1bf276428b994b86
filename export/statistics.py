"""Numbers about a run, gathered record by record, for the card and the report."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

from trajsmith.export.skills import SkillTally
from trajsmith.records import DIRECTORY_TOOLS, EnvironmentSpec, Summary, Task, TaskHeader, Trajectory, Verdict

STAGE_OF_STEP: dict[str, tuple[str, ...]] = {
    "sampled": ("sample",),
    "grounded": ("ground",),
    "written": ("write",),
    "varied": ("vary",),
    "played": ("play", "repair"),
    "verified": ("verify",),
    "accepted": ("select",),
    "exported": ("export",),
}
"""Step of the funnel to the stages whose drops explain it."""


class Distribution:
    """Counts of whole numbers; memory grows with the number of distinct values only."""

    def __init__(self, values: Iterable[int] = ()) -> None:
        self.counts: Counter[int] = Counter(values)

    def add(self, value: int) -> None:
        self.counts[value] += 1

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def mean(self) -> float:
        return sum(value * count for value, count in self.counts.items()) / self.total if self.counts else 0.0

    @property
    def largest(self) -> int:
        return max(self.counts, default=0)

    def quantile(self, share: float) -> int:
        """The smallest value that at least `share` of all values do not exceed; 0 if there are none."""
        rank, seen = ceil(share * self.total), 0
        for value in sorted(self.counts):
            seen += self.counts[value]
            if seen >= rank:
                return value
        return 0

    def bins(self, at_most: int = 12) -> list[tuple[str, int]]:
        """Equal bins over the range with their labels, at most that many, none left out."""
        if not self.counts:
            return []
        low, high = min(self.counts), max(self.counts)
        width = ceil((high - low + 1) / at_most)
        edges = range(low, high + 1, width)
        totals: Counter[int] = Counter()
        for value, count in self.counts.items():
            totals[(value - low) // width] += count
        return [
            (str(start) if width == 1 else f"{start}–{start + width - 1}", totals[index])
            for index, start in enumerate(edges)
        ]


@dataclass
class Statistics:
    """Running numbers. Lengths, coverage, modes and variants count accepted trajectories only."""

    turns: Distribution = field(default_factory=Distribution)
    calls: Distribution = field(default_factory=Distribution)
    """Calls per trajectory: all that were executed, as the summary counts them."""
    calls_per_turn: Distribution = field(default_factory=Distribution)
    messages: Distribution = field(default_factory=Distribution)
    characters: Distribution = field(default_factory=Distribution)
    """Characters of all message contents of a trajectory."""
    difficulty: Counter[int] = field(default_factory=Counter)
    """Tenth of the scale (0 to 9) to trajectories."""
    played: Counter[str] = field(default_factory=Counter)
    """Environment to trajectories, accepted or not."""
    accepted: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Reason to trajectories that were not accepted; one trajectory may have several."""
    modes: Counter[str] = field(default_factory=Counter)
    variants: Counter[str] = field(default_factory=Counter)
    sources: dict[str, Counter[bool]] = field(default_factory=lambda: defaultdict(Counter))
    """Source of the task to trajectories that were accepted (True) and were not."""
    criteria: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Topic of a criterion to plays that met it ("met"), that did not ("unmet"), and in which it did not count."""
    coverage: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Environment to tool to successful and refused calls of the agent."""
    models: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """Role to model to accepted trajectories."""
    pairs: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Environment and two tools that were called one after the other, to the accepted trajectory that first did."""
    skills: SkillTally = field(default_factory=SkillTally)

    def add(
        self,
        task: Task | TaskHeader,
        trajectory: Trajectory,
        verdict: Verdict,
        own_tools: Set[str] = frozenset(),
        number: int | None = None,
    ) -> None:
        """Count one judged trajectory.

        Args:
            task: What was played.
            trajectory: The dialogue.
            verdict: Verdict on it.
            own_tools: Tools of its environments, where they are known.
            number: Place among the accepted trajectories of the run, from 1, if it is accepted; the next one if None.
        """
        self.played[trajectory.environment] += 1
        self.outcomes[verdict.outcome] += 1
        self.reasons.update(verdict.reasons)
        self.sources[task.source or "chain"][verdict.accepted] += 1
        for each in verdict.rubric:
            status = each.left_out or ("met" if each.met else "undecided" if each.met is None else "unmet")
            self.criteria[each.about][status] += 1
        if verdict.accepted:
            self._add_accepted(task, trajectory, number or sum(self.accepted.values()) + 1)
            self.skills.add(task, trajectory, own_tools)

    def merge(self, other: "Statistics") -> None:
        """Add what was counted of other trajectories."""
        self.turns.counts.update(other.turns.counts)
        self.calls.counts.update(other.calls.counts)
        self.calls_per_turn.counts.update(other.calls_per_turn.counts)
        self.messages.counts.update(other.messages.counts)
        self.characters.counts.update(other.characters.counts)
        self.difficulty.update(other.difficulty)
        self.played.update(other.played)
        self.accepted.update(other.accepted)
        self.outcomes.update(other.outcomes)
        self.reasons.update(other.reasons)
        self.modes.update(other.modes)
        self.variants.update(other.variants)
        merge_counters(self.sources, other.sources)
        merge_counters(self.criteria, other.criteria)
        merge_counters(self.coverage, other.coverage)
        merge_counters(self.models, other.models)
        for pair, number in other.pairs.items():
            self.pairs[pair] = min(number, self.pairs.get(pair, number))
        self.skills.merge(other.skills)

    def growth(self) -> list[tuple[int, int]]:
        """Accepted trajectories and different pairs of tools seen by then: at 1, 2, 4, ... and at the end."""
        total, first = sum(self.accepted.values()), sorted(self.pairs.values())
        places = {1 << power for power in range(total.bit_length())} | ({total} if total else set())
        return [(place, bisect_right(first, place)) for place in sorted(places)]

    def _add_accepted(self, task: Task | TaskHeader, trajectory: Trajectory, number: int) -> None:
        names = [
            event.tool
            for event in trajectory.events
            if event.actor == "assistant" and event.tool not in DIRECTORY_TOOLS
        ]
        self.accepted[trajectory.environment] += 1
        self.modes[task.mode] += 1
        self.variants[task.variant] += 1
        self.difficulty[min(9, int(task.difficulty * 10))] += 1
        self.turns.add(len(trajectory.turns))
        self.calls.add(len(trajectory.events))
        self.messages.add(len(trajectory.messages))
        self.characters.add(sum(len(message.content) for message in trajectory.messages))
        for turn in trajectory.turns:
            self.calls_per_turn.add(sum(turn.start <= event.message < turn.stop for event in trajectory.events))
        self.coverage[trajectory.environment].update(names)
        for role, model in trajectory.models.items():
            self.models[role][model] += 1
        for pair in pairwise(names):
            self.pairs.setdefault((trajectory.environment, *pair), number)


def merge_counters(into: dict[str, Counter[Any]], other: Mapping[str, Counter[Any]]) -> None:
    """Add counters to those of the same names."""
    for name, counts in other.items():
        into.setdefault(name, Counter()).update(counts)


@dataclass(frozen=True)
class FunnelStep:
    """One step of the funnel, with what was lost on the way to it."""

    name: str
    count: int
    of_previous: float | None
    """Share of the step before, or None for the first; above 1 where one record gives several."""
    of_largest: float
    dropped: tuple[tuple[str, int], ...]
    """Reason and number, most frequent first."""
    examples: dict[str, str] = field(default_factory=dict)
    """Reason to its first example, where a stage gives one."""


def build_funnel_steps(summary: Summary) -> list[FunnelStep]:
    """The funnel with every drop reason of the run; a stage outside it counts with the step before it."""
    largest = max(summary.funnel.values(), default=0)
    reasons = _reasons_by_step(summary)
    examples: dict[str, str] = {}
    for stage in reversed(summary.stages):
        examples |= stage.examples
    steps: list[FunnelStep] = []
    before: int | None = None
    for name, count in summary.funnel.items():
        share = count / before if before else None
        steps.append(
            FunnelStep(
                name,
                count,
                share,
                count / largest if largest else 0.0,
                tuple(reasons[name].most_common()),
                {reason: examples[reason] for reason in reasons[name] if reason in examples},
            )
        )
        before = count
    return steps


def _reasons_by_step(summary: Summary) -> dict[str, Counter[str]]:
    step_of = {stage: step for step, stages in STAGE_OF_STEP.items() for stage in stages}
    reasons: dict[str, Counter[str]] = {step: Counter() for step in summary.funnel}
    last = next(iter(reasons), "")
    for stage in summary.stages:
        last = step_of.get(stage.name, last)
        reasons.setdefault(last, Counter()).update(stage.dropped)
    if summary.rejected:  # with the plays that the selection left out
        reasons["accepted"] = Counter(summary.rejected)
    return reasons


@dataclass(frozen=True)
class ToolCoverage:
    """Tool calls of the accepted trajectories of one environment."""

    environment: str
    trajectories: int
    calls: tuple[tuple[str, int], ...]
    """Tool and calls, in the order of the environment."""

    @property
    def never(self) -> list[str]:
        return [name for name, count in self.calls if not count]

    @property
    def covered(self) -> int:
        return len(self.calls) - len(self.never)


def compute_tool_coverage(
    summary: Summary, specs: Sequence[EnvironmentSpec], statistics: Statistics
) -> list[ToolCoverage]:
    """Coverage per environment, from the summary where it tells, else from what was counted."""
    covered = []
    for spec in specs:
        calls = summary.coverage.get(spec.name, statistics.coverage.get(spec.name, {}))
        names = dict.fromkeys([*(tool.name for tool in spec.tools if tool.actor == "assistant"), *sorted(calls)])
        count = summary.environments.get(spec.name, statistics.accepted[spec.name])
        covered.append(ToolCoverage(spec.name, count, tuple((name, calls.get(name, 0)) for name in names)))
    return covered
