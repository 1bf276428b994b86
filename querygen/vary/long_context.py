"""The same task in a state with thousands of other entities that have nothing to do with it.

The tables are copied with new ids throughout, so that a copied order belongs to a copied customer. Proof: the gold
calls are made again, every one of them succeeds, and every reference still leads to the same value.
"""

import re
from functools import partial

from grounding import Unresolved, leaves, resolve
from querygen.vary._case import Case, Varied
from trajectory import Dropped, EnvironmentFault, FromOutput, JsonObject, JsonValue, Twist

_DIGITS = re.compile(r"^(.*?)(\d+)$", re.DOTALL)


async def vary(case: Case) -> Varied:
    """The task, in other words, on a crowded state.

    Raises:
        Dropped: The state has no tables, or no table can be filled without changing what the task is about.
    """
    tables = {name: rows for name, rows in case.state.items() if _is_table(rows)}
    if not tables:
        raise Dropped("no_tables")
    state = crowded(case.state, list(tables), case.entities)
    if not await _same(case, state):
        names: list[str] = []
        state = case.state
        for name in sorted(tables, key=lambda name: len(tables[name]), reverse=True):
            tried = crowded(case.state, [*names, name], case.entities)
            if await _same(case, tried):
                names, state = [*names, name], tried
        if not names:
            raise Dropped("distracted", "more entities change what the calls return")
    more = sum(len(state[name]) - len(rows) for name, rows in tables.items())
    if more < case.entities // 2:
        raise Dropped("too_few_entities", str(more))
    twist = Twist(
        base=case.base.id,
        turn=0,
        act="plain",
        proof=f"with {more} more entities all gold calls succeed and all references lead to the same values",
    )
    task = await case.finish(case.unchanged(case.words(), range(len(case.spans))), twist, state=state)
    return Varied(task, state)


def crowded(state: JsonObject, names: list[str], entities: int) -> JsonObject:
    """The state with these tables copied until they hold so many more rows."""
    keys = {key for name in names for key in state[name] if len(key) > 1}
    rows = sum(len(state[name]) for name in names)
    more = {name: dict(state[name]) for name in names}
    for number in range(1, -(-entities // rows) + 1):
        rename = partial(_renamed, keys=keys, number=f"9{number:06d}")
        for name in names:
            more[name] |= {_fresh(key, f"9{number:06d}"): rename(row) for key, row in state[name].items()}
    return {**state, **more}


def _is_table(rows: JsonValue) -> bool:
    return isinstance(rows, dict) and len(rows) > 1 and all(isinstance(row, dict) for row in rows.values())


def _fresh(key: str, number: str) -> str:
    """A key of the same look: W1001 becomes W90000011001, W90000021001, ..."""
    found = _DIGITS.match(key)
    return f"{found[1]}{number}{found[2]}" if found else f"{key}-{number}"


def _renamed(value: JsonValue, keys: set[str], number: str) -> JsonValue:
    if isinstance(value, dict):
        return {
            _fresh(key, number) if key in keys else key: _renamed(inner, keys, number) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_renamed(inner, keys, number) for inner in value]
    if isinstance(value, str) and value in keys:
        return _fresh(value, number)
    if isinstance(value, str) and "@" in value:
        name, _, host = value.partition("@")
        return f"{name}{number}@{host}"
    return value


async def _same(case: Case, state: JsonObject) -> bool:
    """True if the environment takes the state, the gold calls succeed and every reference leads to the same value."""
    try:
        return await _leads_there(case, state)
    except EnvironmentFault:
        return False  # a state that the environment cannot work with is none


async def _leads_there(case: Case, state: JsonObject) -> bool:
    await case.session.reset(state)
    results: list[JsonValue] = []
    for call in case.calls:
        for path, source, value in leaves(call):
            if isinstance(source, FromOutput) and path in call.arguments and not _leads(source, results, value):
                return False
        result = await case.session.call(call.tool, call.arguments, call.actor)
        if not result.ok:
            return False
        results.append(result.content)
    return True


def _leads(source: FromOutput, results: list[JsonValue], value: JsonValue) -> bool:
    try:
        return bool(resolve(source, results[source.call]) == value)
    except Unresolved:
        return False
