"""A scripted agent that makes one typical mistake of models, so that verification has something to reject.

The mistake is injected on purpose and recorded in the trajectory: how many of each kind are rejected is the recall of
the checks, how many plays without one are accepted is their precision. What is accepted is compared with it as rejected
siblings and preference pairs.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from trajsmith.environments import ToolResult
from trajsmith.grounding import find_values, iterate_leaves, list_needed_keys
from trajsmith.phrasing import Wording, fill_pattern, get_language, is_fact_answered, list_value_forms
from trajsmith.records import (
    FromOutput,
    FromUser,
    FrozenModel,
    FunctionCall,
    GoldCall,
    JsonObject,
    JsonValue,
    Message,
    Task,
    ToolCall,
    derive_seed,
)
from trajsmith.usersim.announcements import render_call_phrase
from trajsmith.usersim.naive_agent import NaiveAgent
from trajsmith.usersim.partial_batch import PartialBatchAgent
from trajsmith.usersim.roles import AgentAct
from trajsmith.usersim.scripted_agent import ScriptedAgent
from trajsmith.usersim.scripted_roles import build_scripted_agent
from trajsmith.usersim.tool_search import SEARCH_FAULTS
from trajsmith.usersim.variant_roles import VariantAgent

IGNORED_VARIANT = "ignored_variant"


class FaultSettings(FrozenModel):
    """Probability of each kind of mistake in one dialogue of the faulty agent; a dialogue has at most one.

    A kind that a task gives no opportunity for leaves its share to the others.
    """

    wrong_entity: float = Field(0.15, ge=0, le=1)
    """A call is made for another thing of the same list."""
    skipped_confirmation: float = Field(0.15, ge=0, le=1)
    """A call that needs the user's yes is made without it."""
    needless_confirmation: float = Field(0.05, ge=0, le=1)
    """The user is asked for a yes that no rule wants."""
    premature_answer: float = Field(0.15, ge=0, le=1)
    """The last call of a turn is not made, and the user is told that it is done."""
    needless_write: float = Field(0.1, ge=0, le=1)
    """What was done for one thing is done for another one that nobody spoke of."""
    needless_read: float = Field(0.1, ge=0, le=1)
    """A look-up is made twice."""
    invented_value: float = Field(0.15, ge=0, le=1)
    """A value that the user has not given is made up."""
    missed_error: float = Field(0.1, ge=0, le=1)
    """A call is refused, and the agent goes on as if it had succeeded."""
    wrong_report: float = Field(0.15, ge=0, le=1)
    """A value is told wrongly."""
    ignored_variant: float = Field(0.3, ge=0, le=1)
    """In a variant, the agent does not notice what is different."""
    unsearched_call: float = Field(0.15, ge=0, le=1)
    """Where tools have to be searched for, one is called that no search has shown."""
    wrong_search: float = Field(0.15, ge=0, le=1)
    """The same, after a search for something else."""

    @property
    def chance(self) -> float:
        """Return the probability of a mistake in one dialogue that gives an opportunity for one."""
        return min(1.0, float(sum(self.model_dump(exclude={IGNORED_VARIANT, *SEARCH_FAULTS}).values())))

    def scale(self, chance: float) -> "FaultSettings":
        """Return the same weights with another probability of a mistake."""
        total = sum(self.model_dump(exclude={IGNORED_VARIANT, *SEARCH_FAULTS}).values())
        return FaultSettings(**{kind: min(1.0, chance * weight / total) for kind, weight in self.model_dump().items()})


class FaultInjection(ScriptedAgent):
    """Mixin of scripted agents: makes one mistake of one kind."""

    def __init__(
        self, task: Task, wording: Wording, candidate: int, listens: bool = False, kind: str = "", place: int = 0
    ) -> None:
        """`place` is the gold call, or the turn, in which the mistake is made."""
        super().__init__(task, wording, candidate, listens)
        self.kind, self.place = kind, place
        self.fault_kind = kind
        self.faults = random.Random(derive_seed(task.seed, "faults", candidate))
        self.invented: dict[str, JsonValue] = {}
        self.fired = False
        """The mistake was made."""
        self.told_before = ""
        """What the agent said in this turn so far."""
        self.extra: list[GoldCall] = []
        """Calls that were made beside the gold ones and wait for their results."""

    async def act(self, messages: list[Message]) -> AgentAct:
        fired = self.fired
        act = await self._act(messages)
        return replace(act, fault=self.kind) if self.fired and not fired else act

    async def _act(self, messages: list[Message]) -> AgentAct:
        turn = len(self._openings(messages)) - 1
        if turn != self.turn:
            self.open_turn(turn)
        start = max(self._openings(messages), default=0)
        self.told_before = " ".join(message.content for message in messages[start:] if message.role == "assistant")
        index = len(self.results)
        if self.fired or self.failure or not self.kind:
            return await super().act(messages)
        if self.kind == "premature_answer" and index == self.place < self.stop:
            self.fired = True
            self.results += [ToolResult(call.result) for call in self.calls[index : self.stop]]
            return AgentAct(Message(role="assistant", content=self.faults.choice(get_language().agent.claims)))
        if self.kind == "missed_error" and index == self.place < self.stop and self._ready(index):
            return self._make_refused_call(index) or await super().act(messages)
        if self.kind in ("needless_write", "needless_read") and self.place < index <= self.stop:
            return self._make_extra_call(self.place) or await super().act(messages)
        if self.kind == "invented_value" and index == self.place < self.stop:
            self._invent_values(index)
        return await super().act(messages)

    def observe(self, tools: Sequence[str], results: Sequence[ToolResult], by_user: bool) -> None:
        if self.extra and not by_user:
            extra, self.extra = self.extra, []
            if self.kind == "missed_error":
                self.results += [ToolResult(call.result) for call in extra]
            return
        super().observe(tools, results, by_user)

    def _can_make(self, index: int) -> bool:
        """Leave the call with which the mistake is made to a message of its own."""
        waits = self.kind in ("premature_answer", "missed_error") and index == self.place and not self.fired
        return not waits and super()._can_make(index)

    def _ready(self, index: int) -> bool:
        """Return True if the call could be made now."""
        return all(key in self.said for key in list_needed_keys(self.calls[index]))

    # Mistakes

    def _arguments(self, call: GoldCall) -> JsonObject:
        filled = super()._arguments(call)
        if self.invented:
            for name, source in call.provenance.items():
                if isinstance(source, FromUser) and source.known in self.invented:
                    filled[name] = self.invented[source.known]
        if self.kind == "wrong_entity" and not self.fired and call is self.calls[self.place]:
            other = self._pick_other_entity(self.place, filled)
            if other:
                self.fired = True
                return {**filled, **other}
        return filled

    def _pick_other_entity(self, index: int, arguments: JsonObject) -> JsonObject:
        """Return an argument with the value of another row; empty if the list that was really read has no other."""
        call = self.calls[index]
        for name, source in call.provenance.items():
            if isinstance(source, FromOutput) and source.selectors and source.call < len(self.results):
                values = [match.value for match in find_values(self.results[source.call].content, source.path)]
                others = [value for value in dict.fromkeys(map(str, values)) if value != str(arguments.get(name))]
                if others and isinstance(arguments.get(name), str):
                    return {name: self.faults.choice(others)}
        return {}

    def _make_refused_call(self, index: int) -> AgentAct | None:
        """Make a call without one of its required arguments."""
        call = self.calls[index]
        arguments = ScriptedAgent._arguments(self, call)
        required = [name for name in self.wording.tools[call.tool].required if name in arguments]
        if not required:
            return None
        arguments.pop(self.faults.choice(required))
        self.fired = True
        self.extra = [call]
        return self._make_call(call.tool, arguments)

    def _make_extra_call(self, index: int) -> AgentAct | None:
        """Make a call once more: a write for another thing, a read as it was."""
        call = self.calls[index]
        arguments = ScriptedAgent._arguments(self, call)
        if self.kind == "needless_write":
            other = self._pick_other_entity(index, arguments)
            if not other:
                return None
            arguments |= other
        self.fired = True
        self.extra = [call]
        return self._make_call(call.tool, arguments)

    def _make_call(self, tool: str, arguments: JsonObject) -> AgentAct:
        self.made += 1
        call = ToolCall(id=f"call_{self.made}", function=FunctionCall(name=tool, arguments=arguments))
        return AgentAct(Message(role="assistant", tool_calls=(call,)))

    def _invent_values(self, index: int) -> None:
        call = self.calls[index]
        for path, source, value in iterate_leaves(call):
            if isinstance(source, FromUser) and source.known not in self.said and path in call.arguments:
                schema = self.wording.tools[call.tool].parameters.get(path, {})
                self.invented[source.known] = invent_value(value, schema, self.faults)
                self.said.add(source.known)
                self.fired = True

    def _asks_first(self, index: int) -> bool:
        passed = index in self.confirmed
        asks = super()._asks_first(index)
        if not self.fired and self.kind == "skipped_confirmation" and asks:
            self.fired, self.asking = True, ()
            return False
        if not self.fired and self.kind == "needless_confirmation" and index == self.place and not asks:
            self.fired = self.task.mode == "conversation" and not passed
            if self.fired:
                self.asking = (index,)
                self.confirmed.add(index)
            return self.fired
        return asks

    def _confirmation(self, index: int) -> str:
        if self.fired and self.kind == "needless_confirmation" and index == self.place:
            return fill_pattern(
                self.voice.confirms,
                render_call_phrase(self.calls[index], "narrate", self.wording, self.rng),
                self.faults,
            )
        return super()._confirmation(index)

    def _answer(self) -> str:
        text = super()._answer()
        if self.kind != "wrong_report" or self.fired or self.turn != self.place:
            return text
        facts = self.task.turns[self.turn].facts
        values = [fact.value for fact in facts]
        for fact in self.faults.sample(facts, len(facts)):
            if is_fact_answered(self.told_before, fact):
                continue  # told rightly in a question of this turn, if in other words, which counts as told
            wrong = misstate_value(text, fact.value, values, self.faults)
            if wrong != text:
                self.fired = True
                return wrong
        return text


class FaultyAgent(FaultInjection, ScriptedAgent):
    """Faulty agent of a task."""


class FaultyVariantAgent(FaultInjection, VariantAgent):
    """Faulty agent of a variant: it handles the variant and fails elsewhere."""


class FaultyBatchAgent(FaultInjection, PartialBatchAgent):
    """Faulty agent of a partial batch."""


class IgnorantAgent(NaiveAgent):
    """Agent that does not notice what is different in a variant."""

    async def act(self, messages: list[Message]) -> AgentAct:
        act = await super().act(messages)
        return replace(act, fault=IGNORED_VARIANT) if self.turn == self.twist.turn else act


def build_faulty_agent(
    task: Task, wording: Wording, candidate: int, settings: FaultSettings, listens: bool = False
) -> ScriptedAgent:
    """Build an agent that makes at most one mistake; without opportunity or luck it is the scripted agent."""
    rng = random.Random(derive_seed(task.seed, "fault", candidate))
    places: dict[str, list[int]] = {}
    for kind, place in _iter_opportunities(task, wording):
        places.setdefault(kind, []).append(place)
    rates = {kind: getattr(settings, kind) for kind in sorted(places)}
    if not sum(rates.values()) or rng.random() >= settings.chance:
        return build_scripted_agent(task, wording, candidate, listens)
    kind = rng.choices(list(rates), weights=list(rates.values()))[0]
    if kind == IGNORED_VARIANT:
        return IgnorantAgent(task, wording, candidate)
    faulty = FaultyAgent if task.twist is None else FaultyBatchAgent if task.twist.refused else FaultyVariantAgent
    return faulty(task, wording, candidate, listens, kind, rng.choice(places[kind]))


def _iter_opportunities(task: Task, wording: Wording) -> Iterator[tuple[str, int]]:
    """Yield the kinds of mistakes that a task allows, each with a gold call or a turn in which it can be made."""
    calls = task.gold_calls
    used = {source.call for call in calls for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)}
    start = 0
    stated: set[str] = set()
    for number, turn in enumerate(task.turns):
        stop = start + len(turn.gold_calls)
        stated |= {entry.key for entry in turn.known if entry.stated}
        if any(isinstance(fact, str | int | float) for fact in turn.answer_facts):
            yield "wrong_report", number
        for index in range(start, stop):
            call = calls[index]
            if call.actor == "user":
                continue
            goal = call.effect == "write" or index not in used
            choice = goal and _has_other_rows(call, calls)
            if choice:
                yield "wrong_entity", index
            if index == stop - 1 and goal:
                yield "premature_answer", index
            if call.effect == "read":
                yield "needless_read", index
                continue
            yield "skipped_confirmation", index
            yield "needless_confirmation", index
            if choice and index not in used:
                yield "needless_write", index
            if wording.tools[call.tool].required:
                yield "missed_error", index
        for index in range(start, stop):
            keys = [key for key in list_needed_keys(calls[index]) if key not in stated]
            if task.mode == "conversation" and any(
                isinstance(source, FromUser) and source.known in keys for _, source, _ in iterate_leaves(calls[index])
            ):
                yield "invented_value", index
                break
        start = stop
    if task.search is not None and any(call.actor == "assistant" for call in calls):
        yield from ((kind, 0) for kind in SEARCH_FAULTS)
    if task.twist is not None and task.twist.act != "plain":
        yield IGNORED_VARIANT, task.twist.turn


def _has_other_rows(call: GoldCall, calls: Sequence[GoldCall]) -> bool:
    """Return True if an argument was picked from a list that has another value to offer."""
    return any(
        isinstance(source, FromOutput)
        and bool(source.selectors)
        and path in call.arguments
        and any(match.value != value for match in find_values(calls[source.call].result, source.path))
        for path, source, value in iterate_leaves(call)
    )


def invent_value(value: JsonValue, schema: JsonObject, rng: random.Random) -> JsonValue:
    """Return a plausible value of the same kind that is not the right one."""
    choices = [item for item in _list_choices(schema) if item != value]
    if choices:
        return rng.choice(choices)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((1, 2, 5))
    if isinstance(value, float):
        return round(value + rng.choice((5.0, 10.0, 25.0)), 2)
    if isinstance(value, str):
        changed = _change_digit(value, rng)
        return changed if changed != value else f"{value} or similar"
    return value


def _list_choices(schema: JsonObject) -> list[Any]:
    """Values that a schema lists: choices first, then examples."""
    listed: list[Any] = []
    for part in (schema, *(option for option in _list_options(schema) if isinstance(option, dict))):
        for name in ("enum", "examples"):
            values = part.get(name)
            listed += [value for value in values if value is not None] if isinstance(values, list) else []
    return listed


def _list_options(schema: JsonObject) -> list[JsonValue]:
    options = schema.get("anyOf")
    return options if isinstance(options, list) else []


def misstate_value(text: str, fact: JsonValue, facts: Sequence[JsonValue], rng: random.Random) -> str:
    """Return a text with one value told wrongly everywhere; the text itself if the value is not found in it."""
    for form in sorted(list_value_forms(fact), key=len, reverse=True):
        pattern = re.compile(rf"(?<![\w.]){re.escape(form)}(?!\w|[.,]\d)", re.IGNORECASE)
        match = pattern.search(text)
        if match is None:
            continue
        right = match.group(0)
        others = [str(other) for other in facts if isinstance(other, str) and other != fact and other not in right]
        wrong = _change_digit(right, rng) if any(char.isdigit() for char in right) else ""
        wrong = wrong or (rng.choice(others) if others and isinstance(fact, str) else "")
        return pattern.sub(wrong.replace("\\", r"\\"), text) if wrong else text
    return text


def _change_digit(text: str, rng: random.Random) -> str:
    """Change the last digit that can be changed within a date, an amount or a code."""
    places = [place for place, char in enumerate(text) if char.isdigit()]
    if not places:
        return text
    place = places[-1]
    digit = rng.choice([one for one in "12345678" if one != text[place]])
    return text[:place] + digit + text[place + 1 :]
