"""Running a query on the records of a table."""

from collections.abc import Iterator

from environments.openapi.queries import Condition, Query, Test, sort_of
from environments.openapi.store import Store, key_of, leaves
from environments.openapi.tables import REF
from environments.openapi.values import Path
from trajectory import JsonObject, JsonValue


def values_at(store: Store, record: JsonObject, path: Path) -> Iterator[JsonValue]:
    """Values at a place of a record, through references to other records."""
    if not path:
        yield record
        return
    for value in leaves(record, path[:1]):
        if isinstance(value, dict) and isinstance(value.get(REF), str):
            table, _, key = value[REF].partition("/")
            value = store.get(table, key)
        if isinstance(value, list):
            rest = path[2:] if path[1:2] == ("*",) else path[1:]
            for child in value:
                yield from _into(store, child, rest)
        else:
            yield from _into(store, value, path[1:])


def _into(store: Store, value: JsonValue, path: Path) -> Iterator[JsonValue]:
    if isinstance(value, dict) and isinstance(value.get(REF), str):
        table, _, key = value[REF].partition("/")
        value = store.get(table, key)
    if not path:
        yield value
    elif isinstance(value, dict):
        yield from values_at(store, value, path)


def holds(condition: Condition, wanted: JsonValue, store: Store, key: str, record: JsonObject) -> bool:
    """True if a record meets a condition."""
    if condition.test == "key":
        return key in {key_of(value) for value in (wanted if isinstance(wanted, list) else str(wanted).split(","))}
    found = [value for path in condition.paths for value in values_at(store, record, path) if value is not None]
    if condition.test == "equal":
        return any(same(value, wanted) for value in found)
    if condition.test == "any":
        return any(same(value, one) for value in found for one in (wanted if isinstance(wanted, list) else [wanted]))
    if condition.test in ("search", "contains"):
        return any(str(wanted).casefold() in str(value).casefold() for value in found)
    return any(_compare(condition.test, value, wanted) for value in found)


def same(value: JsonValue, wanted: JsonValue) -> bool:
    """Equality as a query means it: 7 and "7" are the same, true and 1 are not."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).lower() == str(wanted).lower()
    return bool(value == wanted) or key_of(value) == key_of(wanted)


def _compare(test: Test, value: JsonValue, wanted: JsonValue) -> bool:
    if isinstance(value, str) != isinstance(wanted, str):
        return False
    if isinstance(value, str) and isinstance(wanted, str) and len(wanted) == 10:
        value = value[:10]  # a day compares with the day of a time
    if test in ("at_least", "above"):
        return bool(value > wanted or (test == "at_least" and value == wanted))
    return bool(value < wanted or (test == "at_most" and value == wanted))


def sort_key(query: Query, arguments: JsonObject) -> tuple[Path, bool] | None:
    """What the list is to be sorted by, and whether downward; None if the argument names nothing."""
    if query.sort is None or query.sort.name not in arguments:
        return None
    value = arguments[query.sort.name]
    found = sort_of(value, query.fields) if isinstance(value, str) else None
    if found is None:
        return None
    way = str(arguments.get(query.direction.name, "")) if query.direction else ""
    return (found[0], found[1] or way.lower().startswith("desc"))


def sorting_value(store: Store, record: JsonObject, path: Path) -> tuple[int, float, str]:
    """A key that sorts numbers by size, texts by alphabet, and what is missing last."""
    value = next((value for value in values_at(store, record, path) if value is not None), None)
    if isinstance(value, bool | int | float):
        return 0, float(value), ""
    return (1, 0.0, value) if isinstance(value, str) else (2, 0.0, "")
