"""Mutants: gold runs with one mistake of a kind that agents make. Each is executed for real.

A mistake that comes to the same as gold is none. What a mutant tells its user is what it really saw.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from trajsmith.environments import diff
from trajsmith.environments.composite import find_homes
from trajsmith.grounding import (
    ValueSource,
    find_values,
    get_argument_name,
    get_leaf_name,
    is_identifier,
    iterate_leaves,
    list_input_fields,
    replace_value_at,
)
from trajsmith.phrasing import format_value, is_value_mentioned, parse_datetime, shift_within_calendar
from trajsmith.records import AnswerFact, EnvironmentSpec, FromOutput, GoldCall, JsonObject, JsonValue
from trajsmith.verify.gold_run import GoldRun, GoldStep, RunResult
from trajsmith.verify.normalized_state import find_changed_places, is_there

KINDS = ("argument", "dropped", "doubled", "wrong_entity", "extra", "swapped", "undone", "answer")
UNDO_TRIES = 12
MutantAnswers = dict[tuple[int, int], JsonValue]
"""(turn, number of the fact) to what is told in its place."""


@dataclass(frozen=True)
class RunMutant:
    """A gold run with one mistake.

    Attributes:
        kind: One of `KINDS`, or "crossing".
        says: What was done, for people.
        start: First step that is not as in gold.
        steps: All steps from there on.
        answers: Facts that are told wrongly.
        must: Position in `steps` of the call that is the mistake; if it is refused there was none.
    """

    kind: str
    says: str
    start: int = 0
    steps: tuple[GoldStep, ...] = ()
    answers: MutantAnswers = field(default_factory=dict)
    must: int | None = None


class AlternativeValues:
    """Alternative values of the arguments of gold calls, from the schemas of an environment and one initial state."""

    def __init__(self, spec: EnvironmentSpec, state: JsonObject, rng: random.Random) -> None:
        self.fields = {tool.name: {field.path: field for field in list_input_fields(tool)} for tool in spec.tools}
        self.required = {tool.name: frozenset(tool.required) for tool in spec.tools}
        """Tool to the top-level arguments that a call cannot do without."""
        self.source = ValueSource(state)
        self.rng = rng

    def others(self, call: GoldCall, path: str, value: Any) -> list[Any]:
        """Other values of the same type for the leaf at a path such as "items[0].sku", likely ones first."""
        field = self.fields[call.tool].get(re.sub(r"\[\d+\]", "[*]", path))
        return [] if field is None else self.source.change(field, value, self.rng)

    def other_entities(self, path: str, source: FromOutput, value: Any, results: Any) -> list[Any]:
        """Ids of other things of the same kind: rows of the list that the id came from, then of the state."""
        rows = [match.value for match in find_values(results, source.path)]
        table = [entry[2] for entry in self.source.by_name.get(get_leaf_name(path), [])]
        self.rng.shuffle(table)
        entities = dict.fromkeys(other for other in [*rows, *table[:4]] if isinstance(other, str | int))
        return [other for other in entities if other != value and type(other) is type(value)]


def is_entity_argument(path: str, value: Any) -> bool:
    """Return True for an argument that identifies an entity."""
    return is_identifier(get_leaf_name(path)) and isinstance(value, str | int)


class RunMutator:
    """Makes mutants of one gold run, kind by kind, in an order that depends on the seed only."""

    def __init__(
        self,
        gold: GoldRun,
        spec: EnvironmentSpec,
        facts: Sequence[Sequence[AnswerFact]],
        telling: AbstractSet[int],
        seed: int,
    ) -> None:
        """`telling` are the gold calls whose results the answers tell."""
        self.gold = gold
        self.spec = spec
        self.facts = [[fact.value for fact in wanted] for wanted in facts]
        self.telling = telling
        self.rng = random.Random(seed)
        self.values = AlternativeValues(spec, gold.initial, self.rng)
        self.writes = [step.index for step in gold.steps if step.call.effect == "write" and step.index is not None]

    def all(self) -> Iterator[RunMutant]:
        """Mutants of all kinds in turn, until there are no more."""
        makers: dict[str, Callable[[], Iterator[RunMutant]]] = {
            "argument": self.arguments, "dropped": self.dropped, "doubled": self.doubled,
            "wrong_entity": self.entities, "extra": self.extra, "swapped": self.swapped, "undone": self.undone,
            "answer": self.answers,
        }  # fmt: skip
        open_kinds = {kind: makers[kind]() for kind in self.rng.sample(KINDS, len(KINDS))}
        while open_kinds:
            for kind, mutants in list(open_kinds.items()):
                mutant = next(mutants, None)
                if mutant is None:
                    del open_kinds[kind]
                else:
                    yield mutant

    def unneeded(self) -> Iterator[tuple[int, str, list[RunMutant]]]:
        """(gold call, argument, runs with other values of it) of arguments that may not matter, likely ones first:
        those that a read can do without, then other arguments of reads. What a write is given stands in the state."""
        sites = [
            (path in self.values.required[step.call.tool], step, path, value)
            for step in self.gold.steps
            if step.actor == "assistant" and step.call.effect == "read"
            for path, source, value in iterate_leaves(step.call)
            if not isinstance(source, FromOutput)
        ]
        for _, step, path, value in sorted(sites, key=lambda site: site[0]):
            tries = list(self._arguments_at(step, path, value))
            if tries and path in step.call.arguments:
                yield step.index or 0, path, tries

    def _from(self, index: int, *instead: GoldStep) -> tuple[GoldStep, ...]:
        """The steps from `index` on, with others in place of that one."""
        return (*instead, *self.gold.steps[index + 1 :])

    def _order(self, indices: Sequence[int]) -> list[int]:
        return self.rng.sample(indices, len(indices))

    def arguments(self) -> Iterator[RunMutant]:
        """Another value for one argument that is no id."""
        sites = [
            (step, path, value)
            for step in self.gold.steps
            if step.actor == "assistant"
            for path, source, value in iterate_leaves(step.call)
            if not (isinstance(source, FromOutput) and is_entity_argument(path, value))
        ]
        for step, path, value in self.rng.sample(sites, len(sites)):
            yield from self._arguments_at(step, path, value)

    def _arguments_at(self, step: GoldStep, path: str, value: Any) -> Iterator[RunMutant]:
        others = self.values.others(step.call, path, value)
        for other in [*others[:2], *others[2:][-1:]]:
            yield self._with(step, path, other, "argument")

    def _with(self, step: GoldStep, path: str, other: Any, kind: str) -> RunMutant:
        index = step.index or 0
        wrong = _replace_leaf(step, path, other)
        says = f"call {index}, {step.call.tool}: {path} is {other!r}"
        return RunMutant(kind, says, index, self._from(index, wrong), must=0)

    def dropped(self) -> Iterator[RunMutant]:
        """A write is not made, or a read whose result the answer tells; later calls guess what it would have been."""
        for index in self._order(sorted({*self.writes, *self.telling})):
            yield RunMutant(
                "dropped", f"call {index}, {self.gold.calls[index].tool}, is left out", index, self._from(index)
            )

    def doubled(self) -> Iterator[RunMutant]:
        """One write is made twice."""
        for index in self._order(self.writes):
            step = self.gold.steps[index]
            twice = self._from(index, step, GoldStep(step.call, step.turn, None))
            yield RunMutant("doubled", f"call {index}, {step.call.tool}, is made twice", index, twice, must=1)

    def crossing(self) -> Iterator[tuple[str, list[RunMutant]]]:
        """Values that cross from one environment into another, each with runs that take another in its place."""
        homes = find_homes(self.spec)
        for step in self.gold.steps:
            for path, source, value in iterate_leaves(step.call):
                if not isinstance(source, FromOutput):
                    continue
                giver = self.gold.calls[source.call]
                if homes.get(giver.tool) == homes.get(step.call.tool):
                    continue
                says = f"call {step.index}, {step.call.tool}: {path} from {giver.tool}"
                others = [
                    *self.values.others(step.call, path, value),
                    *self.values.other_entities(path, source, value, self.gold.ran.results[source.call]),
                ]
                yield says, [self._with(step, path, other, "crossing") for other in others]

    def entities(self) -> Iterator[RunMutant]:
        """A call is made for another thing of the same kind."""
        for step, path, other in self._other_entities(range(len(self.gold.steps))):
            yield self._with(step, path, other, "wrong_entity")

    def extra(self) -> Iterator[RunMutant]:
        """After a write the same is done for another thing, or with another argument, that nobody asked for."""
        for step, path, other in self._other_entities(self.writes):
            index = step.index or 0
            call = _replace_leaf(step, path, other).call
            more = GoldStep(call, step.turn, None, frozenset(call.arguments))
            says = f"after call {index} also {call.tool} with {path} {other!r}"
            yield RunMutant("extra", says, index, self._from(index, step, more), must=1)

    def _other_entities(self, indices: Sequence[int]) -> Iterator[tuple[GoldStep, str, Any]]:
        sites = [
            (self.gold.steps[index], path, source, value)
            for index in indices
            if self.gold.steps[index].actor == "assistant"
            for path, source, value in iterate_leaves(self.gold.calls[index])
            if isinstance(source, FromOutput) and is_entity_argument(path, value)
        ]
        for step, path, source, value in self.rng.sample(sites, len(sites)):
            results = self.gold.ran.results[source.call]
            for other in self.values.other_entities(path, source, value, results)[:2]:
                yield step, path, other

    def swapped(self) -> Iterator[RunMutant]:
        """Two writes that follow each other change places."""
        pairs = list(zip(self.writes, self.writes[1:], strict=False))
        for first, second in self.rng.sample(pairs, len(pairs)):
            steps = list(self.gold.steps[first:])
            a, b = steps[0], steps[second - first]
            steps[0], steps[second - first] = GoldStep(b.call, a.turn, b.index), GoldStep(a.call, b.turn, a.index)
            yield RunMutant("swapped", f"call {second} comes before call {first}", first, tuple(steps))

    def undone(self) -> Iterator[RunMutant]:
        """At the end another call takes back what a write has changed."""
        tries = 0
        last = self.gold.turns - 1
        for index in reversed(self.writes):
            for call in self._inverses(index):
                if tries >= UNDO_TRIES:
                    return
                tries += 1
                steps = (self.gold.steps[-1], GoldStep(call, last, None, frozenset(call.arguments)))
                says = f"at the end {call.tool} takes back call {index}"
                yield RunMutant("undone", says, len(self.gold.steps) - 1, steps, must=1)

    def _inverses(self, index: int) -> Iterator[GoldCall]:
        """Calls that could take a write back: with its arguments, its results, and the values that it has changed."""
        step = self.gold.steps[index]
        before, after = self._around(index)
        known = {**_list_scalars(self.gold.ran.results.get(index)), **step.call.arguments}
        old = {op["path"].rsplit("/", 1)[-1]: op.get("value") for op in diff(after, before) if op["op"] != "remove"}
        same = {**step.call.arguments, **{name: old[name] for name in step.call.arguments if old.get(name) is not None}}
        if same != step.call.arguments:
            yield step.call.model_copy(update={"arguments": same, "provenance": {}})
        for tool in self.spec.tools:
            needs = {name: {**known, **old}.get(name) for name in tool.required}
            other = tool.name != step.call.tool and tool.actor == "assistant" and tool.declares_write
            if other and needs and None not in needs.values():
                yield GoldCall(tool=tool.name, arguments=needs, provenance={}, effect="write")

    def _around(self, index: int) -> tuple[JsonObject, JsonObject]:
        """States between which a call lies: those after the turns around it."""
        turn = self.gold.steps[index].turn
        return self.gold.ran.states[turn - 1] if turn else self.gold.initial, self.gold.ran.states[turn]

    def answers(self) -> Iterator[RunMutant]:
        """The state is right, but one fact is told wrongly."""
        sites = [(turn, number) for turn, facts in enumerate(self.facts) for number in range(len(facts))]
        for turn, number in self.rng.sample(sites, len(sites)):
            fact = self.facts[turn][number]
            other = self._other_fact(fact, self.facts[turn])
            if other is not None and not is_value_mentioned(format_value(other), fact):
                says = f"the answer of turn {turn + 1} tells {other!r} in place of {fact!r}"
                same = [
                    n
                    for n, beside in enumerate(self.facts[turn])
                    if n == number or is_value_mentioned(format_value(beside), fact)
                ]
                yield RunMutant("answer", says, answers={(turn, n): other for n in same})

    def _other_fact(self, fact: JsonValue, beside: Sequence[JsonValue]) -> JsonValue:
        """Another fact of the same kind."""
        if isinstance(fact, bool):
            return not fact
        if fact == []:
            return "one"
        moment = parse_datetime(fact)
        if moment is not None:
            return shift_within_calendar(moment, self.rng.choice((1, 7))).isoformat()
        if isinstance(fact, int | float):
            return round(fact + self.rng.choice((1, 10, -1)), 2)
        known = [
            other for facts in self.facts for other in facts if isinstance(other, str) and parse_datetime(other) is None
        ]
        options = [other for other in known if other != fact and other not in beside]
        return self.rng.choice(options) if options else "nothing of the kind"


def _replace_leaf(step: GoldStep, path: str, value: Any) -> GoldStep:
    name = get_argument_name(path)
    return step.with_arguments(**{name: replace_value_at(step.call.arguments, path, value)[name]})


def is_change_undone(gold: RunResult, ran: RunResult, initial: JsonObject) -> bool:
    """Return True if something that the gold run has changed is as it was at first."""
    changes = {op["path"]: op for op in diff(initial, gold.states[-1])}
    left = {op["path"] for op in diff(initial, ran.states[-1])}
    gone = [
        place for place in find_changed_places(initial, gold.states[-1]) if not is_there(initial, place)
        and not is_there(ran.states[-1], place)
    ]  # fmt: skip
    return bool(gone) or bool(changes.keys() - left)


def _list_scalars(result: Any) -> dict[str, Any]:
    """Values of a result by their names, one level deep."""
    if not isinstance(result, dict):
        return {}
    inner = result.get("result")
    fields = inner if isinstance(inner, dict) else result
    return {name: value for name, value in fields.items() if isinstance(value, str | int | float)}
