"""Execution evidence: a value of A's real output, put into B on the same state, makes B succeed where others fail.

For every call that works, every argument is changed alone: to values that candidate outputs gave on the same state, and
to values of the same type from elsewhere. A call works if it changes the state, or tells anything but what it was asked
with. Where values from elsewhere work just as well, the parameter takes anything and nothing is proved. Besides the
links that matching sees, those are tried whose output holds the very value that works: identifiers by their name or
their look. A failed value counts only if the argument can be changed alone at all, and only if it is refused in the
words in which values from elsewhere are: "it was cancelled already" is no "there is none". Whole numbers
that another thing may have too count for nothing either (`toolgraph.evidence.chance`).
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatmodel import Phrasebook
from environments import EnvironmentSource, Session
from grounding.fields import output_fields
from grounding.paths import split
from grounding.rewind import replays, rewindable
from grounding.values import ValuePool
from toolgraph.evidence.contrast import Contrast, Ledger, Outputs, Place, Tried
from toolgraph.evidence.leaves import Leaf, enumerated, same, walk
from toolgraph.evidence.probing import Budget, Made, Probe
from toolgraph.found import LinkEvidence, LinkKey
from toolgraph.settings import ExecutionSettings
from trajectory import EnvironmentFault, EnvironmentSpec, JsonObject, ToolSpec, derive_seed

FLOOR = 0.05
"""Schema score from which a link is tried."""
LIKELY = 0.2
"""Schema score from which arguments are filled by a link, before anything is known."""


@dataclass
class Executed:
    """What execution says of one environment."""

    links: tuple[LinkEvidence, ...] = ()
    parameters: dict[tuple[str, str], Tried] = field(default_factory=dict)
    """(full tool name, parameter path)."""
    findings: tuple[str, ...] = ()
    """Output schemas that lie, tools that broke; one sentence per tool."""
    calls: int = 0
    worked: frozenset[str] = frozenset()
    """Full names of the tools of which a call worked."""


async def execute(
    source: EnvironmentSource, scores: Mapping[LinkKey, float], settings: ExecutionSettings, seed: int
) -> Executed:
    """Try the links of one environment on several of its initial states.

    Args:
        source: The environment; its calls run where its sessions run.
        scores: Link to its score by schemas.
        settings: The budget.
        seed: The same seed makes the same calls.

    Raises:
        EnvironmentFault: The environment does not start, or does not go back to where it was.
    """
    spec = await source.spec()
    states = (await source.states(seed))[: settings.states]
    runner = _Runner(spec, scores, settings, source.phrasebook)
    session = await source.open()
    calls = min(settings.calls, settings.live_calls) if replays(session) else settings.calls
    try:
        for number, state in enumerate(states):
            budget = Budget((calls - runner.calls) // (len(states) - number))
            rng = random.Random(derive_seed(seed, "execution", spec.name, number))
            await runner.on_state(session, state, number, budget, rng)
    finally:
        await session.close()
    return runner.result()


async def execute_all(
    sources: Iterable[EnvironmentSource], scores: Mapping[LinkKey, float], settings: ExecutionSettings, seed: int
) -> list[Executed]:
    """Try the links of several environments, one after the other; one that breaks is a finding."""
    found = []
    for source in sources:
        try:
            found.append(await execute(source, scores, settings, seed))
        except EnvironmentFault as fault:
            found.append(
                Executed(findings=(f"environment {source.name}: execution: its links were not tried: {fault}",))
            )
    return found


class _Runner:
    def __init__(
        self,
        spec: EnvironmentSpec,
        scores: Mapping[LinkKey, float],
        settings: ExecutionSettings,
        phrasebook: Phrasebook,
    ) -> None:
        self.spec = spec
        self.tools = {tool.name: tool for tool in spec.tools}
        self.settings = settings
        self.phrasebook = phrasebook
        self.choices = {tool.name: enumerated(tool) for tool in spec.tools}
        self.full = {tool.name: tool.full_name for tool in spec.tools}
        plain = {full: name for name, full in self.full.items()}
        self.candidates: dict[Place, list[Place]] = defaultdict(list)
        """(target, parameter) to (source, output), the likeliest first."""
        self.likely: dict[Place, list[Place]] = defaultdict(list)
        """The same, of links from which arguments are filled."""
        own = [(-score, key) for key, score in scores.items() if score >= FLOOR and key[0] in plain and key[1] in plain]
        for worse, (giver, taker, output, parameter) in sorted(own):
            self.candidates[plain[taker], parameter].append((plain[giver], output))
            if -worse >= LIKELY:
                self.likely[plain[taker], parameter].append((plain[giver], output))
        self.ledger = Ledger(self.tools, self.candidates, settings)
        self.results: dict[str, list[Any]] = defaultdict(list)
        self.faults: dict[str, str] = {}
        self.calls = 0

    async def on_state(
        self, session: Session, state: JsonObject, number: int, budget: Budget, rng: random.Random
    ) -> None:
        going_back = rewindable(session)
        await going_back.reset(state)
        base, digest = await going_back.checkpoint(), await going_back.state_hash()
        pool = ValuePool(state)
        total = budget.left
        budget.left = total // 2
        probe = Probe(self.spec, going_back, pool, self.phrasebook, rng, budget, base, digest, self.faults)
        await probe.harvest(self.likely)
        budget.left = total - budget.spent
        outputs = self._outputs(probe)
        for made in _interleaved(probe.made):
            self.results[made.call.tool].append(made.call.result)
            for leaf in walk(made.call.arguments, self.tools[made.call.tool].input_schema, ""):
                if not self._is_choice(made.call.tool, leaf):
                    await Contrast(self.ledger, probe, made, leaf, outputs, number).run()
        self.calls += budget.spent

    def _is_choice(self, tool: str, leaf: Leaf) -> bool:
        return same(leaf.value) is None or leaf.path in self.choices[tool]

    def _outputs(self, probe: Probe) -> Outputs:
        found: Outputs = defaultdict(dict)
        for made in probe.made:
            for leaf in made.leaves:
                text = same(leaf.value)
                if text is not None:
                    found[made.call.tool, leaf.path].setdefault(text, (leaf.value, made.mark))
        return found

    def result(self) -> Executed:
        links = [
            LinkEvidence(
                source=source,
                target=target,
                output=output,
                input=parameter,
                by="execution",
                worked=tally.worked,
                failed=tally.failed,
                elsewhere_worked=tally.elsewhere_worked,
                elsewhere_failed=tally.elsewhere_failed,
                chance=tally.chance,
                states=len(tally.states),
            )
            for (source, target, output, parameter), tally in sorted(self.ledger.tallies.items())
        ]
        broken = [
            f"tool {self.full[name]}: execution: it broke: {how[:200]}" for name, how in sorted(self.faults.items())
        ]
        lies = [
            f"tool {self.full[name]}: execution: its output schema promises {', '.join(lies[:5])}, which no result has"
            for name, results in sorted(self.results.items())
            if (lies := missing_outputs(self.tools[name], results))
        ]
        worked = frozenset(self.full[name] for name in self.results)
        return Executed(tuple(links), dict(self.ledger.parameters), (*lies, *broken), self.calls, worked)


def _interleaved(made: Sequence[Made]) -> Iterator[Made]:
    """The first call of every tool before the second of any: the budget reaches all of them."""
    turns: dict[str, list[Made]] = defaultdict(list)
    for one in made:
        turns[one.call.tool].append(one)
    for number in range(max(map(len, turns.values()), default=0)):
        yield from (found[number] for found in turns.values() if len(found) > number)


def missing_outputs(tool: ToolSpec, results: Sequence[Any]) -> list[str]:
    """Fields that the output schema promises and no result has, although the objects around them are there."""
    if not results or not tool.output_schema:
        return []
    return [
        end.path
        for end in output_fields(tool)
        if "*" not in split(end.path)[-1:]
        and (end.required or len(results) >= 3)
        and (around := [row for one in results for row in _rows(one, split(end.path)[:-1])])
        and not any(end.name in row for row in around)
    ]


def _rows(node: Any, parts: tuple[str, ...]) -> Iterator[JsonObject]:
    """Objects at a path."""
    if not parts:
        if isinstance(node, dict):
            yield node
    elif parts[0] == "*":
        for child in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
            yield from _rows(child, parts[1:])
    elif isinstance(node, dict) and parts[0] in node:
        yield from _rows(node[parts[0]], parts[1:])
