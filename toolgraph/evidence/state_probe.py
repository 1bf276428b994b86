"""Successful calls on one initial state, from which contrast tests start."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trajsmith.environments import ToolResult
from trajsmith.grounding import Rewindable, ValueSource
from trajsmith.grounding.assign import Assigner, AssignmentContext
from trajsmith.phrasing import Phrasebook
from trajsmith.records import EnvironmentFault, EnvironmentSpec, GoldCall, JsonObject, ToolSpec, canonical_json
from trajsmith.toolgraph.evidence.value_leaves import Leaf, canonicalize_value, walk_leaves

SOURCES = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""(tool, parameter path) to (tool, output path) that could give it, likeliest first; plain names."""
TRIES = 8
"""Argument sets per tool and round."""
ROUNDS = 4
"""Passes over the tools; in the last one, values of the state stand in where no tool gave any."""
WANTED = 2
"""Calls with different arguments that are looked for."""
EXAMPLES = 5
"""Calls of one tool that are kept of the examples."""
MOST_EXAMPLES = 15
"""Examples of one tool that are tried."""
UNDECLARED = "$"
"""Path of a result of which the schema says nothing."""
MOST_VALUES = 60
"""Values that are kept per output path."""


@dataclass(frozen=True)
class SuccessfulCall:
    """A call that worked."""

    call: GoldCall
    mark: Any
    """Checkpoint at which its result holds: the initial state for reads, the state after it for writes."""
    leaves: tuple[Leaf, ...]
    """What its result tells beyond the arguments."""


@dataclass
class CallBudget:
    """Calls that may still be made."""

    left: int
    spent: int = 0

    def take(self) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        self.spent += 1
        return True


@dataclass
class StateProbe:
    """One initial state of one environment, and the calls that worked on it."""

    spec: EnvironmentSpec
    session: Rewindable
    values: ValueSource
    phrasebook: Phrasebook
    rng: random.Random
    budget: CallBudget
    base: Any
    """Checkpoint of the initial state."""
    digest: str
    """Its hash."""
    faults: dict[str, str]
    """Tool to how it broke; such a tool is not called again."""
    successes: list[SuccessfulCall] = field(default_factory=list)
    tried: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    """Tool to its arguments in the harvest, so that nothing is called twice."""

    async def try_examples(self, examples: Iterable[tuple[str, JsonObject]]) -> None:
        """Make calls that may work, and keep the first few of each tool that do."""
        tools = {tool.name: tool for tool in self.spec.tools}
        count = Counter[str]()
        for name, arguments in examples:
            key = canonical_json(arguments)
            tried = self.tried[name]
            if name not in tools or count[name] == EXAMPLES or key in tried or len(tried) == MOST_EXAMPLES:
                continue
            tried.add(key)
            success = await self.try_call(tools[name], arguments)
            if success is not None:
                self.successes.append(success)
                count[name] += 1

    async def try_call(self, tool: ToolSpec, arguments: JsonObject) -> SuccessfulCall | None:
        """Make a call on the initial state; None if it does not work."""
        result, changed, mark = await self.call(tool, arguments, keep=True)
        if result is None or not result.ok or not (changed or is_informative(result, arguments)):
            return None
        call = GoldCall(
            tool=tool.name,
            actor=tool.actor,
            arguments=arguments,
            provenance={},
            effect="write" if changed else "read",
            result=result.content,
        )
        return SuccessfulCall(call, mark, tuple(iterate_new_values(result.content, arguments, tool)))

    async def harvest(self, sources: SOURCES) -> None:
        """Call every tool until two calls of it work, reads first; what they give fills the others' arguments."""
        tools = {tool.name: tool for tool in self.spec.tools}
        assigner = Assigner(tools, self.values, self.phrasebook, 0.3)
        order = sorted(tools.values(), key=lambda tool: (tool.declares_write, len(tool.required), tool.name))
        count = Counter(success.call.tool for success in self.successes)
        for number in range(ROUNDS):
            for tool in order:
                if count[tool.name] < WANTED and tool.name not in self.faults:
                    count[tool.name] += await self._find(
                        tool, assigner, sources, number == ROUNDS - 1, count[tool.name]
                    )

    async def _find(self, tool: ToolSpec, assigner: Assigner, sources: SOURCES, last: bool, had: int) -> int:
        """Try a few argument sets; 1 if a new call works."""
        context = AssignmentContext([success.call for success in self.successes if success.call.effect == "read"])
        ready = _ready(tool.name, assigner, sources, context.calls, loose=last and not had)
        plan = assigner.plan(tool.name, ready, context, self.rng, lookup=True)
        for assignment in plan.draw_untried(self.rng, self.tried[tool.name], TRIES):
            result, changed, mark = await self.call(tool, assignment.arguments, keep=True)
            if result is None:
                return 0
            if result.ok and (changed or is_informative(result, assignment.arguments)):
                call = assignment.as_call(tool, changed, result.content)
                leaves = tuple(iterate_new_values(result.content, assignment.arguments, tool))
                self.successes.append(SuccessfulCall(call, mark, leaves))
                return 1
        return 0

    async def call(
        self, tool: ToolSpec, arguments: JsonObject, start: Any = None, keep: bool = False
    ) -> tuple[ToolResult | None, bool, Any]:
        """Make a call and go back to the initial state.

        Args:
            tool: What is called.
            arguments: As the tool takes them.
            start: Checkpoint to start from; the initial state if None.
            keep: Also make a checkpoint of the state after a change.

        Returns:
            The result (None if the budget is spent or the environment broke), whether the state changed, and the
            checkpoint at which the result holds.
        """
        if tool.name in self.faults or not self.budget.take():
            return None, False, None
        try:
            before = self.digest
            if start is not None and start is not self.base:
                await self.session.rollback(start)
                before = await self.session.state_hash()
            result = await self.session.call(tool.name, arguments, tool.actor)
            changed = result.ok and await self.session.state_hash() != before
            mark = await self.session.checkpoint() if changed and keep else (self.base if start is None else start)
            if changed or before != self.digest:
                await self.session.rollback(self.base)
        except EnvironmentFault as fault:
            self.faults[tool.name] = f"{fault.kind}: {fault.message}"
            await self.session.rollback(self.base)
            return None, False, None
        return result, changed, mark


def _ready(
    tool: str, assigner: Assigner, sources: SOURCES, calls: Sequence[GoldCall], loose: bool
) -> dict[str, list[tuple[int, str]]]:
    """Return the possible sources of a tool's leaves; `loose` omits those without any value yet."""
    ready: dict[str, list[tuple[int, str]]] = {}
    for leaf in assigner.fields[tool]:
        givers = sources.get((tool, leaf.path))
        if givers is None:
            continue
        options = [
            (at, real)
            for name, path in givers
            for at, call in enumerate(calls)
            if call.tool == name
            for real in _real_paths(path, call, leaf.name)
        ]
        if options or not loose:
            ready[leaf.path] = options
    return ready


def _real_paths(path: str, call: GoldCall, parameter: str) -> list[str]:
    """The path itself; of a result that no schema declares, the fields that share the parameter's name."""
    if path != UNDECLARED:
        return [path]
    fields = dict.fromkeys(leaf.path for leaf in walk_leaves(call.result, None) if leaf.name == parameter)
    return [path] if _is_value(call.result) else list(fields)


def _is_value(value: Any) -> bool:
    """Return True if a result is itself a value."""
    return not isinstance(value, dict | list) and canonicalize_value(value) is not None


def iterate_new_values(content: Any, arguments: JsonObject, tool: ToolSpec) -> Iterator[Leaf]:
    """Values of a result that the call was not asked with."""
    asked = {canonicalize_value(leaf.value) for leaf in walk_leaves(arguments, tool.input_schema, "")}
    number: dict[str, int] = defaultdict(int)
    for leaf in walk_leaves(content, tool.output_schema):
        text = canonicalize_value(leaf.value)
        if text is not None and text not in asked and number[leaf.path] < MOST_VALUES:
            number[leaf.path] += 1
            yield leaf


def is_informative(result: ToolResult, arguments: JsonObject) -> bool:
    """Return True if a result holds more than zeros, flags and echoed arguments."""
    if not result.ok:
        return False
    asked = {canonicalize_value(leaf.value) for leaf in walk_leaves(arguments, None, "")}
    return any(
        not isinstance(leaf.value, bool) and leaf.value != 0 and canonicalize_value(leaf.value) not in asked
        for leaf in walk_leaves(result.content, None)
    )
