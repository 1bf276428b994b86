"""Running a query on the records of a table."""

from collections.abc import Iterator

from trajsmith.environments.adapters.openapi.queries import FilterCondition, FilterTest, ListQuery, parse_sort
from trajsmith.environments.adapters.openapi.store import ResourceStore, find_leaves, to_key
from trajsmith.environments.adapters.openapi.tables import REFERENCE_MARK
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject, JsonValue


def find_values(store: ResourceStore, record: JsonObject, path: Path) -> Iterator[JsonValue]:
    """Return values at a path of a record, through references to other records."""
    if not path:
        yield record
        return
    for value in find_leaves(record, path[:1]):
        if isinstance(value, list):
            rest = path[2:] if path[1:2] == ("*",) else path[1:]
            for child in value:
                yield from _follow_path(store, child, rest)
        else:
            yield from _follow_path(store, value, path[1:])


def _follow_path(store: ResourceStore, value: JsonValue, path: Path) -> Iterator[JsonValue]:
    if isinstance(value, dict) and isinstance(value.get(REFERENCE_MARK), str):
        table, _, key = value[REFERENCE_MARK].partition("/")
        value = store.get(table, key)
    if not path:
        yield value
    elif isinstance(value, dict):
        yield from find_values(store, value, path)


def matches_condition(
    condition: FilterCondition, wanted: JsonValue, store: ResourceStore, key: str, record: JsonObject
) -> bool:
    """Return True if a record meets a condition."""
    if condition.test == "key":
        return key in {to_key(value) for value in (wanted if isinstance(wanted, list) else str(wanted).split(","))}
    values = [value for path in condition.paths for value in find_values(store, record, path) if value is not None]
    if condition.test == "equal":
        return any(is_same_value(value, wanted) for value in values)
    if condition.test == "any":
        return any(
            is_same_value(value, one) for value in values for one in (wanted if isinstance(wanted, list) else [wanted])
        )
    if condition.test in ("search", "contains"):
        return any(str(wanted).casefold() in str(value).casefold() for value in values)
    return any(_compare_values(condition.test, value, wanted) for value in values)


def is_same_value(value: JsonValue, wanted: JsonValue) -> bool:
    """Compare as a query means it: 7 and "7" are the same, true and 1 are not."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).lower() == str(wanted).lower()
    return bool(value == wanted) or to_key(value) == to_key(wanted)


def _compare_values(test: FilterTest, value: JsonValue, wanted: JsonValue) -> bool:
    if isinstance(value, str) != isinstance(wanted, str):
        return False
    if isinstance(value, str) and isinstance(wanted, str) and len(wanted) == 10:
        value = value[:10]  # a day compares with the day of a time
    if test in ("at_least", "above"):
        return bool(value > wanted or (test == "at_least" and value == wanted))
    return bool(value < wanted or (test == "at_most" and value == wanted))


def find_sort_key(query: ListQuery, arguments: JsonObject) -> tuple[Path, bool] | None:
    """Return the property to sort by, and True if descending; None if the argument names none."""
    if query.sort is None or query.sort.name not in arguments:
        return None
    value = arguments[query.sort.name]
    key = parse_sort(value, query.fields) if isinstance(value, str) else None
    if key is None:
        return None
    way = str(arguments.get(query.direction.name, "")) if query.direction else ""
    return (key[0], key[1] or way.lower().startswith("desc"))


def build_sort_value(store: ResourceStore, record: JsonObject, path: Path) -> tuple[int, float, str]:
    """Return a key that sorts numbers by size, texts by alphabet, and missing values last."""
    value = next((value for value in find_values(store, record, path) if value is not None), None)
    if isinstance(value, bool | int | float):
        return 0, float(value), ""
    return (1, 0.0, value) if isinstance(value, str) else (2, 0.0, "")
