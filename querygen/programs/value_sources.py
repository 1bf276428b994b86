"""Sources of the arguments of a program that somebody wrote: a result, the user, a default, or arithmetic.

A program may compute what it likes; what it puts into a call must be known to whoever solves the task. A value that no
result told, that the user did not say and that stands in the program's text is a guess.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trajsmith.grounding import get_leaf_name, leads_to
from trajsmith.records import (
    Composite,
    Constant,
    FromDefault,
    FromOutput,
    FromUser,
    GoldCall,
    JsonObject,
    Provenance,
    Selector,
    ToolSpec,
)

DEEPEST = 6
"""Levels of a result that are looked through."""


class UnknownValue(Exception):
    """A value of an argument comes from nowhere."""


def find_sources(
    tool: ToolSpec, arguments: JsonObject, calls: Sequence[GoldCall], facts: Mapping[str, Any], literals: Sequence[Any]
) -> dict[str, Provenance]:
    """Find where each argument of a call comes from.

    Args:
        tool: The tool.
        arguments: Arguments of the call.
        calls: Calls before it, with their results.
        facts: Keys of the user's facts to their values.
        literals: Values that stand in the program's text.

    Raises:
        UnknownValue: A value comes from nowhere.
    """
    sources: dict[str, Provenance] = {}
    for name, value in arguments.items():
        schema = tool.parameters.get(name, {})
        if "default" in schema and schema["default"] == value:
            sources[name] = FromDefault()
            continue
        parts = list(_iterate_parts(value, name))
        leaves = {path: _find_source(path, part, calls, facts, literals) for path, part in parts}
        missing = next((path for path, source in leaves.items() if source is None), None)
        if missing is not None:
            shown = dict(parts)[missing]
            raise UnknownValue(
                f"{missing}={shown!r} of {tool.name} is in no earlier result, is not said by the person and is no "
                "default"
            )
        known = {path: source for path, source in leaves.items() if source is not None}
        sources[name] = known[name] if name in known else Composite(leaves=known)
    return sources


def _iterate_parts(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of an argument with their paths: "items[0].sku"."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _iterate_parts(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _iterate_parts(inner, f"{path}[{number}]")
    else:
        yield path, value


def _find_source(
    path: str, value: Any, calls: Sequence[GoldCall], facts: Mapping[str, Any], literals: Sequence[Any]
) -> FromUser | FromOutput | Constant | None:
    key = next((key for key, known in facts.items() if _is_same(known, value)), None)
    if key is not None:
        return FromUser(known=key)
    name = get_leaf_name(path)
    source = find_in_results(value, name, calls)
    if source is None and (_is_computed(value, literals) or _is_page(name, value)):
        return Constant()
    return source


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _is_computed(value: Any, literals: Sequence[Any]) -> bool:
    """Return True for a number that the program does not hold: it was computed from others."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and not any(isinstance(each, int | float) and each == value for each in literals)


def _is_page(name: str, value: Any) -> bool:
    """Return True for the number of a page: a loop counts it."""
    return name in ("page", "offset", "limit", "page_size", "per_page") and isinstance(value, int)


def find_in_results(value: Any, name: str, calls: Sequence[GoldCall]) -> FromOutput | None:
    """Find a value in earlier results; fields of the parameter's name before others, newer results before older ones.

    Args:
        value: The value.
        name: Parameter that takes it.
        calls: Calls before, with their results.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return None
    first: FromOutput | None = None
    for number in range(len(calls) - 1, -1, -1):
        for path, selectors in _iterate_places(calls[number].result, value, "$", 0):
            named = path.rsplit(".", 1)[-1] == name
            source = FromOutput(call=number, path=path, selectors=selectors)
            if (named or first is None) and leads_to(source, calls[number].result, value):
                if named:
                    return source
                first = source
    return first


def _iterate_places(node: Any, value: Any, path: str, depth: int) -> Iterator[tuple[str, tuple[Selector, ...]]]:
    """Yield general paths to a value, with a selector for the row of each list on the way."""
    if depth > DEEPEST:
        return
    if isinstance(node, dict):
        for key, inner in node.items():
            yield from _iterate_places(inner, value, f"{path}.{key}", depth + 1)
    elif isinstance(node, list):
        counts: dict[str, Counter[Any]] = {}
        for row in node:
            places = list(_iterate_places(row, value, f"{path}[*]", depth + 1))
            selector = _select_row(node, row, path, value, counts) if places else None
            if selector is not None:
                yield from ((place, (selector, *inner)) for place, inner in places)
    elif _is_same(node, value):
        yield path, ()


def _select_row(
    rows: Sequence[Any], row: Any, path: str, value: Any, counts: dict[str, Counter[Any]]
) -> Selector | None:
    """Select a row by the field that has the value, else by one that no other row has.

    Args:
        rows: The rows.
        row: The one that is meant.
        path: Where they are.
        value: The value.
        counts: Fields to the rows that have each value; filled where a field is looked at first.
    """
    if len(rows) == 1:
        return Selector(rows=path, how="only")
    if not isinstance(row, dict):
        return None
    for field in sorted(row, key=lambda field: row[field] != value):
        own = row[field]
        if not isinstance(own, str | int | float) or isinstance(own, bool):
            continue
        if field not in counts:
            values = (other.get(field) for other in rows if isinstance(other, dict))
            counts[field] = Counter(each for each in values if isinstance(each, str | int | float))
        if counts[field][own] == 1:
            return Selector(rows=path, how="each", field=field, value=own)
    return None
