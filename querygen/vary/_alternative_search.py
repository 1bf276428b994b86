"""Search for an alternative: can the remaining tools reach the goal of a task?

Where a tool is missing, all gold values are given: whoever has them all still finds no way. Where a value is missing,
only what the agent can know is given, that is what the user says and what results have shown; reading comes before
writing then, so that what one call shows can go into the next.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

from trajsmith.grounding import Rewindable, get_types, has_type, iterate_leaves, iterate_named_values
from trajsmith.querygen.vary._case import VariantCase
from trajsmith.records import FromOutput, GoldCall, JsonObject, JsonValue, ToolSpec

BUDGET = 160
MAX_READS = 2
"""Times that everything is read before anything is written, where a value is missing."""
DEPTH = 2
COMBINATIONS = 8
CANDIDATES = 5
SHOWN = 30
"""Rows of a list that are kept from what is read before."""


class AlternativeSearch:
    """Bounded, seeded search over calls with the gold values: at most `BUDGET` calls, `DEPTH` of them in a row.

    It is evidence and no proof in the strict sense: where it finds nothing, the label says how far it looked.
    """

    def __init__(self, case: VariantCase, turn: int, without_tool: str = "", without_value: JsonValue = None) -> None:
        self.case = case
        self.turn = turn
        self.rng = random.Random(case.rng.random())
        self.tools = [tool for tool in case.spec.tools if tool.name != without_tool]
        self.without_value = without_value
        self.made = 0
        """Calls of the search itself."""
        self.read = 0
        """Calls that were made before, to see what can be seen."""
        self.pool: dict[str, list[JsonValue]] = defaultdict(list)
        start, stop = case.spans[turn]
        if without_value is None:
            for call in case.calls[:stop]:
                self._keep(call.arguments)
        else:
            self._keep_said()
        for call in case.calls[:start]:
            self._keep(call.result)

    async def find_path(self) -> list[str] | None:
        """Return the tools of a path to the goal, or None."""
        start, _ = self.case.spans[self.turn]
        session = await self.case.at(0)
        self.initial = await session.snapshot()
        session = await self.case.at(start)
        if self.without_value is not None:
            for _ in range(MAX_READS):
                await self._read(session)
            if await self._can_be_seen(session):
                return [self.case.calls[self.case.spans[self.turn][1] - 1].tool]
        return await self._from(session, DEPTH)

    def show(self, result: JsonValue) -> None:
        """Take the values of a result into account."""
        self._keep(result, limit=SHOWN, shown=True)

    def propose(self, tool: ToolSpec) -> Iterator[JsonObject]:
        """Yield a few ways to fill the arguments of a tool with values that were said or shown."""
        return self._arguments(tool)

    async def _can_be_seen(self, session: Rewindable) -> bool:
        """Return True if the turn's last call takes only stated or returned values and suffices alone."""
        last, mark = self.case.calls[self.case.spans[self.turn][1] - 1], await session.checkpoint()
        seen = {repr(value) for values in self.pool.values() for value in values}
        if not all(repr(value) in seen for _, _, value in iterate_leaves(last)):
            return False
        self.made += 1
        await session.call(last.tool, last.arguments, last.actor)
        there = self.case.reached(self.turn, self.initial, await session.snapshot())
        await session.rollback(mark)
        return there

    async def _read(self, session: Rewindable) -> None:
        """Make every call that changes nothing, and keep what it shows, the missing value too if it is among it."""
        mark, before = await session.checkpoint(), await session.state_hash()
        for tool in self.tools:
            for arguments in self._arguments(tool) if not tool.declares_write else ():
                result = await session.call(tool.name, arguments, tool.actor)
                self.read += 1
                if await session.state_hash() != before:
                    await session.rollback(mark)
                elif result.ok:
                    self._keep(result.content, limit=SHOWN, shown=True)

    async def _from(self, session: Rewindable, depth: int) -> list[str] | None:
        mark, before = await session.checkpoint(), await session.state_hash()
        tools = self.rng.sample(self.tools, len(self.tools))
        tools.sort(key=lambda tool: not tool.declares_write)
        later: list[tuple[ToolSpec, JsonObject]] = []
        for tool in tools:
            for arguments in self._arguments(tool):
                if self.made >= BUDGET:
                    return None
                self.made += 1
                result = await session.call(tool.name, arguments, tool.actor)
                if await session.state_hash() == before:
                    if result.ok:
                        self._keep(result.content, limit=3, shown=True)
                    continue
                if self.case.reached(self.turn, self.initial, await session.snapshot()):
                    return [tool.name]
                later.append((tool, arguments))
                await session.rollback(mark)
        return await self._deeper(session, later, depth)

    async def _deeper(
        self, session: Rewindable, later: Sequence[tuple[ToolSpec, JsonObject]], depth: int
    ) -> list[str] | None:
        mark = await session.checkpoint()
        for tool, arguments in later if depth > 1 else ():
            if self.made >= BUDGET:
                return None
            await session.call(tool.name, arguments, tool.actor)
            way = await self._from(session, depth - 1)
            if way:
                return [tool.name, *way]
            await session.rollback(mark)
        return None

    def _arguments(self, tool: ToolSpec) -> Iterator[JsonObject]:
        """A few ways to fill the required arguments; optional ones where the pool has their very name."""
        options = {name: self._values(name, tool.parameters.get(name, {})) for name in tool.required}
        optional = {
            name: self.pool[name][:2] for name in tool.parameters if name not in tool.required and self.pool.get(name)
        }
        if not all(options.values()):
            return
        seen: set[str] = set()
        whole = [
            dict(zip(options, values, strict=True)) for values in islice(product(*options.values()), COMBINATIONS + 1)
        ]
        few = len(whole) <= COMBINATIONS
        for number in range(len(whole) if few else COMBINATIONS):
            arguments = whole[number] if few else {name: self.rng.choice(values) for name, values in options.items()}
            arguments |= {name: self.rng.choice(values) for name, values in optional.items() if self.rng.random() < 0.7}
            if repr(arguments) not in seen:
                seen.add(repr(arguments))
                yield arguments

    def _values(self, name: str, schema: JsonObject) -> list[Any]:
        if isinstance(schema.get("enum"), list):
            named = [value for value in self.pool.get(name, []) if value in schema["enum"]]
            return named or [] if self.without_value is not None else named + schema["enum"][:CANDIDATES]
        same = list(self.pool.get(name, []))
        types = get_types(schema)
        others = [value for key, values in sorted(self.pool.items()) if key != name for value in values[:2]]
        fitting = [value for value in others if has_type(value, types)]
        return [*same[:CANDIDATES], *self.rng.sample(fitting, min(len(fitting), max(0, CANDIDATES - len(same))))]

    def _keep_said(self) -> None:
        """Collect the values that the user states up to this turn or on request, latest first, and constants."""
        for turn in reversed(self.case.base.turns[: self.turn + 1]):
            for entry in turn.known:
                self._keep(entry.value, entry.slot.rpartition("|")[2])
        for call in self.case.calls[: self.case.spans[self.turn][1]]:
            ours = {name for name, source in call.provenance.items() if not isinstance(source, FromOutput)}
            self._keep({name: value for name, value in call.arguments.items() if name in ours})

    def _keep(self, values: JsonValue, name: str = "", limit: int = 6, shown: bool = False) -> None:
        """Values by their name, each once; the missing one only if it was `shown`."""
        for key, value in iterate_named_values(values, limit, name):
            if (shown or value != self.without_value) and value not in self.pool[key]:
                self.pool[key].append(value)


def build_tempting_calls(calls: Sequence[GoldCall]) -> tuple[GoldCall, ...]:
    """Return gold calls without their results, as calls that an agent might wrongly make."""
    return tuple(call.model_copy(update={"result": None}) for call in calls)
