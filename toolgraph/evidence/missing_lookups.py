"""Recovers lookups missing from a recording: replays it and tries reads for unexplained arguments.

A gold call often names a thing that its author knew from the data. In the environment a look-up would have shown it:
those that can be called with what is known at that point are called, and the ones whose result holds the value stand in
the recording, marked as probed, before the call that used it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from trajsmith.environments import Session
from trajsmith.grounding import Rewindable, make_rewindable, split_name
from trajsmith.records import EnvironmentFault, JsonObject, ToolSpec
from trajsmith.toolgraph.evidence.recordings import RecordedCall, Recording
from trajsmith.toolgraph.evidence.value_leaves import (
    canonicalize_value,
    contains_value,
    list_enumerated_values,
    walk_leaves,
)
from trajsmith.toolgraph.index import CHANGE_VERBS, find_readers

LATEST = 3
"""Values of a parameter's name that are tried, the latest first."""
MOST = 12
"""Argument sets per look-up and call."""


async def add_lookups(recording: Recording, state: JsonObject, session: Session, budget: int = 400) -> Recording:
    """The recording with the look-ups that could have shown what its calls were made with.

    Args:
        recording: One task.
        state: Its initial state.
        session: Of the environment that it was recorded in; it is reset first.
        budget: Calls that may be made.

    Raises:
        EnvironmentFault: The environment broke.
    """
    player = _Player(make_rewindable(session), budget)
    await player.session.reset(state)
    player.digest = await player.session.state_hash()
    steps: list[str | RecordedCall] = []
    for step in recording.steps:
        if isinstance(step, str):
            player.user_text += "\n" + step
        else:
            steps += await player.before(step)
            await player.make(step)
        steps.append(step)
    return replace(recording, steps=tuple(steps))


@dataclass
class _Player:
    session: Rewindable
    budget: int
    user_text: str = ""
    digest: str = ""
    """Hash of the state, as the recorded calls left it."""
    shown: set[str] = field(default_factory=set)
    used: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """Parameter name to the values that calls were made with."""

    def __post_init__(self) -> None:
        self.tools: Mapping[str, ToolSpec] = {tool.name: tool for tool in self.session.spec.tools}
        self.lookups = sorted(find_lookup_tools(self.tools), key=lambda name: (len(self.tools[name].required), name))
        self.choices = {name: list_enumerated_values(tool) for name, tool in self.tools.items()}

    async def before(self, call: RecordedCall) -> list[RecordedCall]:
        """Look-ups that show a value of the call which nobody said and no result has shown."""
        spec = self.tools.get(call.tool)
        if spec is None or not call.ok:
            return []
        missing = {
            text
            for leaf in walk_leaves(call.arguments, spec.input_schema, "")
            if (text := canonicalize_value(leaf.value)) is not None
            and text not in self.choices[call.tool].get(leaf.path, ())
            and text not in self.shown
            and not contains_value(self.user_text, text)
        }
        lookup_calls = []
        for name in self.lookups if missing else ():
            for arguments in self._arguments(self.tools[name], call) if name != call.tool else ():
                output = await self._look(name, arguments)
                shown = {
                    canonicalize_value(leaf.value)
                    for leaf in walk_leaves(output, self.tools[name].output_schema, keys=True)
                }
                if missing & shown:
                    server = self.tools[name].server
                    lookup_calls.append(RecordedCall(name, server, arguments, output, ok=True, probed=True))
        return lookup_calls

    def _arguments(self, tool: ToolSpec, call: RecordedCall) -> Iterator[JsonObject]:
        """Arguments from what calls were made with under the same names, this one included."""
        names = tool.required
        known = [[*reversed(self.used.get(name, [])[-LATEST:])] for name in names]
        for name, values in zip(names, known, strict=True):
            if name in call.arguments and call.arguments[name] not in values:
                values.insert(0, call.arguments[name])
        for chosen in islice(product(*known), MOST):
            yield dict(zip(names, chosen, strict=True))

    async def _look(self, name: str, arguments: JsonObject) -> Any:
        """Return the result of a lookup; None if it is refused or changes the state."""
        if self.budget <= 0:
            return None
        self.budget -= 1
        mark = await self.session.checkpoint()
        try:
            result = await self.session.call(name, arguments, self.tools[name].actor)
            if not result.ok or await self.session.state_hash() == self.digest:
                return result.content if result.ok else None
        except EnvironmentFault:  # it breaks, so it is no look-up; the recorded calls go on
            pass
        await self.session.rollback(mark)
        self.lookups = [other for other in self.lookups if other != name]
        return None

    async def make(self, call: RecordedCall) -> None:
        """Play a recorded call; what it gave counts as it was recorded."""
        spec = self.tools.get(call.tool)
        if spec is None:
            return
        await self.session.call(call.tool, call.arguments, spec.actor)
        self.digest = await self.session.state_hash()
        for name, value in call.arguments.items():
            if value not in self.used[name]:
                self.used[name].append(value)
        for leaf in walk_leaves(call.output, spec.output_schema, keys=True):
            text = canonicalize_value(leaf.value)
            if text is not None:
                self.shown.add(text)


def find_lookup_tools(tools: Mapping[str, ToolSpec]) -> set[str]:
    """Tools that may be tried: those that read, and those whose names do not say; the state shows which change it."""
    silent = {
        name
        for name, tool in tools.items()
        if tool.annotations.read_only_hint is None and not CHANGE_VERBS.intersection(split_name(name))
    }
    return find_readers(dict(tools)) | silent
