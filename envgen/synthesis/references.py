"""References in tests: values that are looked up in the state or in earlier results when the test is played."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from envgen.synthesis.parts import Having, Pick
from trajectory import JsonObject, JsonValue, first_fault

_MISSING = object()


class Unresolved(Exception):
    """A reference leads nowhere: the test cannot be played from this state."""


def resolved(value: Any, state: JsonObject, results: Sequence[JsonValue]) -> Any:
    """A value with every reference in it replaced.

    Raises:
        Unresolved: Nothing fits a reference, or it is written wrongly.
    """
    if isinstance(value, list):
        return [resolved(part, state, results) for part in value]
    if not isinstance(value, dict):
        return value
    if "$pick" in value:
        return picked(_pick(value["$pick"]), state, results)
    if "$result" in value:
        return _of_result(value["$result"], results)
    if "$days" in value:
        return _day(value["$days"], state)
    return {name: resolved(part, state, results) for name, part in value.items()}


def resolved_object(value: JsonObject, state: JsonObject, results: Sequence[JsonValue]) -> JsonObject:
    """Arguments or conditions with every reference in them replaced; a reference in place of all of them is none.

    Raises:
        Unresolved: As `resolved`.
    """
    found = resolved(value, state, results)
    if not isinstance(found, dict):
        raise Unresolved(f"a reference stands where names with values must stand: {str(value)[:120]}")
    return found


def _pick(told: Any) -> Pick:
    try:
        return Pick.model_validate(told)
    except ValidationError as error:
        raise Unresolved(f"$pick cannot be read: {first_fault(error)}") from error


def picked(pick: Pick, state: JsonObject, results: Sequence[JsonValue]) -> JsonValue:
    """The value that a pick stands for."""
    fitting = []
    for key, row in rows_where(state, pick.table, resolved_object(pick.where, state, results)):
        if all(_has(having, key, state, results) for having in pick.having):
            fitting.append((key, row))
    if len(fitting) <= pick.number:
        raise Unresolved(f"no row {pick.number} of {pick.table} fits {pick.model_dump(exclude_defaults=True)}")
    key, row = fitting[pick.number]
    if pick.field in row:
        found: JsonValue = row[pick.field]
        return found
    if pick.field == "$key":
        return key
    raise Unresolved(f"{pick.table} has no column {pick.field}; it has {', '.join(row)}")


def _has(having: Having, key: str, state: JsonObject, results: Sequence[JsonValue]) -> bool:
    where = resolved_object(having.where, state, results)
    count = sum(str(row.get(having.column)) == key for _, row in rows_where(state, having.table, where))
    return having.at_least <= count and (having.at_most is None or count <= having.at_most)


def rows_where(state: JsonObject, table: str, where: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Rows of a table that satisfy conditions, in the order of their keys.

    Raises:
        Unresolved: There is no such table.
    """
    rows = state.get(table)
    if isinstance(rows, list):
        rows = {str(number): row for number, row in enumerate(rows)}
    if not isinstance(rows, dict):
        raise Unresolved(f"the state has no table {table}; it has {', '.join(state)}")
    for key in sorted(rows):
        row = rows[key]
        if isinstance(row, dict) and all(fits(row.get(name, _MISSING), wanted) for name, wanted in where.items()):
            yield key, row


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what is wanted: equal, or as a condition says."""
    if not isinstance(wanted, dict) or not wanted or not wanted.keys() <= _CONDITIONS.keys():
        return _equal(value, wanted)
    return all(_CONDITIONS[name](value, limit) for name, limit in wanted.items())


def _equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)


def _ordered(value: Any, limit: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(limit, int | float)
    return numbers or (isinstance(value, str) and isinstance(limit, str))


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part.lower() in value.lower()
    return isinstance(value, list) and part in value


_CONDITIONS = {
    "is": _equal,
    "not": lambda value, limit: not _equal(value, limit),
    "above": lambda value, limit: _ordered(value, limit) and value > limit,
    "below": lambda value, limit: _ordered(value, limit) and value < limit,
    "least": lambda value, limit: _ordered(value, limit) and value >= limit,
    "most": lambda value, limit: _ordered(value, limit) and value <= limit,
    "contains": _contains,
}


def _of_result(told: Any, results: Sequence[JsonValue]) -> JsonValue:
    if not (isinstance(told, list) and len(told) == 2 and isinstance(told[0], int) and isinstance(told[1], str)):
        raise Unresolved(f"$result must be [number of the call, path], not {told!r}")
    number, path = told
    if not 0 <= number < len(results):
        raise Unresolved(f"$result: call {number} was not made before this one")
    return at_path(results[number], path)


def at_path(content: Any, path: str) -> Any:
    """What stands at a dotted path ("result.0.loan_id").

    Raises:
        Unresolved: Nothing does.
    """
    value = content
    for part in filter(None, path.split(".")):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise Unresolved(f"nothing stands at {path} of the result {str(content)[:120]}")
    return value


def _day(told: Any, state: JsonObject) -> str:
    if not isinstance(told, int):
        raise Unresolved(f"$days must be a whole number, not {told!r}")
    try:
        return (datetime.fromisoformat(str(state["now"])) + timedelta(days=told)).date().isoformat()
    except (KeyError, ValueError, OverflowError) as error:
        raise Unresolved(f"$days cannot be told: {error}") from error
