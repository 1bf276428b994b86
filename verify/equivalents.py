"""Runs that are as good as gold: other ids, a later clock, independent calls in another order.

That two calls are independent is proved by making them both ways round: both give the same results and have the same
effects, apart from what the environment gives out. Effects are compared without the names of
`trajsmith.verify.normalized_state`, so that the proof does not rest on what it is to test.
"""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from trajsmith.environments import diff
from trajsmith.grounding import iterate_leaves
from trajsmith.records import EnvironmentSpec, FromOutput, JsonObject, NondeterminismMask, canonical_json
from trajsmith.verify.gold_run import EquivalentRun, GoldRun, GoldStep, RunResult, run_all
from trajsmith.verify.nondeterminism import advance_clock, advance_counters, find_used_counters, read_declared_origins
from trajsmith.verify.normalized_state import build_place_pattern, is_there, iter_leaves

LATER = timedelta(minutes=3)
OTHER_IDS = 37
SWAPS = 3
"""Pairs of calls that change places in one run, at most."""


class EquivalentRunBuilder:
    """Builds equivalent runs of one gold run."""

    def __init__(self, gold: GoldRun, spec: EnvironmentSpec, masks: NondeterminismMask, seed: int) -> None:
        self.gold = gold
        self.masks = masks
        self.origins = read_declared_origins(spec, gold.initial)
        self.rng = random.Random(seed)

    async def build(self, count: int) -> list[EquivalentRun]:
        """Build at most `count` runs: one with all changes at once, then with one change each.

        Raises:
            EnvironmentFault: The environment broke.
        """
        steps, swaps = await self.reordered(SWAPS)
        moved = self.start(clock=True, ids=True)
        plans: list[tuple[str, JsonObject, list[GoldStep]]] = []
        if moved is not None:
            plans.append((f"{swaps} swaps, other ids, later clock", moved, steps))
        plans += [
            (says, state, self.gold.steps)
            for says, state in (
                ("other ids", self.start(clock=False, ids=True)), ("later clock", self.start(clock=True, ids=False))
            )
            if state is not None
        ]  # fmt: skip
        if swaps:
            plans.append((f"{swaps} swaps", self.gold.initial, steps))
        runs = []
        for says, state, order in plans[:count]:
            ran = await self._play(state, order)
            if all(ok for _, _, ok in ran.calls) and not ran.lost:
                runs.append(EquivalentRun(says, state, ran))
        return runs

    async def _play(self, state: JsonObject, order: list[GoldStep]) -> RunResult:
        """Make the calls in this order from this state.

        From the initial state of gold, go on from where the order leaves gold: a snapshot of a live server is only
        what is observed of it, and no state to reset it to.
        """
        if state is not self.gold.initial:
            await self.gold.session.reset(state)
            return await run_all(order, self.gold.turns, self.gold.session, self.gold.calls)
        start = next(index for index, step in enumerate(order) if step is not self.gold.steps[index])
        ran = await self.gold.branch(start, order[start:])
        assert ran is not None, "no call was asked to succeed"
        return ran

    def start(self, clock: bool, ids: bool) -> JsonObject | None:
        """The initial state with what the environment gives out moved; None if it declares nothing of that kind."""
        state = self.gold.initial
        used = find_used_counters(state, self.gold.ran.states[-1], self.origins)
        if ids and used:
            state = advance_counters(state, self.origins, used, OTHER_IDS)
        if clock and self.origins.clock:
            state = advance_clock(state, self.origins, LATER)
        return None if state is self.gold.initial else state

    async def swapped(self) -> list[EquivalentRun]:
        """One run with one pair of calls swapped, from where it leaves gold; none if no pair is independent.

        Raises:
            EnvironmentFault: The environment broke.
        """
        steps, swaps = await self.reordered(1)
        if not swaps:
            return []
        ran = await self._play(self.gold.initial, steps)
        good = all(ok for _, _, ok in ran.calls) and not ran.lost
        return [EquivalentRun("1 swap", self.gold.initial, ran)] if good else []

    async def reordered(self, most: int) -> tuple[list[GoldStep], int]:
        """Gold with at most that many pairs of neighbours swapped that are independent, and how many pairs that are."""
        steps, taken = list(self.gold.steps), set[int]()
        pairs = [index for index in range(len(steps) - 1) if self._may_swap(index)]
        for index in self.rng.sample(pairs, len(pairs)):
            if len(taken) < most and not taken & {index - 1, index + 1} and await self._independent(index):
                steps[index], steps[index + 1] = steps[index + 1], steps[index]
                taken.add(index)
        return steps, len(taken)

    def _may_swap(self, index: int) -> bool:
        first, second = self.gold.steps[index], self.gold.steps[index + 1]
        uses = any(
            isinstance(source, FromOutput) and source.call == index for _, source, _ in iterate_leaves(second.call)
        )
        return first.turn == second.turn and not uses and {first.actor, second.actor} == {"assistant"}

    async def _independent(self, index: int) -> bool:
        """Return True if both orders of the two calls have the same results and effects."""
        one, other = self.gold.steps[index], self.gold.steps[index + 1]
        ways = []
        for order in ((one, other), (other, one)):
            await self.gold.session.rollback(self.gold.points[index][0])
            done: dict[int, Any] = {}
            state = await self.gold.session.snapshot()
            for step in order:
                result = await self.gold.session.call(step.call.tool, step.call.arguments, step.actor)
                if not result.ok:
                    return False
                after = await self.gold.session.snapshot()
                done[step.index or 0] = [self._blind(result.content), self._effects(state, after)]
                state = after
            ways.append(done)
        return bool(ways[0] == ways[1])

    def _blind(self, content: Any) -> list[Any]:
        """A result without the values that the environment gave out in the gold run, or could have given here."""
        return [
            [place, "?" if isinstance(value, str) and (value in self.masks.names or self._is_new(value)) else value]
            for place, value in iter_leaves(content, ())
        ]

    def _is_new(self, value: str) -> bool:
        """True for a text like the ids that were given out: the same but for its digits."""
        return any(_strip_digits(value) == _strip_digits(name) for name in self.masks.names)

    def _effects(self, before: JsonObject, after: JsonObject) -> Counter[bytes]:
        """Return what a call changed, without values that the environment generated."""
        effects: Counter[bytes] = Counter()
        for operation in diff(before, after):
            place = tuple(operation["path"].split("/")[1:])
            if place[0] == self.masks.counters:
                continue
            new = len(place) == 2 and place[0] in self.masks.tables and not is_there(before, place)
            label = [*place[:-1], "new"] if new else [*place]
            effects[canonical_json([operation["op"], label, *self._content(after, place)])] += 1
        return effects

    def _content(self, after: JsonObject, place: tuple[str, ...]) -> Iterator[Any]:
        if is_there(after, place):
            node: Any = after
            for part in place:
                node = node[int(part)] if isinstance(node, list) else node[part]
            for where, value in iter_leaves(node, place):
                if build_place_pattern(where, after) not in self.masks.leaves:
                    yield [list(where[len(place) :]), value]


def _strip_digits(text: str) -> str:
    return "".join("0" if character.isdigit() else character for character in text)
