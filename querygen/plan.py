"""Plan of a task before its wording: turns, goals, and which facts are stated when."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from pydantic import Field

from trajsmith.grounding import build_selector_key, find_values, iterate_leaves, list_needed_keys
from trajsmith.phrasing import ScenarioStep
from trajsmith.querygen.partition import find_goals
from trajsmith.querygen.story import Story
from trajsmith.records import (
    FromOutput,
    FrozenModel,
    GroundedChain,
    JsonValue,
    Persona,
    RequestedInfo,
    UserFact,
    derive_seed,
)

Edit = Literal["implicit_reference", "action_compression", "ambiguity", "goal_expansion"]


class QueryRefineSettings(FrozenModel):
    """Probabilities of the refinements of a model's draft (EnvFactory 3.4); 0 switches a refinement off."""

    implicit_reference: float = Field(0.5, ge=0, le=1)
    """Share of later turns that refer to what was talked about instead of naming it again."""
    action_compression: float = Field(0.5, ge=0, le=1)
    """Share of turns whose steps between are left to the agent."""
    ambiguity: float = Field(0.2, ge=0, le=1)
    """Share of turns, among those where it is possible, that leave open which thing is meant until the agent asks."""
    goal_expansion: float = Field(0.2, ge=0, le=1)
    """Share of turns, among those where it is possible, that also ask for what a step between shows."""


@dataclass(frozen=True)
class TurnPlan:
    """One turn: its calls, and the facts that the user states."""

    start: int
    stop: int
    """Gold calls `start` to `stop`, exclusive."""
    goals: tuple[int, ...]
    meaning: str
    """The request in the plain words of the scripted language."""
    opening: str
    intent: str
    fresh: tuple[str, ...]
    """Keys that this turn says for the first time, in words."""
    implied: tuple[str, ...]
    """Keys that it says by pointing at what was talked about."""
    held: tuple[str, ...]
    """Keys that this turn needs and that are only said when asked."""
    edits: tuple[Edit, ...] = ()
    expansion: int | None = None
    """The call whose result is also asked for."""
    opened: str | None = None
    """The key that an ambiguity leaves open."""
    asked: tuple[RequestedInfo, ...] = ()
    """What each goal asks for."""
    steps: tuple[ScenarioStep | None, ...] = ()
    """Of each goal: the scenario's step that it is; empty outside of scenarios."""


@dataclass(frozen=True)
class TaskPlan:
    """All turns of one task."""

    grounded: GroundedChain
    mode: Literal["conversation", "direct"]
    persona: Persona
    scenario: str
    known: Mapping[str, UserFact]
    """Everything that the user knows, with the words in which this user says it."""
    turns: tuple[TurnPlan, ...]
    now: date
    clock: str
    """The environment's time as it is told; empty if it has none."""
    story: Story | None = None
    """The scenario that the task tells."""

    def stated(self, upto: int) -> set[str]:
        """Keys that were said by the end of a turn without being asked."""
        return {key for turn in self.turns[: upto + 1] for key in (*turn.fresh, *turn.implied)}

    def needed(self, turn: TurnPlan) -> list[str]:
        """Keys that the calls of a turn need, and those of rows that it asks about."""
        calls = self.grounded.calls[turn.start : turn.stop]
        keys = [key for call in calls for key in list_needed_keys(call)]
        return list(dict.fromkeys([*keys, *(info.known for info in turn.asked if info.known)]))


def refine_plan(plan: TaskPlan, settings: QueryRefineSettings, extra: Mapping[int, tuple[JsonValue, ...]]) -> TaskPlan:
    """Draw the refinements of a plan. The gold stays unchanged: omitted facts are stated on request.

    Args:
        extra: Of calls between, what they show at the end of their turn; only these can be asked for as well.
    """
    rng = random.Random(derive_seed(plan.grounded.seed, "refine"))
    turns = []
    for number, turn in enumerate(plan.turns):
        implicit, short, vague, more = (rng.random() for _ in range(4))
        edits: list[Edit] = []
        if implicit < settings.implicit_reference and number > 0:
            edits.append("implicit_reference")
        if short < settings.action_compression and turn.stop - turn.start > len(turn.goals):
            edits.append("action_compression")
        choices = _choices(plan, turn)
        if vague < settings.ambiguity and plan.mode == "conversation" and choices and not turn.held:
            opened = rng.choice(choices)
            edits.append("ambiguity")
            fresh = tuple(key for key in turn.fresh if key != opened)
            turn = replace(turn, opened=opened, fresh=fresh, held=(*turn.held, opened))
        between = [index for index in range(turn.start, turn.stop) if index in extra]
        if more < settings.goal_expansion and between:
            edits.append("goal_expansion")
            turn = replace(turn, expansion=rng.choice(between))
        turns.append(replace(turn, edits=tuple(edits)))
    return replace(plan, turns=tuple(turns))


def find_unrequested_reads(plan: TaskPlan) -> list[int]:
    """Return the agent's reads that lead to another call and that nobody asks for."""
    calls = plan.grounded.calls
    return [
        index
        for turn in plan.turns
        for index in range(turn.start, turn.stop)
        if index not in find_goals(calls, turn.start, turn.stop, steps=plan.grounded.steps)
        and calls[index].effect == "read"
        and calls[index].actor == "assistant"
    ]


def _choices(plan: TaskPlan, turn: TurnPlan) -> list[str]:
    """Keys of this turn that tell which of several things is meant, where there is a choice."""
    calls = plan.grounded.calls
    picks = {
        build_selector_key(source.call, selector)
        for call in calls[turn.start : turn.stop]
        for _, source, _ in iterate_leaves(call)
        if isinstance(source, FromOutput)
        for selector in source.selectors
        if selector.how != "only"
        and any(len(rows.value) > 1 for rows in find_values(calls[source.call].result, selector.rows))
    }
    return [key for key in turn.fresh if key in picks]
