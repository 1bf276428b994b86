"""References in tests: values that are looked up in the state or in earlier results when the test is played."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from trajsmith.envgen.synthesis.answer_schemas import RowCountCondition, RowPick
from trajsmith.records import JsonObject, JsonValue, format_first_error

_MISSING = object()


class UnresolvedTestReference(Exception):
    """Error: a reference has no target, so the test cannot run from this state."""


def resolve_references(value: Any, state: JsonObject, results: Sequence[JsonValue]) -> Any:
    """Return a value with every reference in it resolved.

    Raises:
        Unresolved: Nothing fits a reference, or it is written wrongly.
    """
    if isinstance(value, list):
        return [resolve_references(part, state, results) for part in value]
    if not isinstance(value, dict):
        return value
    if "$pick" in value:
        return resolve_pick(_parse_pick(value["$pick"]), state, results)
    if "$result" in value:
        return _resolve_result_path(value["$result"], results)
    if "$days" in value:
        return _resolve_day(value["$days"], state)
    return {name: resolve_references(part, state, results) for name, part in value.items()}


def resolve_object(value: JsonObject, state: JsonObject, results: Sequence[JsonValue]) -> JsonObject:
    """Return arguments or conditions with every reference resolved; a reference in place of all of them is none.

    Raises:
        Unresolved: As `resolved`.
    """
    content = resolve_references(value, state, results)
    if not isinstance(content, dict):
        raise UnresolvedTestReference(f"a reference stands where names with values must stand: {str(value)[:120]}")
    return content


def _parse_pick(reference: Any) -> RowPick:
    try:
        return RowPick.model_validate(reference)
    except ValidationError as error:
        raise UnresolvedTestReference(f"$pick cannot be read: {format_first_error(error)}") from error


def resolve_pick(pick: RowPick, state: JsonObject, results: Sequence[JsonValue]) -> JsonValue:
    """Return the value that a pick stands for."""
    fitting = []
    for key, row in find_rows(state, pick.table, resolve_object(pick.where, state, results)):
        if all(_meets_row_count(having, key, state, results) for having in pick.having):
            fitting.append((key, row))
    if len(fitting) <= pick.number:
        raise UnresolvedTestReference(
            f"no row {pick.number} of {pick.table} fits {pick.model_dump(exclude_defaults=True)}"
        )
    key, row = fitting[pick.number]
    if pick.field in row:
        value: JsonValue = row[pick.field]
        return value
    if pick.field == "$key":
        return key
    raise UnresolvedTestReference(f"{pick.table} has no column {pick.field}; it has {', '.join(row)}")


def _meets_row_count(having: RowCountCondition, key: str, state: JsonObject, results: Sequence[JsonValue]) -> bool:
    where = resolve_object(having.where, state, results)
    count = sum(str(row.get(having.column)) == key for _, row in find_rows(state, having.table, where))
    return having.at_least <= count and (having.at_most is None or count <= having.at_most)


def find_rows(state: JsonObject, table: str, where: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Return rows of a table that satisfy conditions, in the order of their keys.

    Raises:
        Unresolved: There is no such table.
    """
    rows = state.get(table)
    if isinstance(rows, list):
        rows = {str(number): row for number, row in enumerate(rows)}
    if not isinstance(rows, dict):
        raise UnresolvedTestReference(f"the state has no table {table}; it has {', '.join(state)}")
    for key in sorted(rows):
        row = rows[key]
        if isinstance(row, dict) and all(
            meets_condition(row.get(name, _MISSING), wanted) for name, wanted in where.items()
        ):
            yield key, row


def meets_condition(value: Any, wanted: Any) -> bool:
    """Return True if a value equals the expected one or satisfies its condition."""
    if not isinstance(wanted, dict) or not wanted or not wanted.keys() <= _CONDITIONS.keys():
        return _is_equal(value, wanted)
    return all(_CONDITIONS[name](value, limit) for name, limit in wanted.items())


def _is_equal(value: Any, wanted: Any) -> bool:
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    return bool(value == wanted)


def _is_ordered(value: Any, limit: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(limit, int | float)
    return numbers or (isinstance(value, str) and isinstance(limit, str))


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part.lower() in value.lower()
    return isinstance(value, list) and part in value


_CONDITIONS = {
    "is": _is_equal,
    "not": lambda value, limit: not _is_equal(value, limit),
    "above": lambda value, limit: _is_ordered(value, limit) and value > limit,
    "below": lambda value, limit: _is_ordered(value, limit) and value < limit,
    "least": lambda value, limit: _is_ordered(value, limit) and value >= limit,
    "most": lambda value, limit: _is_ordered(value, limit) and value <= limit,
    "contains": _contains,
}


def _resolve_result_path(reference: Any, results: Sequence[JsonValue]) -> JsonValue:
    if not (
        isinstance(reference, list)
        and len(reference) == 2
        and isinstance(reference[0], int)
        and isinstance(reference[1], str)
    ):
        raise UnresolvedTestReference(f"$result must be [number of the call, path], not {reference!r}")
    number, path = reference
    if not 0 <= number < len(results):
        raise UnresolvedTestReference(f"$result: call {number} was not made before this one")
    return get_at_path(results[number], path)


def get_at_path(content: Any, path: str) -> Any:
    """Return the value at a dotted path ("result.0.loan_id").

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
            raise UnresolvedTestReference(f"nothing stands at {path} of the result {str(content)[:120]}")
    return value


def _resolve_day(reference: Any, state: JsonObject) -> str:
    if not isinstance(reference, int):
        raise UnresolvedTestReference(f"$days must be a whole number, not {reference!r}")
    try:
        return (datetime.fromisoformat(str(state["now"])) + timedelta(days=reference)).date().isoformat()
    except (KeyError, ValueError, OverflowError) as error:
        raise UnresolvedTestReference(f"$days cannot be computed: {error}") from error
