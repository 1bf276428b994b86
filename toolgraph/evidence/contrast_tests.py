"""Contrast tests: one argument of a successful call replaced by unrelated and by candidate values."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from trajsmith.grounding import is_identifier, split_path
from trajsmith.records import JsonObject, ToolSpec
from trajsmith.toolgraph.evidence.chance_matches import SMALL, guess_numbers, is_same_entity, parse_whole_number
from trajsmith.toolgraph.evidence.state_probe import StateProbe, SuccessfulCall, is_informative
from trajsmith.toolgraph.evidence.value_leaves import (
    Leaf,
    canonicalize_value,
    is_id_like,
    is_specific_match,
    walk_leaves,
)
from trajsmith.toolgraph.graph import LinkKey
from trajsmith.toolgraph.settings import ExecutionSettings

_DIGITS = re.compile(r"\d+")
OutputPlace = tuple[str, str]
"""(tool, path), plain names."""
Outputs = dict[OutputPlace, dict[str, tuple[Any, Any]]]
"""(tool, output path) to value's text to (value, checkpoint at which it holds)."""


@dataclass
class LinkTally:
    """Counts of one link."""

    worked: int = 0
    failed: int = 0
    elsewhere_worked: int = 0
    elsewhere_failed: int = 0
    chance: int = 0
    states: set[int] = field(default_factory=set)


@dataclass
class ParameterTrials:
    """Execution evidence of one parameter."""

    tried: int = 0
    """Values from elsewhere that were put in."""
    free: int = 0
    """Those with which the call worked all the same."""
    accepted: set[str] = field(default_factory=set)
    """Values with which the call worked."""
    held: set[str] = field(default_factory=set)
    """Those of them that the initial state holds."""
    given_elsewhere: set[str] = field(default_factory=set)
    """Those of them that another tool's result gives."""


@dataclass
class ContrastLedger:
    """Counts of all links and parameters, and the candidates to test."""

    tools: Mapping[str, ToolSpec]
    """By plain name."""
    candidates: Mapping[OutputPlace, Sequence[OutputPlace]]
    """(target, parameter) to (source, output), the likeliest first."""
    settings: ExecutionSettings
    tallies: dict[LinkKey, LinkTally] = field(default_factory=lambda: defaultdict(LinkTally))
    parameters: dict[tuple[str, str], ParameterTrials] = field(default_factory=lambda: defaultdict(ParameterTrials))
    """(full tool name, parameter path)."""


@dataclass(frozen=True)
class ContrastOutcome:
    """Outcome of a call with a replaced value."""

    good: bool
    """It changed the state, or told something."""
    refusal: str | None
    """What it said when it refused, without the values; None if it did not refuse."""


@dataclass
class Contrast:
    """Contrast test of one argument of one successful call."""

    ledger: ContrastLedger
    probe: StateProbe
    baseline_call: SuccessfulCall
    leaf: Leaf
    outputs: Outputs
    state: int
    unrelated: Mapping[OutputPlace, Sequence[Any]] = field(default_factory=dict)
    """More values from elsewhere: (tool, output path) to what it gave in other states."""

    def __post_init__(self) -> None:
        self.tool = self.ledger.tools[self.baseline_call.call.tool]
        self.baseline = canonicalize_value(self.leaf.value) or ""
        self.known: dict[tuple[str, int], ContrastOutcome] = {
            (self.baseline, id(self.probe.base)): ContrastOutcome(True, None)
        }
        """(value, checkpoint) to what became of the call."""
        self.far: list[ContrastOutcome] = []
        """What became of values from elsewhere."""
        self.guessable: bool | None = None
        """Whether whole numbers picked between those that work do too; None before it is tried."""

    async def run(self) -> None:
        places = self._places()
        await self._elsewhere(places)
        good = sum(one.good for one in self.far)
        tried = self.ledger.parameters[self.tool.full_name, self.leaf.path]
        tried.tried += len(self.far)
        tried.free += good
        if good < len(self.far):
            outcomes_by_place = {place: await self._values(place) for place in places}
            alone = any(one.good and text != self.baseline for (text, _), one in self.known.items())
            for place, outcomes in outcomes_by_place.items():
                self._count(place, outcomes, alone, await self._by_chance(place))
        for text in sorted({text for (text, _), one in self.known.items() if one.good}):
            tried.accepted.add(text)
            if self.probe.values.mentions(text):
                tried.held.add(text)
            if any(text in values for (name, _), values in self.outputs.items() if name != self.tool.name):
                tried.given_elsewhere.add(text)

    def _count(
        self, place: OutputPlace, outcomes: Mapping[str, ContrastOutcome], alone: bool, chance: Set[str]
    ) -> None:
        """Add to a link's tally; a refusal in other words than those for values from elsewhere counts for nothing."""
        strange = {one.refusal for one in self.far if not one.good}
        tally = self.ledger.tallies[self._link(place)]
        worked = {text for text, one in outcomes.items() if one.good or (one.refusal is None and None not in strange)}
        tally.worked += len(worked - chance)
        tally.chance += len(worked & chance)
        tally.failed += alone * sum(not one.good and one.refusal in strange for one in outcomes.values())
        tally.elsewhere_worked += sum(one.good for one in self.far)
        tally.elsewhere_failed += sum(not one.good for one in self.far)
        if worked - chance:
            tally.states.add(self.state)

    def _link(self, place: OutputPlace) -> LinkKey:
        return self.ledger.tools[place[0]].full_name, self.tool.full_name, place[1], self.leaf.path

    async def _by_chance(self, place: OutputPlace) -> Set[str]:
        """Values of a place that say nothing if they work: numbers that another thing may have too."""
        numbers = {text: number for text in self.outputs[place] if (number := parse_whole_number(text)) is not None}
        if parse_whole_number(self.leaf.value) is None or is_same_entity(*place, self.tool.name, self.leaf.path):
            return frozenset()
        telling = {text for text, number in numbers.items() if abs(number) >= SMALL} - {self.baseline}
        distinctive_worked = any(
            (one := self.known.get((text, id(self.outputs[place][text][1])))) and one.good for text in telling
        )
        if not distinctive_worked or await self._guessable():
            return numbers.keys()
        return numbers.keys() - telling

    async def _guessable(self) -> bool:
        """Return True if a whole number between working values works too, or if no call was left to test it."""
        if self.guessable is None:
            working = sorted(text for (text, _), one in self.known.items() if one.good)
            chosen = guess_numbers(self.leaf.value, working, self.ledger.settings.elsewhere, self.probe.rng)
            outcomes = [await self._try(canonicalize_value(one) or "", one, self.probe.base) for one in chosen]
            self.guessable = any(one is None or one.good for one in outcomes)
        return self.guessable

    def _places(self) -> list[OutputPlace]:
        """Outputs to try: those that matching sees, and those that hold the very value."""
        name = self.tool.name
        seen = [place for place in self.ledger.candidates.get((name, self.leaf.path), ()) if place in self.outputs]
        if is_identifier(self.leaf.name) or is_id_like(self.baseline):
            seen += [
                (giver, path)
                for (giver, path), values in self.outputs.items()
                if self.baseline in values
                and (
                    split_path(path)[-1] == self.leaf.name
                    or is_specific_match(self.baseline, split_path(path)[-1], self.leaf.name)
                )
            ]
        return [place for place in dict.fromkeys(seen) if place[0] != name]

    async def _elsewhere(self, places: Sequence[OutputPlace]) -> None:
        """Try values of the same type that none of the places gives."""
        near = {text for place in places for text in self.outputs[place]} | {self.baseline}
        kind = type(self.leaf.value)
        far = {
            text: value
            for values in self.outputs.values()
            for text, (value, _) in values.items()
            if type(value) is kind and text not in near
        }
        for place, values in self.unrelated.items():
            for value in values if place not in places else ():
                if type(value) is kind and (text := canonicalize_value(value)) is not None and text not in near:
                    far.setdefault(text, value)
        chosen = self.probe.rng.sample(sorted(far), min(len(far), self.ledger.settings.elsewhere))
        outcomes = [await self._try(text, far[text], self.probe.base) for text in chosen]
        self.far = [one for one in outcomes if one is not None]

    async def _values(self, place: OutputPlace) -> dict[str, ContrastOutcome]:
        """Try values that a place gives; one that was tried already costs nothing."""
        values = sorted(((text, *outcomes) for text, outcomes in self.outputs[place].items()), key=itemgetter(0))
        first = [item for item in values if item[0] == self.baseline]
        rest = [item for item in values if item[0] != self.baseline]
        some = self.probe.rng.sample(rest, min(len(rest), self.ledger.settings.values))
        outcomes = {item[0]: await self._try(*item) for item in (*first, *some)}
        return {text: one for text, one in outcomes.items() if one is not None}

    async def _try(self, text: str, value: Any, mark: Any) -> ContrastOutcome | None:
        """The call with this value instead; None if that could not be told."""
        key = (text, id(mark))
        if key not in self.known:
            arguments = replace_argument(self.baseline_call.call.arguments, self.leaf, value)
            result, changed, _ = await self.probe.call(self.tool, arguments, mark)
            if result is None:
                return None
            refusal = None if result.ok else _wording(result.text, arguments, self.tool)
            self.known[key] = ContrastOutcome(result.ok and (changed or is_informative(result, arguments)), refusal)
        return self.known[key]


def _wording(refusal: str, arguments: JsonObject, tool: ToolSpec) -> str:
    """A refusal without the values that it speaks of."""
    for text in sorted(
        {canonicalize_value(leaf.value) or "" for leaf in walk_leaves(arguments, tool.input_schema, "")},
        key=len,
        reverse=True,
    ):
        refusal = refusal.replace(text, "") if len(text) > 1 else refusal
    return _DIGITS.sub("", refusal)


def replace_argument(arguments: JsonObject, leaf: Leaf, value: Any) -> JsonObject:
    """Arguments with another value at a leaf, wherever the old one stands at this path."""

    def copy(node: Any, parts: tuple[str, ...]) -> Any:
        if isinstance(node, list) and parts[:1] in ((), ("*",)):
            return [copy(child, parts[1:]) for child in node]
        if not parts:
            return value if node == leaf.value else node
        if isinstance(node, dict):
            return {key: copy(child, parts[1:]) if parts[0] in (key, "*") else child for key, child in node.items()}
        return node

    return dict(copy(arguments, split_path(leaf.path)))
