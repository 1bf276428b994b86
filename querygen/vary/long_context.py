"""The same task in a state with thousands of other entities, dozens of them in the lists that the agent has to read.

Tables are copied with new ids throughout, so that a copied order belongs to a copied customer; and the lists that the
gold calls return get more rows of the same owner. Proof: the gold calls are made again, every one of them succeeds,
every reference still leads to the same value, writes tell the same numbers, and the results are longer.
"""

from functools import partial

import orjson

from trajsmith.grounding import iterate_leaves, leads_to
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._siblings import build_new_key, build_sibling_rows, find_listed_rows, is_table
from trajsmith.records import (
    EnvironmentFault,
    FromOutput,
    JsonObject,
    JsonValue,
    Perturbation,
    RecordDropped,
    canonical_json,
)

SIBLINGS_PER_TABLE = 30
"""More rows for each table that a list is made of."""
LONGER = 2000
"""Characters by which the results of the gold calls must grow."""
MAX_GROWTH = 60_000
"""Characters by which they may grow: more than that nobody trains on."""
ANSWERS = 1500
"""Characters by which the results may grow that the agent tells the user of."""
MIN_BATCH_SIZE = 4
"""Siblings that are not divided any further where some of them are in the way."""


@VARIANTS.register("long_context")
async def vary(case: VariantCase) -> VariantResult:
    """The task, in other words, on a crowded state.

    Raises:
        RecordDropped: The state has no tables, or what the calls return cannot be made longer without changing what the
            task is about.
    """
    crowd = _EnlargedState(case)
    if not crowd.tables:
        raise RecordDropped("no_tables")
    await crowd.add_siblings()
    await crowd.add_strangers()
    if crowd.longer < LONGER:
        raise RecordDropped("lists_do_not_grow", f"{crowd.longer} characters")
    perturbation = Perturbation(
        base=case.base.id,
        turn=0,
        act="plain",
        proof=f"with {crowd.entities} more entities and {crowd.longer} more characters in their results all gold calls "
        "succeed and all references lead to the same values",
    )
    pieces = case.unchanged(case.words(), range(len(case.spans)))
    return VariantResult(await case.finish(pieces, perturbation, state=crowd.state), crowd.state)


class _EnlargedState:
    """A state that gets more and more rows, as long as the task stays what it is."""

    def __init__(self, case: VariantCase) -> None:
        self.case = case
        self.tables = [name for name, rows in case.state.items() if is_table(rows)]
        self.state = normalize_key_order(case.state)
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
        for name, ids in find_listed_rows(self.state, looked).items():
            await self._with(name, build_sibling_rows(self.state[name], ids, SIBLINGS_PER_TABLE, self.case.rng))

    async def add_strangers(self) -> None:
        """As many tables copied as the task bears; all of them together, or one after the other."""
        start, names = self.state, list[str]()
        if not await self._take(enlarge_tables(start, self.tables, self.case.entities)):
            for name in sorted(self.tables, key=lambda name: len(start[name]), reverse=True):
                if await self._take(enlarge_tables(start, [*names, name], self.case.entities)):
                    names.append(name)

    async def _with(self, table: str, rows: JsonObject) -> None:
        """Add those of these rows with which the task is still the same."""
        if await self._take({**self.state, table: {**self.state[table], **rows}}) or len(rows) <= MIN_BATCH_SIZE:
            return
        names = list(rows)
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            await self._with(table, {name: rows[name] for name in half})

    async def _take(self, state: JsonObject) -> bool:
        """Go on with this state if the task is still the same on it."""
        tried = normalize_key_order(state)
        results = await list_results(self.case, tried)
        if results is None:
            return False
        looked, reported = (now - then for now, then in zip(self._lengths(results), self.before, strict=True))
        if looked > MAX_GROWTH or reported > ANSWERS:
            return False
        self.state, self.longer = tried, looked
        return True

    def _lengths(self, results: list[JsonValue]) -> tuple[int, int]:
        """Characters of the results that are looked through, and of those that are told."""
        sizes = [len(canonical_json(result)) for result in results]
        reported = sum(size for index, size in enumerate(sizes) if index in self.goals)
        return sum(sizes) - reported, reported


def normalize_key_order(state: JsonObject) -> JsonObject:
    """Return the state as it is loaded from a file, with sorted keys."""
    loaded: JsonObject = orjson.loads(canonical_json(state))
    return loaded


def enlarge_tables(state: JsonObject, names: list[str], entities: int) -> JsonObject:
    """Return the state with these tables copied until they hold so many more rows."""
    keys = {key for name in names for key in state[name] if len(key) > 1}
    rows = sum(len(state[name]) for name in names)
    more = {name: dict(state[name]) for name in names}
    for number in range(1, -(-entities // rows) + 1):
        rename = partial(_rename_keys, keys=keys, number=f"9{number:06d}")
        for name in names:
            more[name] |= {build_new_key(key, f"9{number:06d}"): rename(row) for key, row in state[name].items()}
    return {**state, **more}


def _rename_keys(value: JsonValue, keys: set[str], number: str) -> JsonValue:
    if isinstance(value, dict):
        return {
            build_new_key(key, number) if key in keys else key: _rename_keys(inner, keys, number)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_rename_keys(inner, keys, number) for inner in value]
    if isinstance(value, str) and value in keys:
        return build_new_key(value, number)
    if isinstance(value, str) and "@" in value:
        name, _, host = value.partition("@")
        return f"{name}{number}@{host}"
    return value


async def list_results(case: VariantCase, state: JsonObject) -> list[JsonValue] | None:
    """Return the results of the gold calls; None if the environment rejects the state, a call is refused or does
    else, or a reference leads elsewhere."""
    try:
        return await _run_gold_calls(case, state)
    except EnvironmentFault:
        return None  # a state that the environment cannot work with is none


async def _run_gold_calls(case: VariantCase, state: JsonObject) -> list[JsonValue] | None:
    await case.session.reset(state)
    results: list[JsonValue] = []
    for call in case.calls:
        for path, source, value in iterate_leaves(call):
            if not isinstance(source, FromOutput) or path not in call.arguments:
                continue
            if not leads_to(source, results[source.call], value):
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
