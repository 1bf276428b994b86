"""Detection of values that the environment generates in a gold run: ids, times, random values.

A native state declares what such values are made of: its counters, its clock, its seed. Foreign code gets clock and
chance from the sandbox, by the moment of the play. The gold run is made again with one of them changed; what comes
out otherwise is made of it, and nothing else is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trajsmith.environments import Session
from trajsmith.environments.program_sessions import RestorableSession
from trajsmith.phrasing import parse_datetime
from trajsmith.records import EnvironmentSpec, JsonObject, NondeterminismMask, Origin
from trajsmith.verify.gold_run import EquivalentRun, GoldRun, RunResult, run_all
from trajsmith.verify.normalized_state import (
    ValuePath,
    build_place_pattern,
    find_changed_places,
    get_at_place,
    get_child,
    is_there,
    iter_leaves,
    normalize_state,
)

COUNTER_SHIFT = 4096
"""How much further counters stand in the run that shows what is made of them."""
CLOCK_SHIFT = (timedelta(minutes=7), timedelta(seconds=1))
"""How much later the run is that shows what is made of the clock; the next one if the first is refused."""
MOMENTS = 90
"""Moments of the sandbox's clock that pass before such a run of foreign code: minutes."""


@dataclass(frozen=True)
class DeclaredOrigins:
    """Parts of a state that values are made of, as a native environment declares them; empty where there is none."""

    counters: str = ""
    clock: str = ""
    seed: str = ""


def read_declared_origins(spec: EnvironmentSpec, state: JsonObject) -> DeclaredOrigins:
    """Return the counters, clock and seed that the environment's state class declares: native ones have all three."""
    if spec.source.partition(":")[0] not in ("library", "python", "native"):
        return DeclaredOrigins()
    clock = "now" if isinstance(parse_datetime(state.get("now")), datetime) else ""
    return DeclaredOrigins("counters" if isinstance(state.get("counters"), dict) else "", clock, "seed")


def advance_clock(state: JsonObject, origins: DeclaredOrigins, by: timedelta) -> JsonObject:
    """The state with its clock moved; back where the calendar ends."""
    moment = parse_datetime(state[origins.clock])
    assert isinstance(moment, datetime)
    try:
        moved = (moment + by).isoformat()
    except OverflowError:
        moved = (moment - by).isoformat()
    return {**state, origins.clock: moved + "Z" if str(state[origins.clock]).endswith("Z") else moved}


def advance_counters(
    state: JsonObject, origins: DeclaredOrigins, used: Sequence[str], by: int = COUNTER_SHIFT
) -> JsonObject:
    """The state with the counters moved that a run used; draws of chance stay where they are."""
    counters = {**state[origins.counters]}
    for kind in used:
        counters[kind] = counters.get(kind, 0) + by
    return {**state, origins.counters: counters}


def find_used_counters(initial: JsonObject, final: JsonObject, origins: DeclaredOrigins) -> list[str]:
    """Kinds of ids that a run was given; not the draws of chance."""
    if not origins.counters:
        return []
    before = initial[origins.counters]
    return [kind for kind, number in final[origins.counters].items() if number != before.get(kind) and kind != "random"]


async def find_nondeterminism_mask(gold: GoldRun, session: Session) -> tuple[NondeterminismMask, list[EquivalentRun]]:
    """The masks of a task, and the runs that showed them, which are as good as gold.

    Args:
        gold: Its gold run, played to the end.
        session: A session of the environment; it is reset.

    Raises:
        EnvironmentFault: The environment broke.
    """
    finder = _NondeterminismFinder(gold, session)
    if finder.origins.clock:
        await finder.native()
    elif isinstance(session, RestorableSession):
        await finder.foreign(session)
    masks = NondeterminismMask(
        counters=finder.origins.counters,
        clock=finder.origins.clock,
        tables=tuple(sorted(finder.tables)),
        leaves=finder.leaves,
    )
    names = normalize_state(gold.initial, gold.ran.states[-1], masks).names
    return masks.model_copy(update={"names": dict(names)}), finder.runs


class _NondeterminismFinder:
    def __init__(self, gold: GoldRun, session: Session) -> None:
        self.run = gold
        self.gold = gold.ran
        self.initial = gold.initial
        self.session = session
        self.origins = read_declared_origins(session.spec, gold.initial)
        self.tables: set[str] = set()
        self.leaves: dict[str, Origin] = {}
        self.runs: list[EquivalentRun] = []

    async def native(self) -> None:
        """Ids and times come out of one run: what is a time is made of the clock. Chance has a run of its own."""
        final = self.gold.states[-1]
        if final == self.initial:
            return
        used = find_used_counters(self.initial, final, self.origins)
        start = advance_counters(self.initial, self.origins, used) if used else self.initial
        for by in CLOCK_SHIFT if self.origins.clock else ():
            if await self._compare(advance_clock(start, self.origins, by), None):
                break
        else:
            await self._compare(start, "id")
        if self.origins.counters:
            before, after = (state[self.origins.counters].get("random") for state in (self.initial, final))
            if before != after:
                await self._compare({**self.initial, self.origins.seed: self.initial[self.origins.seed] + 1}, "chance")

    async def foreign(self, session: RestorableSession) -> None:
        await session.reset(self.initial)
        await session.skip_steps(MOMENTS)
        other = await run_all(self.run.steps, self.run.turns, session, self.run.calls)
        self._learn(other, self.initial, None)

    async def _compare(self, state: JsonObject, origin: Origin | None) -> bool:
        """Run gold on a state with other origins and learn what comes out otherwise; False if it fails."""
        await self.session.reset(state)
        other = await run_all(self.run.steps, self.run.turns, self.session, self.run.calls)
        if not all(ok for _, _, ok in other.calls) or other.lost:
            return False
        self._learn(other, state, origin)
        self.runs.append(EquivalentRun("other origins", state, other))
        return True

    def _learn(self, other: RunResult, start: JsonObject, origin: Origin | None) -> None:
        for mine, theirs in zip(self.gold.states, other.states, strict=True):
            for place, twin in self._pairs(mine, theirs, start):
                self._learn_entry(mine, theirs, place, twin, origin)

    def _pairs(self, mine: JsonObject, theirs: JsonObject, start: JsonObject) -> list[tuple[ValuePath, ValuePath]]:
        """Changed entries of one run with those of the other; new ones in the order in which they were made."""
        skipped = (self.origins.counters, self.origins.seed, self.origins.clock)
        own = [place for place in find_changed_places(self.initial, mine) if place[0] not in skipped]
        other = find_changed_places(start, theirs)
        pairs = [(place, place) for place in own if is_there(self.initial, place)]
        for name in dict.fromkeys(place[0] for place in own):
            added = [place for place in own if place[0] == name and not is_there(self.initial, place)]
            twins = [place for place in other if place[0] == name and not is_there(start, place)]
            if len(added) == len(twins):
                pairs += zip(added, twins, strict=True)
        return pairs

    def _learn_entry(
        self, mine: JsonObject, theirs: JsonObject, place: ValuePath, twin: ValuePath, origin: Origin | None
    ) -> None:
        if place != twin:
            self.tables.add(place[0])
        entry = get_at_place(theirs, twin)
        for where, value in iter_leaves(get_at_place(mine, place), place):
            other = entry
            for part in where[len(place) :]:
                other = get_child(other, part)
            if other != value and not isinstance(other, dict | list) and _is_scalar(other):
                self.leaves.setdefault(build_place_pattern(where, mine), origin or _guess_origin(value))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _guess_origin(value: Any) -> Origin:
    """Guess the origin of a value that changed with another clock and other ids."""
    if parse_datetime(value) is not None or (isinstance(value, int | float) and value > 10**8):
        return "clock"
    return "id" if isinstance(value, str) else "chance"
