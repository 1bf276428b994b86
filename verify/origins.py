"""Which values of a gold run the environment gave out itself: ids, times, chance. Found by running it again.

A native state declares what such values are made of: its counters, its clock, its seed. Foreign code gets clock and
chance from the sandbox, by the moment of the play. The gold run is made again with one of them changed; what comes
out otherwise is made of it, and nothing else is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from chatmodel.surface import as_moment
from environments import Session
from environments.hosted import RestorableSession
from trajectory import EnvironmentSpec, JsonObject, Masks, Origin
from verify.form import Place, at, changed_places, child, is_there, leaves_of, masked_form, pattern_of
from verify.rerun import Equivalent, GoldRun, Ran, run_all

MORE_IDS = 4096
"""How much further counters stand in the run that shows what is made of them."""
LATER = (timedelta(minutes=7), timedelta(seconds=1))
"""How much later the run is that shows what is made of the clock; the next one if the first is refused."""
MOMENTS = 90
"""Moments of the sandbox's clock that pass before such a run of foreign code: minutes."""


@dataclass(frozen=True)
class Declared:
    """Parts of a state that values are made of, as a native environment declares them; empty where there is none."""

    counters: str = ""
    clock: str = ""
    seed: str = ""


def declared(spec: EnvironmentSpec, state: JsonObject) -> Declared:
    """What the environment's state class declares: native ones all have the same three parts."""
    if spec.source.partition(":")[0] not in ("library", "python", "native"):
        return Declared()
    clock = "now" if isinstance(as_moment(state.get("now")), datetime) else ""
    return Declared("counters" if isinstance(state.get("counters"), dict) else "", clock, "seed")


def later_state(state: JsonObject, origins: Declared, by: timedelta) -> JsonObject:
    """The state with its clock moved."""
    moment = as_moment(state[origins.clock])
    assert isinstance(moment, datetime)
    moved = (moment + by).isoformat()
    return {**state, origins.clock: moved + "Z" if str(state[origins.clock]).endswith("Z") else moved}


def other_ids(state: JsonObject, origins: Declared, used: Sequence[str], by: int = MORE_IDS) -> JsonObject:
    """The state with the counters moved that a run used; draws of chance stay where they are."""
    counters = {**state[origins.counters]}
    for kind in used:
        counters[kind] = counters.get(kind, 0) + by
    return {**state, origins.counters: counters}


def used_counters(initial: JsonObject, final: JsonObject, origins: Declared) -> list[str]:
    """Kinds of ids that a run was given; not the draws of chance."""
    if not origins.counters:
        return []
    before = initial[origins.counters]
    return [kind for kind, number in final[origins.counters].items() if number != before.get(kind) and kind != "random"]


async def find_masks(gold: GoldRun, session: Session) -> tuple[Masks, list[Equivalent]]:
    """The masks of a task, and the runs that showed them, which are as good as gold.

    Args:
        gold: Its gold run, played to the end.
        session: A session of the environment; it is reset.

    Raises:
        EnvironmentFault: The environment broke.
    """
    finder = _Finder(gold, session)
    if finder.origins.clock:
        await finder.native()
    elif isinstance(session, RestorableSession):
        await finder.foreign(session)
    masks = Masks(
        counters=finder.origins.counters,
        clock=finder.origins.clock,
        tables=tuple(sorted(finder.tables)),
        leaves=finder.leaves,
    )
    names = masked_form(gold.initial, gold.ran.states[-1], masks).names
    return masks.model_copy(update={"names": dict(names)}), finder.runs


class _Finder:
    def __init__(self, gold: GoldRun, session: Session) -> None:
        self.run = gold
        self.gold = gold.ran
        self.initial = gold.initial
        self.session = session
        self.origins = declared(session.spec, gold.initial)
        self.tables: set[str] = set()
        self.leaves: dict[str, Origin] = {}
        self.runs: list[Equivalent] = []

    async def native(self) -> None:
        """Ids and times come out of one run: what is a time is made of the clock. Chance has a run of its own."""
        final = self.gold.states[-1]
        if final == self.initial:
            return
        used = used_counters(self.initial, final, self.origins)
        start = other_ids(self.initial, self.origins, used) if used else self.initial
        for by in LATER if self.origins.clock else ():
            if await self._compare(later_state(start, self.origins, by), None):
                break
        else:
            await self._compare(start, "id")
        if self.origins.counters:
            before, after = (state[self.origins.counters].get("random") for state in (self.initial, final))
            if before != after:
                await self._compare({**self.initial, self.origins.seed: self.initial[self.origins.seed] + 1}, "chance")

    async def foreign(self, session: RestorableSession) -> None:
        await session.reset(self.initial)
        await session.wait(MOMENTS)
        other = await run_all(self.run.steps, self.run.turns, session, self.run.calls)
        self._learn(other, self.initial, None)

    async def _compare(self, state: JsonObject, origin: Origin | None) -> bool:
        """Run gold on a state with other origins and learn what comes out otherwise; False if it fails."""
        await self.session.reset(state)
        other = await run_all(self.run.steps, self.run.turns, self.session, self.run.calls)
        if not all(ok for _, _, ok in other.made) or other.lost:
            return False
        self._learn(other, state, origin)
        self.runs.append(Equivalent("other origins", state, other))
        return True

    def _learn(self, other: Ran, start: JsonObject, origin: Origin | None) -> None:
        for mine, theirs in zip(self.gold.states, other.states, strict=True):
            for place, twin in self._pairs(mine, theirs, start):
                self._learn_entry(mine, theirs, place, twin, origin)

    def _pairs(self, mine: JsonObject, theirs: JsonObject, start: JsonObject) -> list[tuple[Place, Place]]:
        """Changed entries of one run with those of the other; new ones in the order in which they were made."""
        skipped = (self.origins.counters, self.origins.seed, self.origins.clock)
        own = [place for place in changed_places(self.initial, mine) if place[0] not in skipped]
        other = changed_places(start, theirs)
        pairs = [(place, place) for place in own if is_there(self.initial, place)]
        for name in dict.fromkeys(place[0] for place in own):
            made = [place for place in own if place[0] == name and not is_there(self.initial, place)]
            twins = [place for place in other if place[0] == name and not is_there(start, place)]
            if len(made) == len(twins):
                pairs += zip(made, twins, strict=True)
        return pairs

    def _learn_entry(
        self, mine: JsonObject, theirs: JsonObject, place: Place, twin: Place, origin: Origin | None
    ) -> None:
        if place != twin:
            self.tables.add(place[0])
        entry = at(theirs, twin)
        for where, value in leaves_of(at(mine, place), place):
            other = entry
            for part in where[len(place) :]:
                other = child(other, part)
            if other != value and not isinstance(other, dict | list) and _scalar(other):
                self.leaves.setdefault(pattern_of(where, mine), origin or _guess(value))


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _guess(value: Any) -> Origin:
    """What a value is made of that came out otherwise where clock and ids were others."""
    if as_moment(value) is not None or (isinstance(value, int | float) and value > 10**8):
        return "clock"
    return "id" if isinstance(value, str) else "chance"
