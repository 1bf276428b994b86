"""Value flow in recorded conversations: which argument got its value from which earlier result.

An argument's value counts if it is no enumeration, specific (id-like, or at least three characters and no stop word;
numbers under 100 only where field and parameter share a word) and was not said by the user. Then the earliest call
whose result shows it is its producer (`first`); later ones that show it too are `later`; where the value stands in a
result only because the call was asked with it, that is an `echo`. Values that the user had said as well are `known`:
they tell that the two places mean the same thing, not that the value must come from there. Where no recorded call
showed the value, look-ups that were probed at that point count as first
(`trajsmith.toolgraph.evidence.missing_lookups`).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from trajsmith.records import JsonObject, JsonValue, ToolSpec
from trajsmith.toolgraph.evidence.recordings import RecordedCall, Recording
from trajsmith.toolgraph.evidence.value_leaves import (
    Leaf,
    canonicalize_value,
    contains_value,
    extract_id_tokens,
    is_id_like,
    is_specific_match,
    list_enumerated_values,
    walk_leaves,
)
from trajsmith.toolgraph.graph import LinkEvidence, LinkKey


@dataclass
class ValueFlow:
    """Occurrences of one link."""

    first: int = 0
    later: int = 0
    echo: int = 0
    known: int = 0
    id_like: bool = False
    tasks: set[str] = field(default_factory=set)
    """Tasks with a `first`."""


@dataclass
class ValueOrigins:
    """Origins of the values of one parameter."""

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
    def known_origins(self) -> int:
        """Calls whose value has a known origin, or had to have one."""
        return self.user + self.both + self.internal + self.unseen


@dataclass
class RecordedEvidence:
    """Evidence from recordings about a list of tools."""

    flows: dict[LinkKey, ValueFlow] = field(default_factory=lambda: defaultdict(ValueFlow))
    origins: dict[tuple[str, str], ValueOrigins] = field(default_factory=lambda: defaultdict(ValueOrigins))
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


def mine_recordings(recordings: Iterable[Recording], tools: Sequence[ToolSpec]) -> RecordedEvidence:
    """Count the value flow of all recordings; calls of tools that are not in the list are left out."""
    mined, miner = RecordedEvidence(), _Miner(tools)
    for recording in recordings:
        miner.read(recording, mined)
    return mined


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
        self.choices = {name: list_enumerated_values(tool) for name, tool in self.by_name.items()}

    def name_of(self, call: RecordedCall) -> str | None:
        """Full name of a call's tool; None if it is not in the list, or if several have the plain name."""
        for name in (f"{call.server}.{call.tool}", call.tool):
            if name in self.by_name:
                return name
        matches = self.plain.get(call.tool, [])
        return matches[0] if len(matches) == 1 else None

    def read(self, recording: Recording, mined: RecordedEvidence) -> None:
        reading = _Reading(self, recording, mined)
        for step in recording.steps:
            if isinstance(step, str):
                reading.user_text += "\n" + step.lower()
                continue
            name = self.name_of(step)
            if name is None:
                mined.unknown.add(step.tool)
            elif step.ok:
                reading.call(name, step)


@dataclass
class _Reading:
    """One recording, read up to some step."""

    miner: _Miner
    recording: Recording
    mined: RecordedEvidence
    user_text: str = ""
    shown: dict[str, list[_Giver]] = field(default_factory=lambda: defaultdict(list))
    """Value to the results that showed it, the earliest first."""

    def call(self, name: str, step: RecordedCall) -> None:
        """Record the origins of the arguments and the outputs of one call."""
        taken = list(walk_leaves(step.arguments, self.miner.by_name[name].input_schema, ""))
        if not step.probed:
            self.mined.called[name] += 1
            for leaf in taken:
                self._origin(name, leaf)
        self._show(name, step, {text for leaf in taken if (text := canonicalize_value(leaf.value)) is not None})

    def _show(self, name: str, step: RecordedCall, asked: set[str]) -> None:
        """Remember every value of a result, once per path."""
        seen: set[tuple[str, str]] = set()
        schema = self.miner.by_name[name].output_schema
        for leaf in walk_leaves(_fit_result(step.output, schema), schema, keys=True):
            text = canonicalize_value(leaf.value)
            values = {text} if text is not None else set()
            if isinstance(leaf.value, str) and " " in leaf.value:
                values |= extract_id_tokens(leaf.value)
            for value in sorted(values):
                if (value, leaf.path) not in seen:
                    seen.add((value, leaf.path))
                    self.shown[value].append(_Giver(name, leaf, value in asked, step.probed))

    def _origin(self, name: str, leaf: Leaf) -> None:
        text = canonicalize_value(leaf.value)
        origins = self.mined.origins[name, leaf.path]
        if text is None or text in self.miner.choices[name].get(leaf.path, ()):
            origins.choice += 1
            return
        stated_by_user = contains_value(self.user_text, text)
        givers = [
            one
            for one in self.shown.get(text, ())
            if one.tool != name
            and is_specific_match(text, one.leaf.name, leaf.name)
            and not (stated_by_user and one.probed)
        ]
        fresh = [one for one in givers if not one.echo]
        if stated_by_user:
            origins.both += bool(fresh)
            origins.user += not fresh
        else:
            origins.internal += bool(fresh)
            origins.unseen += not fresh
            origins.held += not fresh and len(text) >= 3 and contains_value(self.recording.state, text)
        recorded = [one for one in fresh if not one.probed]
        first = {recorded[0].tool} if recorded else {one.tool for one in fresh}
        for one in givers:
            flow = self.mined.flows[one.tool, name, one.leaf.path, leaf.path]
            if one.echo:
                flow.echo += 1
            elif stated_by_user:
                flow.known += 1
            elif one.tool in first:
                flow.first += 1
                flow.id_like |= is_id_like(text)
                flow.tasks.add(self.recording.task)
            else:
                flow.later += 1


def _fit_result(output: JsonValue, schema: JsonObject | None) -> JsonValue:
    """A result as its schema has it: tools wrap what is no object as {"result": ...}, and recordings may not."""
    schema = schema or {}
    is_wrapped = isinstance(output, dict) and output.keys() == {"result"}
    if (schema.get("properties") or {}).keys() == {"result"}:
        return output if is_wrapped else {"result": output}
    return output["result"] if is_wrapped and schema.get("type") not in (None, "object") else output
