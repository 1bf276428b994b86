"""Value flow in recorded conversations: which argument got its value from which earlier result.

An argument's value counts if it is no enumeration, specific (id-like, or at least three characters and no stop word;
numbers under 100 only where field and parameter share a word) and was not said by the user. Then the earliest call
whose result shows it is its producer (`first`); later ones that show it too are `later`; where the value stands in a
result only because the call was asked with it, that is an `echo`. Values that the user had said as well are `known`:
they tell that the two places mean the same thing, not that the value must come from there. Where no recorded call
showed the value, look-ups that were probed at that point count as first (`toolgraph.evidence.reaching`).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from toolgraph.evidence.leaves import Leaf, enumerated, id_like, mentions, same, specific, tokens_of, walk
from toolgraph.evidence.recordings import RecordedCall, Recording
from toolgraph.found import LinkEvidence, LinkKey
from trajectory import ToolSpec


@dataclass
class Flow:
    """Occurrences of one link."""

    first: int = 0
    later: int = 0
    echo: int = 0
    known: int = 0
    id_like: bool = False
    tasks: set[str] = field(default_factory=set)
    """Tasks with a `first`."""


@dataclass
class Origins:
    """Where the values of one parameter came from."""

    user: int = 0
    """Said by the user, and no result had shown it."""
    both: int = 0
    """Said by the user, and shown by a result too."""
    internal: int = 0
    """Shown by a result, and not said by the user."""
    unseen: int = 0
    """Nobody had said it and no result had shown it."""
    held: int = 0
    """Of those unseen: the initial state holds it, so that a look-up could have shown it."""
    choice: int = 0
    """One of the values that the schema lists."""

    @property
    def told(self) -> int:
        """Calls whose value has a known origin, or had to have one."""
        return self.user + self.both + self.internal + self.unseen


@dataclass
class Mined:
    """Everything that recordings say of a list of tools."""

    flows: dict[LinkKey, Flow] = field(default_factory=lambda: defaultdict(Flow))
    origins: dict[tuple[str, str], Origins] = field(default_factory=lambda: defaultdict(Origins))
    """(tool, parameter path) to where its values came from."""
    called: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Tool to how many calls of it succeeded."""
    unknown: set[str] = field(default_factory=set)
    """Tools that were called and are not in the list."""

    @cached_property
    def givers(self) -> frozenset[tuple[str, str]]:
        """(source, output path) of everything that gave a value first, to whatever tool."""
        return frozenset((source, output) for (source, _, output, _), flow in self.flows.items() if flow.tasks)

    def evidence(self) -> tuple[LinkEvidence, ...]:
        """The counts as a graph keeps them."""
        return tuple(
            LinkEvidence(
                source=source,
                target=target,
                output=output,
                input=parameter,
                by="recorded",
                worked=len(flow.tasks),
                known=flow.known,
                again=flow.later + flow.echo,
            )
            for (source, target, output, parameter), flow in sorted(self.flows.items())
        )


def mine(recordings: Iterable[Recording], tools: Sequence[ToolSpec]) -> Mined:
    """Count the value flow of all recordings; calls of tools that are not in the list are left out."""
    found, miner = Mined(), _Miner(tools)
    for recording in recordings:
        miner.read(recording, found)
    return found


@dataclass(frozen=True, slots=True)
class _Giver:
    """A result that showed a value."""

    tool: str
    leaf: Leaf
    echo: bool
    """The call was asked with it."""
    probed: bool


class _Miner:
    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.by_name = {tool.full_name: tool for tool in tools}
        self.plain: dict[str, list[str]] = defaultdict(list)
        for tool in tools:
            self.plain[tool.name].append(tool.full_name)
        self.choices = {name: enumerated(tool) for name, tool in self.by_name.items()}

    def name_of(self, call: RecordedCall) -> str | None:
        """Full name of a call's tool; None if it is not in the list, or if several have the plain name."""
        for name in (f"{call.server}.{call.tool}", call.tool):
            if name in self.by_name:
                return name
        found = self.plain.get(call.tool, [])
        return found[0] if len(found) == 1 else None

    def read(self, recording: Recording, found: Mined) -> None:
        reading = _Reading(self, recording, found)
        for step in recording.steps:
            if isinstance(step, str):
                reading.said += "\n" + step.lower()
                continue
            name = self.name_of(step)
            if name is None:
                found.unknown.add(step.tool)
            elif step.ok:
                reading.call(name, step)


@dataclass
class _Reading:
    """One recording, read up to some step."""

    miner: _Miner
    recording: Recording
    found: Mined
    said: str = ""
    shown: dict[str, list[_Giver]] = field(default_factory=lambda: defaultdict(list))
    """Value to the results that showed it, the earliest first."""

    def call(self, name: str, step: RecordedCall) -> None:
        """Where its arguments came from, and what it gave."""
        taken = list(walk(step.arguments, self.miner.by_name[name].input_schema, ""))
        if not step.probed:
            self.found.called[name] += 1
            for leaf in taken:
                self._origin(name, leaf)
        self._show(name, step, {text for leaf in taken if (text := same(leaf.value)) is not None})

    def _show(self, name: str, step: RecordedCall, asked: set[str]) -> None:
        """Remember every value of a result, once per path."""
        seen: set[tuple[str, str]] = set()
        for leaf in walk(step.output, self.miner.by_name[name].output_schema, keys=True):
            text = same(leaf.value)
            values = {text} if text is not None else set()
            if isinstance(leaf.value, str) and " " in leaf.value:
                values |= tokens_of(leaf.value)
            for value in sorted(values):
                if (value, leaf.path) not in seen:
                    seen.add((value, leaf.path))
                    self.shown[value].append(_Giver(name, leaf, value in asked, step.probed))

    def _origin(self, name: str, leaf: Leaf) -> None:
        text = same(leaf.value)
        origins = self.found.origins[name, leaf.path]
        if text is None or text in self.miner.choices[name].get(leaf.path, ()):
            origins.choice += 1
            return
        told = mentions(self.said, text)
        givers = [
            one
            for one in self.shown.get(text, ())
            if one.tool != name and specific(text, one.leaf.name, leaf.name) and not (told and one.probed)
        ]
        fresh = [one for one in givers if not one.echo]
        if told:
            origins.both += bool(fresh)
            origins.user += not fresh
        else:
            origins.internal += bool(fresh)
            origins.unseen += not fresh
            origins.held += not fresh and len(text) >= 3 and mentions(self.recording.state, text)
        recorded = [one for one in fresh if not one.probed]
        first = {recorded[0].tool} if recorded else {one.tool for one in fresh}
        for one in givers:
            flow = self.found.flows[one.tool, name, one.leaf.path, leaf.path]
            if one.echo:
                flow.echo += 1
            elif told:
                flow.known += 1
            elif one.tool in first:
                flow.first += 1
                flow.id_like |= id_like(text)
                flow.tasks.add(self.recording.task)
            else:
                flow.later += 1
