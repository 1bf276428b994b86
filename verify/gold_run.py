"""Execution of the gold calls of a task, unchanged or with modifications.

Arguments that a call takes from earlier results are taken from the results of *this* run, by the provenance that
grounding recorded, so that a run whose environment gives out other ids is still the same run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trajsmith.environments import Session
from trajsmith.grounding import (
    ReferenceNotResolved,
    Rewindable,
    get_argument_name,
    iterate_leaves,
    make_rewindable,
    replace_value_at,
    resolve_reference,
)
from trajsmith.records import Actor, FromOutput, GoldCall, JsonObject, Turn


@dataclass(frozen=True)
class GoldStep:
    """One call of a run that is made on purpose."""

    call: GoldCall
    turn: int
    index: int | None
    """Which gold call it is: later calls take from its result. None for a call that is none of them."""
    fixed: frozenset[str] = frozenset()
    """Top-level arguments that stay as they are, whatever earlier calls gave."""

    @property
    def actor(self) -> Actor:
        return self.call.actor

    def with_arguments(self, **changed: Any) -> "GoldStep":
        """The same with other values of some arguments."""
        call = self.call.model_copy(update={"arguments": {**self.call.arguments, **changed}})
        return replace(self, call=call, fixed=self.fixed | set(changed))


def build_steps(turns: Sequence[Sequence[GoldCall]]) -> list[GoldStep]:
    """The gold run as steps, from the calls of each turn."""
    steps: list[GoldStep] = []
    for number, calls in enumerate(turns):
        steps += [GoldStep(call, number, len(steps) + offset) for offset, call in enumerate(calls)]
    return steps


def list_gold_calls(turns: Sequence[Turn]) -> list[tuple[GoldCall, ...]]:
    """The gold calls of each turn."""
    return [turn.gold_calls for turn in turns]


@dataclass
class RunResult:
    """Results of a run so far."""

    results: dict[int, Any] = field(default_factory=dict)
    """Gold call to the content of its result, where it succeeded."""
    calls: list[tuple[str, JsonObject, bool]] = field(default_factory=list)
    """(tool, arguments, whether it succeeded) of every call."""
    states: list[JsonObject] = field(default_factory=list)
    """State after each turn."""
    calls_until: list[int] = field(default_factory=list)
    """Number of calls made until the end of each turn."""
    lost: int = 0
    """Arguments that could not be found in the results of this run and stayed as in gold."""

    def fork(self) -> "RunResult":
        """A copy to go on from here in another way."""
        return RunResult(dict(self.results), list(self.calls), list(self.states), list(self.calls_until), self.lost)


@dataclass(frozen=True)
class EquivalentRun:
    """Run equivalent to gold: its difference, its initial state, and its results."""

    says: str
    initial: JsonObject
    ran: RunResult


async def run_all(steps: Sequence[GoldStep], turns: int, session: Session, gold: Sequence[GoldCall]) -> RunResult:
    """Make all calls from the start, on a session that was reset; see `run_steps`."""
    ran = await run_steps(steps, turns, session, gold)
    assert ran is not None, "no call was asked to succeed"
    return ran


async def run_steps(
    steps: Sequence[GoldStep],
    turns: int,
    session: Session,
    gold: Sequence[GoldCall],
    before: RunResult | None = None,
    must: int | None = None,
) -> RunResult | None:
    """Make calls on a session that stands where `before` left it; look at the state after each turn.

    Args:
        steps: Calls still to be made, in order.
        turns: Turns of the whole run.
        gold: The gold calls, whose results say what is as it was.
        before: What was done already.
        must: Number of the call, counted over the whole run, that ends it with None where it is refused.

    Raises:
        EnvironmentFault: The environment broke.
    """
    ran = before.fork() if before is not None else RunResult()
    rest = list(steps)
    for turn in range(len(ran.states), turns):
        while rest and rest[0].turn <= turn:
            if not await execute_step(rest.pop(0), session, gold, ran) and len(ran.calls) - 1 == must:
                return None
        ran.states.append(await session.snapshot())
        ran.calls_until.append(len(ran.calls))
    return ran


async def execute_step(step: GoldStep, session: Session, gold: Sequence[GoldCall], ran: RunResult) -> bool:
    """Execute one call and record its result; return True if it succeeded."""
    arguments = bind_arguments(step, ran, gold)
    result = await session.call(step.call.tool, arguments, step.actor)
    ran.calls.append((step.call.tool, arguments, result.ok))
    if result.ok and step.index is not None:
        ran.results[step.index] = result.content
    return result.ok


def bind_arguments(step: GoldStep, ran: RunResult, gold: Sequence[GoldCall]) -> JsonObject:
    """Return the arguments of a step with the results of earlier calls in this run."""
    arguments = step.call.arguments
    for path, source, value in iterate_leaves(step.call):
        if not isinstance(source, FromOutput) or get_argument_name(path) in step.fixed:
            continue
        resolved = _resolve_source(source, value, ran.results, gold)
        if resolved is None:
            ran.lost += 1
        elif resolved != value:
            arguments = replace_value_at(arguments, path, resolved)
    return arguments


def _resolve_source(source: FromOutput, value: Any, results: Mapping[int, Any], gold: Sequence[GoldCall]) -> Any:
    """The value in this run; None if it cannot be found."""
    if source.call not in results:
        return None
    if results[source.call] == gold[source.call].result:
        return value
    try:
        return resolve_reference(source, results[source.call])
    except ReferenceNotResolved:
        return None


class GoldRun:
    """A gold run that was made, with points to go back to and go on from in another way."""

    def __init__(self, turns: Sequence[Sequence[GoldCall]], session: Session, points: bool = True) -> None:
        """Without `points` nobody can go back, and a live server is not looked at after every call."""
        self.keeps_points = points
        self.steps = build_steps(turns)
        self.turns = len(turns)
        self.calls = [step.call for step in self.steps]
        self.session: Rewindable = make_rewindable(session)
        self.initial: JsonObject = {}
        self.ran = RunResult()
        self.points: list[tuple[Any, RunResult]] = []
        """Before each step: where the session stood, and what was done until then."""

    async def play(self, state: JsonObject) -> None:
        """Make the gold calls on a fresh state; stops at the first that is refused.

        Raises:
            EnvironmentFault: The environment broke.
        """
        await self.session.reset(state)
        self.initial = await self.session.snapshot()
        rest = list(self.steps)
        for turn in range(self.turns):
            while rest and rest[0].turn <= turn:
                if self.keeps_points:
                    self.points.append((await self.session.checkpoint(), self.ran.fork()))
                if not await execute_step(rest.pop(0), self.session, self.calls, self.ran):
                    return
            self.ran.states.append(await self.session.snapshot())
            self.ran.calls_until.append(len(self.ran.calls))

    async def branch(self, start: int, steps: Sequence[GoldStep], must: int | None = None) -> RunResult | None:
        """The run that leaves gold before step `start` and goes on with `steps`.

        Args:
            start: Step of gold.
            steps: All steps from there on.
            must: Position in `steps` of the call that must succeed; None comes back where it is refused.
        """
        point, before = self.points[start]
        await self.session.rollback(point)
        needed = None if must is None else len(before.calls) + must
        return await run_steps(steps, self.turns, self.session, self.calls, before, needed)
