"""Execution evidence: a value of A's real output, put into B on the same state, makes B succeed where others fail.

For every call that works, every argument is changed alone: to values that candidate outputs gave on the same state, and
to values of the same type from elsewhere. A call works if it changes the state, or tells anything but what it was asked
with. Where values from elsewhere work just as well, the parameter takes anything and nothing is proved. Besides the
links that matching sees, those are tried whose output holds the very value that works: identifiers by their name or
their look. A failed value counts only if the argument can be changed alone at all, and only if it is refused in the
words in which values from elsewhere are: "it was cancelled already" is no "there is none". A search that finds nothing
with a value from elsewhere either has failed, too. Whole numbers
that another thing may have too count for nothing either (`trajsmith.toolgraph.evidence.chance_matches`).
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trajsmith.environments import EnvironmentSource, Session
from trajsmith.grounding import ValueSource, list_output_fields, make_rewindable, replays, split_path
from trajsmith.phrasing import Phrasebook
from trajsmith.records import EnvironmentFault, EnvironmentSpec, JsonObject, ToolSpec, derive_seed
from trajsmith.toolgraph.evidence.contrast_tests import (
    Contrast,
    ContrastLedger,
    OutputPlace,
    Outputs,
    ParameterTrials,
)
from trajsmith.toolgraph.evidence.recordings import RecordedCall, Recording, read_initial_state
from trajsmith.toolgraph.evidence.state_probe import (
    EXAMPLES,
    CallBudget,
    StateProbe,
    SuccessfulCall,
    iterate_new_values,
)
from trajsmith.toolgraph.evidence.value_leaves import Leaf, canonicalize_value, list_enumerated_values, walk_leaves
from trajsmith.toolgraph.graph import LinkEvidence, LinkKey
from trajsmith.toolgraph.settings import ExecutionSettings

FLOOR = 0.05
"""Schema score from which a link is tried."""
LIKELY = 0.2
"""Schema score from which arguments are filled by a link, before anything is known."""


@dataclass
class ExecutionEvidence:
    """Execution evidence of one environment."""

    links: tuple[LinkEvidence, ...] = ()
    parameters: dict[tuple[str, str], ParameterTrials] = field(default_factory=dict)
    """(full tool name, parameter path)."""
    findings: tuple[str, ...] = ()
    """Output schemas that lie, tools that broke; one sentence per tool."""
    calls: int = 0
    worked: frozenset[str] = frozenset()
    """Full names of the tools of which a call worked."""
    absent: frozenset[tuple[str, str]] = frozenset()
    """(full tool name, output path) of what output schemas promise and no result has."""


async def execute_links(
    source: EnvironmentSource,
    scores: Mapping[LinkKey, float],
    settings: ExecutionSettings,
    seed: int,
    recordings: Sequence[Recording] = (),
) -> ExecutionEvidence:
    """Try the links of one environment on several of its initial states, and where recorded calls were made.

    Args:
        source: The environment; its calls run where its sessions run.
        scores: Link to its score by schemas.
        settings: The budget.
        seed: The same seed makes the same calls.
        recordings: Tasks of this environment, with the plain names of tools. Their calls are the first that are tried
            on the initial states; then they are played, and the arguments of their calls are changed where they stand.

    Raises:
        EnvironmentFault: The environment does not start, or does not go back to where it was.
    """
    spec = await source.spec()
    states = (await source.states(seed))[: settings.states]
    runner = _Runner(spec, scores, settings, source.phrasebook, recordings)
    session = await source.open()
    calls = min(settings.calls, settings.live_calls) if replays(session) else settings.calls
    try:
        for number, state in enumerate(states):
            budget = CallBudget((calls - runner.calls) // (len(states) - number))
            rng = random.Random(derive_seed(seed, "execution", spec.name, number))
            await runner.on_state(session, state, number, budget, rng)
        budget = CallBudget(calls)
        for number, recording in enumerate(recordings, len(states)):
            rng = random.Random(derive_seed(seed, "recorded", spec.name, number))
            await runner.on_recording(session, recording, states[0], number, budget, rng)
        runner.calls += budget.spent
    finally:
        await session.close()
    return runner.result()


async def execute_all_links(
    sources: Iterable[EnvironmentSource], scores: Mapping[LinkKey, float], settings: ExecutionSettings, seed: int
) -> list[ExecutionEvidence]:
    """Try the links of several environments, one after the other; one that breaks is a finding."""
    results = []
    for source in sources:
        try:
            results.append(await execute_links(source, scores, settings, seed))
        except EnvironmentFault as fault:
            results.append(
                ExecutionEvidence(
                    findings=(f"environment {source.name}: execution: its links were not tried: {fault}",)
                )
            )
    return results


class _Runner:
    def __init__(
        self,
        spec: EnvironmentSpec,
        scores: Mapping[LinkKey, float],
        settings: ExecutionSettings,
        phrasebook: Phrasebook,
        recordings: Sequence[Recording],
    ) -> None:
        self.spec = spec
        self.tools = {tool.name: tool for tool in spec.tools}
        self.examples = [
            (step.tool, step.arguments)
            for recording in recordings
            for step in recording.steps
            if isinstance(step, RecordedCall) and step.ok and not step.probed
        ]
        self.changed = Counter[str]()
        """Tool to its recorded calls of which the arguments were changed."""
        self.recorded: dict[OutputPlace, list[Any]] = defaultdict(list)
        """(tool, output path) to the values that recorded calls gave."""
        for recording in recordings:
            for step in recording.steps:
                if isinstance(step, RecordedCall) and step.tool in self.tools:
                    for leaf in iterate_new_values(step.output, step.arguments, self.tools[step.tool]):
                        self.recorded[step.tool, leaf.path].append(leaf.value)
        self.settings = settings
        self.phrasebook = phrasebook
        self.choices = {tool.name: list_enumerated_values(tool) for tool in spec.tools}
        self.full = {tool.name: tool.full_name for tool in spec.tools}
        plain = {full: name for name, full in self.full.items()}
        self.candidates: dict[OutputPlace, list[OutputPlace]] = defaultdict(list)
        """(target, parameter) to (source, output), the likeliest first."""
        self.likely: dict[OutputPlace, list[OutputPlace]] = defaultdict(list)
        """The same, of links from which arguments are filled."""
        own = [(-score, key) for key, score in scores.items() if score >= FLOOR and key[0] in plain and key[1] in plain]
        for worse, (giver, taker, output, parameter) in sorted(own):
            self.candidates[plain[taker], parameter].append((plain[giver], output))
            if -worse >= LIKELY:
                self.likely[plain[taker], parameter].append((plain[giver], output))
        self.ledger = ContrastLedger(self.tools, self.candidates, settings)
        self.results: dict[str, list[Any]] = defaultdict(list)
        self.faults: dict[str, str] = {}
        self.calls = 0

    async def on_state(
        self, session: Session, state: JsonObject, number: int, budget: CallBudget, rng: random.Random
    ) -> None:
        going_back = make_rewindable(session)
        await going_back.reset(state)
        base, digest = await going_back.checkpoint(), await going_back.state_hash()
        values = ValueSource(state)
        total = budget.left
        budget.left = total // 2
        probe = StateProbe(self.spec, going_back, values, self.phrasebook, rng, budget, base, digest, self.faults)
        await probe.try_examples(self.examples)
        await probe.harvest(self.likely)
        budget.left = total - budget.spent
        outputs = self._outputs(probe)
        for success in _interleaved(probe.successes):
            self.results[success.call.tool].append(success.call.result)
            for leaf in walk_leaves(success.call.arguments, self.tools[success.call.tool].input_schema, ""):
                if not self._is_choice(success.call.tool, leaf):
                    await Contrast(self.ledger, probe, success, leaf, outputs, number).run()
        self.calls += budget.spent

    async def on_recording(
        self,
        session: Session,
        recording: Recording,
        first: JsonObject,
        number: int,
        budget: CallBudget,
        rng: random.Random,
    ) -> None:
        """Play a recording, and change the arguments of its calls in the states where they were made."""
        wanted = (step.tool for step in recording.steps if isinstance(step, RecordedCall) and not step.probed)
        if not budget.left or all(self.changed[name] >= EXAMPLES for name in wanted if name in self.tools):
            return
        going_back = make_rewindable(session)
        state = read_initial_state(recording) or first
        await going_back.reset(state)
        values, earlier = ValueSource(state), list[SuccessfulCall]()
        for step in recording.steps:
            if isinstance(step, str) or step.tool not in self.tools or not budget.left:
                continue
            base, digest = await going_back.checkpoint(), await going_back.state_hash()
            probe = StateProbe(self.spec, going_back, values, self.phrasebook, rng, budget, base, digest, self.faults)
            probe.successes = [replace(success, mark=base) for success in earlier]
            success = await probe.try_call(self.tools[step.tool], step.arguments)
            if success is None:
                continue
            if not step.probed and self.changed[step.tool] < EXAMPLES:
                self.changed[step.tool] += 1
                outputs = self._outputs(probe)
                for leaf in walk_leaves(step.arguments, self.tools[step.tool].input_schema, ""):
                    if not self._is_choice(step.tool, leaf):
                        await Contrast(self.ledger, probe, success, leaf, outputs, number, self.recorded).run()
            earlier.append(success)
            self.results[step.tool].append(success.call.result)
            await going_back.rollback(success.mark)

    def _is_choice(self, tool: str, leaf: Leaf) -> bool:
        return canonicalize_value(leaf.value) is None or leaf.path in self.choices[tool]

    def _outputs(self, probe: StateProbe) -> Outputs:
        outputs: Outputs = defaultdict(dict)
        for success in probe.successes:
            for leaf in success.leaves:
                text = canonicalize_value(leaf.value)
                if text is not None:
                    outputs[success.call.tool, leaf.path].setdefault(text, (leaf.value, success.mark))
        return outputs

    def result(self) -> ExecutionEvidence:
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
        absent = {name: find_missing_outputs(self.tools[name], results) for name, results in self.results.items()}
        lies = [
            f"tool {self.full[name]}: execution: its output schema promises {', '.join(paths[:5])}, which no result has"
            for name, paths in sorted(absent.items())
            if paths
        ]
        return ExecutionEvidence(
            tuple(links),
            dict(self.ledger.parameters),
            (*lies, *broken),
            self.calls,
            frozenset(self.full[name] for name in self.results),
            frozenset((self.full[name], path) for name, paths in absent.items() for path in paths),
        )


def _interleaved(calls: Sequence[SuccessfulCall]) -> Iterator[SuccessfulCall]:
    """The first call of every tool before the second of any: the budget reaches all of them."""
    turns: dict[str, list[SuccessfulCall]] = defaultdict(list)
    for one in calls:
        turns[one.call.tool].append(one)
    for number in range(max(map(len, turns.values()), default=0)):
        yield from (tool_calls[number] for tool_calls in turns.values() if len(tool_calls) > number)


def find_missing_outputs(tool: ToolSpec, results: Sequence[Any]) -> list[str]:
    """Fields that the output schema promises and no result has, although the objects around them are there."""
    if not results or not tool.output_schema:
        return []
    missing = []
    for end in list_output_fields(tool):
        parts = split_path(end.path)
        around = [row for one in results for row in _rows(one, parts[:-1])]
        is_left_out = around and not any(end.name in row for row in around) and (end.required or len(results) >= 3)
        if parts[-1] != "*" and (is_left_out or all(_is_other_shape(one, parts) for one in results)):
            missing.append(end.path)
    return missing


def _is_other_shape(node: Any, parts: tuple[str, ...]) -> bool:
    """Return True if a list or a scalar stands where a path has a name."""
    if not parts or node is None:
        return False
    if isinstance(node, dict):
        return parts[0] in node and _is_other_shape(node[parts[0]], parts[1:])
    return not isinstance(node, list) or parts[0] != "*"


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
