"""Looking for another way: can the tools that are left reach what a task asks for?"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from grounding.rewind import Rewindable
from querygen.vary._case import Case
from trajectory import GoldCall, JsonObject, JsonValue, ToolSpec

BUDGET = 160
DEPTH = 2
COMBINATIONS = 8
CANDIDATES = 5
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


class Search:
    """Bounded, seeded search over calls with the gold values: at most `BUDGET` calls, `DEPTH` of them in a row.

    It is evidence and no proof in the strict sense: where it finds nothing, the label says how far it looked.
    """

    def __init__(self, case: Case, turn: int, without_tool: str = "", without_value: JsonValue = None) -> None:
        self.case = case
        self.turn = turn
        self.rng = random.Random(case.rng.random())
        self.tools = [tool for tool in case.spec.tools if tool.name != without_tool]
        self.without_value = without_value
        self.made = 0
        self.pool: dict[str, list[JsonValue]] = defaultdict(list)
        start, stop = case.spans[turn]
        for call in case.calls[:stop]:
            self._keep(call.arguments)
        for call in case.calls[:start]:
            self._keep(call.result)

    async def way(self) -> list[str] | None:
        """The tools of a way to the goal, or None if none was found."""
        start, _ = self.case.spans[self.turn]
        session = await self.case.at(0)
        self.initial = await session.snapshot()
        session = await self.case.at(start)
        return await self._from(session, DEPTH)

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
                        self._keep(result.content, limit=3)
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
        for _ in range(COMBINATIONS):
            found = {name: self.rng.choice(values) for name, values in options.items()}
            found |= {name: self.rng.choice(values) for name, values in optional.items() if self.rng.random() < 0.7}
            if repr(found) not in seen:
                seen.add(repr(found))
                yield found

    def _values(self, name: str, schema: JsonObject) -> list[Any]:
        if isinstance(schema.get("enum"), list):
            named = [value for value in self.pool.get(name, []) if value in schema["enum"]]
            return named or [] if self.without_value is not None else named + schema["enum"][:CANDIDATES]
        same = list(self.pool.get(name, []))
        kind = _TYPES.get(str(schema.get("type")), ())
        others = [value for key, values in sorted(self.pool.items()) if key != name for value in values[:2]]
        fitting = [value for value in others if not kind or isinstance(value, kind)]
        return [*same[:CANDIDATES], *self.rng.sample(fitting, min(len(fitting), max(0, CANDIDATES - len(same))))]

    def _keep(self, found: JsonValue, name: str = "", limit: int = 6) -> None:
        """Values by their name, each once."""
        if isinstance(found, dict):
            for key, value in found.items():
                self._keep(value, key, limit)
        elif isinstance(found, list):
            for value in found[:limit]:
                self._keep(value, name, limit)
        elif found is not None and found != self.without_value and found not in self.pool[name]:
            self.pool[name].append(found)


def tempting(calls: Sequence[GoldCall]) -> tuple[GoldCall, ...]:
    """Gold calls without their results, as what an agent might do."""
    return tuple(call.model_copy(update={"result": None}) for call in calls)
