"""The same task in a state with thousands of other entities, dozens of them in the lists that the agent has to read.

Tables are copied with new ids throughout, so that a copied order belongs to a copied customer; and the lists that the
gold calls return get more rows of the same owner. Proof: the gold calls are made again, every one of them succeeds,
every reference still leads to the same value, writes tell the same numbers, and the results are longer.
"""

from functools import partial

import orjson

from grounding import Unresolved, leaves, resolve
from querygen.vary._case import Case, Varied
from querygen.vary._siblings import fresh, is_table, listed, siblings
from trajectory import Dropped, EnvironmentFault, FromOutput, JsonObject, JsonValue, Twist, canonical_json

SIBLINGS = 30
"""More rows for each table that a list is made of."""
LONGER = 2000
"""Characters by which the results of the gold calls must grow."""
MOST = 60_000
"""Characters by which they may grow: more than that nobody trains on."""
ANSWERS = 1500
"""Characters by which the results may grow that the agent tells the user of."""
LEAST = 4
"""Siblings that are not divided any further where some of them are in the way."""


async def vary(case: Case) -> Varied:
    """The task, in other words, on a crowded state.

    Raises:
        Dropped: The state has no tables, or what the calls return cannot be made longer without changing what the
            task is about.
    """
    crowd = _Crowd(case)
    if not crowd.tables:
        raise Dropped("no_tables")
    await crowd.add_siblings()
    await crowd.add_strangers()
    if crowd.longer < LONGER:
        raise Dropped("lists_do_not_grow", f"{crowd.longer} characters")
    twist = Twist(
        base=case.base.id,
        turn=0,
        act="plain",
        proof=f"with {crowd.entities} more entities and {crowd.longer} more characters in their results all gold calls "
        "succeed and all references lead to the same values",
    )
    pieces = case.unchanged(case.words(), range(len(case.spans)))
    return Varied(await case.finish(pieces, twist, state=crowd.state), crowd.state)


class _Crowd:
    """A state that gets more and more rows, as long as the task stays what it is."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.tables = [name for name, rows in case.state.items() if is_table(rows)]
        self.state = stored(case.state)
        self.goals = {goal for turn in range(len(case.spans)) for goal in case.goals(turn)}
        """Calls whose results the agent tells the user of."""
        self.before = self._lengths([call.result for call in case.calls])
        self.longer = 0
        """Characters by which the results of the other calls have grown."""

    @property
    def entities(self) -> int:
        """Rows that were added."""
        return sum(len(self.state[name]) - len(self.case.state[name]) for name in self.tables)

    async def add_siblings(self) -> None:
        """More rows in the lists that are looked through."""
        looked = [call.result for index, call in enumerate(self.case.calls) if index not in self.goals]
        for name, ids in listed(self.state, looked).items():
            await self._with(name, siblings(self.state[name], ids, SIBLINGS, self.case.rng))

    async def add_strangers(self) -> None:
        """As many tables copied as the task bears; all of them together, or one after the other."""
        start, names = self.state, list[str]()
        if not await self._take(crowded(start, self.tables, self.case.entities)):
            for name in sorted(self.tables, key=lambda name: len(start[name]), reverse=True):
                if await self._take(crowded(start, [*names, name], self.case.entities)):
                    names.append(name)

    async def _with(self, table: str, rows: JsonObject) -> None:
        """Add those of these rows with which the task is still the same."""
        if await self._take({**self.state, table: {**self.state[table], **rows}}) or len(rows) <= LEAST:
            return
        names = list(rows)
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            await self._with(table, {name: rows[name] for name in half})

    async def _take(self, state: JsonObject) -> bool:
        """Go on with this state if the task is still the same on it."""
        tried = stored(state)
        results = await _results(self.case, tried)
        if results is None:
            return False
        looked, told = (now - then for now, then in zip(self._lengths(results), self.before, strict=True))
        if looked > MOST or told > ANSWERS:
            return False
        self.state, self.longer = tried, looked
        return True

    def _lengths(self, results: list[JsonValue]) -> tuple[int, int]:
        """Characters of the results that are looked through, and of those that are told."""
        sizes = [len(canonical_json(result)) for result in results]
        told = sum(size for index, size in enumerate(sizes) if index in self.goals)
        return sum(sizes) - told, told


def stored(state: JsonObject) -> JsonObject:
    """The state as it is when it comes back from a file, where keys stand in order."""
    found: JsonObject = orjson.loads(canonical_json(state))
    return found


def crowded(state: JsonObject, names: list[str], entities: int) -> JsonObject:
    """The state with these tables copied until they hold so many more rows."""
    keys = {key for name in names for key in state[name] if len(key) > 1}
    rows = sum(len(state[name]) for name in names)
    more = {name: dict(state[name]) for name in names}
    for number in range(1, -(-entities // rows) + 1):
        rename = partial(_renamed, keys=keys, number=f"9{number:06d}")
        for name in names:
            more[name] |= {fresh(key, f"9{number:06d}"): rename(row) for key, row in state[name].items()}
    return {**state, **more}


def _renamed(value: JsonValue, keys: set[str], number: str) -> JsonValue:
    if isinstance(value, dict):
        return {
            fresh(key, number) if key in keys else key: _renamed(inner, keys, number) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_renamed(inner, keys, number) for inner in value]
    if isinstance(value, str) and value in keys:
        return fresh(value, number)
    if isinstance(value, str) and "@" in value:
        name, _, host = value.partition("@")
        return f"{name}{number}@{host}"
    return value


async def _results(case: Case, state: JsonObject) -> list[JsonValue] | None:
    """What the gold calls return; None if the environment does not take the state, a call is refused or does something
    else, or a reference leads elsewhere."""
    try:
        return await _led(case, state)
    except EnvironmentFault:
        return None  # a state that the environment cannot work with is none


async def _led(case: Case, state: JsonObject) -> list[JsonValue] | None:
    await case.session.reset(state)
    results: list[JsonValue] = []
    for call in case.calls:
        for path, source, value in leaves(call):
            if isinstance(source, FromOutput) and path in call.arguments and not _leads(source, results, value):
                return None
        result = await case.session.call(call.tool, call.arguments, call.actor)
        if not result.ok or (call.effect == "write" and _numbers(result.content) != _numbers(call.result)):
            return None
        results.append(result.content)
    return results


def _numbers(result: JsonValue) -> list[JsonValue]:
    """The numbers that a result tells beside its texts and lists: what a call did is not to change with the crowd."""
    values = result.values() if isinstance(result, dict) else ()
    return [value for value in values if isinstance(value, int | float)]


def _leads(source: FromOutput, results: list[JsonValue], value: JsonValue) -> bool:
    try:
        return bool(resolve(source, results[source.call]) == value)
    except Unresolved:
        return False
