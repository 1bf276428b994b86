"""Look-ups that nobody made: a recorded task is played again, and where an argument fell from the sky, reads are tried.

A gold call often names a thing that its author knew from the data. In the environment a look-up would have shown it:
those that can be called with what is known at that point are called, and the ones whose result holds the value stand in
the recording, marked as probed, before the call that used it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from typing import Any

from environments import Session
from grounding.names import words
from grounding.rewind import Rewindable, rewindable
from toolgraph.evidence.leaves import enumerated, mentions, same, walk
from toolgraph.evidence.recordings import RecordedCall, Recording
from toolgraph.index import CHANGE_VERBS, readers
from trajectory import EnvironmentFault, JsonObject, ToolSpec

LATEST = 3
"""Values of a parameter's name that are tried, the latest first."""
MOST = 12
"""Argument sets per look-up and call."""


async def with_lookups(recording: Recording, state: JsonObject, session: Session, budget: int = 400) -> Recording:
    """The recording with the look-ups that could have shown what its calls were made with.

    Args:
        recording: One task.
        state: Its initial state.
        session: Of the environment that it was recorded in; it is reset first.
        budget: Calls that may be made.

    Raises:
        EnvironmentFault: The environment broke.
    """
    player = _Player(rewindable(session), budget)
    await player.session.reset(state)
    player.digest = await player.session.state_hash()
    steps: list[str | RecordedCall] = []
    for step in recording.steps:
        if isinstance(step, str):
            player.said += "\n" + step
        else:
            steps += await player.before(step)
            await player.make(step)
        steps.append(step)
    return replace(recording, steps=tuple(steps))


@dataclass
class _Player:
    session: Rewindable
    budget: int
    said: str = ""
    digest: str = ""
    """Hash of the state, as the recorded calls left it."""
    shown: set[str] = field(default_factory=set)
    used: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """Parameter name to the values that calls were made with."""

    def __post_init__(self) -> None:
        self.tools: Mapping[str, ToolSpec] = {tool.name: tool for tool in self.session.spec.tools}
        self.lookups = sorted(lookups(self.tools), key=lambda name: (len(_needs(self.tools[name])), name))
        self.choices = {name: enumerated(tool) for name, tool in self.tools.items()}

    async def before(self, call: RecordedCall) -> list[RecordedCall]:
        """Look-ups that show a value of the call which nobody said and no result has shown."""
        spec = self.tools.get(call.tool)
        if spec is None or not call.ok:
            return []
        missing = {
            text
            for leaf in walk(call.arguments, spec.input_schema, "")
            if (text := same(leaf.value)) is not None
            and text not in self.choices[call.tool].get(leaf.path, ())
            and text not in self.shown
            and not mentions(self.said, text)
        }
        found = []
        for name in self.lookups if missing else ():
            for arguments in self._arguments(self.tools[name], call) if name != call.tool else ():
                output = await self._look(name, arguments)
                shown = {same(leaf.value) for leaf in walk(output, self.tools[name].output_schema, keys=True)}
                if missing & shown:
                    server = self.tools[name].server
                    found.append(RecordedCall(name, server, arguments, output, ok=True, probed=True))
        return found

    def _arguments(self, tool: ToolSpec, call: RecordedCall) -> Iterator[JsonObject]:
        """Arguments from what calls were made with under the same names, this one included."""
        names = _needs(tool)
        known = [[*reversed(self.used.get(name, [])[-LATEST:])] for name in names]
        for name, values in zip(names, known, strict=True):
            if name in call.arguments and call.arguments[name] not in values:
                values.insert(0, call.arguments[name])
        for chosen in islice(product(*known), MOST):
            yield dict(zip(names, chosen, strict=True))

    async def _look(self, name: str, arguments: JsonObject) -> Any:
        """What a look-up gives here; None if it refuses, or changes something and so is none."""
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
        for leaf in walk(call.output, spec.output_schema, keys=True):
            text = same(leaf.value)
            if text is not None:
                self.shown.add(text)


def lookups(tools: Mapping[str, ToolSpec]) -> set[str]:
    """Tools that may be tried: those that read, and those whose names do not say; the state shows which change it."""
    silent = {
        name
        for name, tool in tools.items()
        if tool.annotations.read_only_hint is None and not CHANGE_VERBS.intersection(words(name))
    }
    return readers(dict(tools)) | silent


def _needs(tool: ToolSpec) -> Sequence[str]:
    found = tool.input_schema.get("required")
    return found if isinstance(found, list) else ()
