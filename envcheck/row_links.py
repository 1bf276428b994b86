"""Links from objects in a tool result to rows of the state."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.facts.state_columns import StateColumns, is_day, is_moment, is_number
from trajsmith.envcheck.parameter_columns import ParameterColumns
from trajsmith.envcheck.state_shape import Row
from trajsmith.grounding import split_name
from trajsmith.phrasing import singularize

NUMBER = 0.0051
FLAT = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class RowLink:
    """A way from an object to a row: from which name, to which relation, over which reference."""

    origin: str
    """"own" for an identifier in the object, "argument", "change" for the one row of its relation that changed."""
    name: str
    relation: str
    hop: str = ""
    """Column of that row that was followed to another one."""
    target: str = ""
    """Relation of the row at the end."""


@dataclass(frozen=True, slots=True)
class LinkedRow:
    """An object, one link of it, and the row at its end."""

    link: RowLink
    row: Row


def iterate_objects(content: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """All objects of a result with the path to them, without the places in lists."""
    if isinstance(content, dict):
        yield path, content
        for name, value in content.items():
            yield from iterate_objects(value, f"{path}.{name}")
    elif isinstance(content, list):
        for value in content[:20]:
            yield from iterate_objects(value, f"{path}[*]")


def find_linked_rows(places: ParameterColumns, seen: ObservedCall, item: dict[str, Any]) -> Iterator[LinkedRow]:
    """Rows that an object may speak of."""
    data = places.data
    for name, value in item.items():
        yield from _links_by_name(places, seen, "own", name, value)
    for name, value in seen.outcome.step.arguments.items():
        yield from _links_by_name(places, seen, "argument", name, value)
    changed: dict[str, list[Row]] = {}
    for change in seen.changes if seen.changed else ():
        changed.setdefault(change.relation, []).append(
            change.after if change.after is not None else change.before or {}
        )
    for relation, rows in changed.items():
        if len(rows) == 1 and relation:
            link = RowLink("change", "", relation, target=relation)
            yield LinkedRow(link, rows[0])
            yield from _hops(data, seen, link, rows[0])


def _links_by_name(
    places: ParameterColumns, seen: ObservedCall, origin: str, name: str, value: Any
) -> Iterator[LinkedRow]:
    relation = places.entity(name)
    if not relation or not isinstance(value, str | int) or isinstance(value, bool):
        return
    row = find_row(seen, relation, str(value))
    if row is None:
        return
    link = RowLink(origin, name, relation, target=relation)
    yield LinkedRow(link, row)
    yield from _hops(places.data, seen, link, row)


def _hops(data: StateColumns, seen: ObservedCall, link: RowLink, row: Row) -> Iterator[LinkedRow]:
    for reference in data.references:
        if reference.relation == link.relation and not reference.listed and row.get(reference.column) is not None:
            other = find_row(seen, reference.target, str(row[reference.column]))
            if other is not None:
                yield LinkedRow(
                    RowLink(link.origin, link.name, link.relation, reference.column, reference.target), other
                )


def find_row(seen: ObservedCall, relation: str, name: str) -> Row | None:
    """The row with this key after a call, or before it if it is gone."""
    for view in (seen.after, seen.before):
        rows = view.rows(relation)
        matched_row = rows.get((name,))
        if matched_row is not None:
            return matched_row
        if "." in relation:
            alike = [row for key, row in rows.items() if key[-1] == name]
            if alike:
                return alike[0] if len(alike) == 1 and (f"{name} (again)" not in str(list(rows))) else None
    return None


def has_row(seen: ObservedCall, relation: str, name: str) -> bool:
    """Return True if a row has this key before or after a call."""
    return any(key[-1] == name for view in (seen.after, seen.before) for key in view.rows(relation))


def match_column(field: str, link: RowLink, row: Row) -> str | None:
    """Return the column of a row that a result field must agree with, by name."""
    if field in row:
        return field
    if not link.hop:
        parts = split_name(field)
        longer = [column for column in row if split_name(column)[-len(parts) :] == parts] if len(parts) > 1 else []
        return longer[0] if len(longer) == 1 else None
    noun, parts = split_name(link.target.rsplit(".", 1)[-1]), split_name(field)
    if noun and len(parts) > 1 and parts[0] == singularize(noun[-1]):
        rest = "_".join(parts[1:])
        return rest if rest in row else None
    return None


def values_agree(first: Any, second: Any) -> bool:
    """Return True if two values agree: days may lack times, texts differ in case, amounts in the last digits."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if is_number(first) and is_number(second):
        return bool(abs(first - second) <= NUMBER)
    if isinstance(first, str) and isinstance(second, str):
        one, other = first.strip().casefold(), second.strip().casefold()
        if one == other:
            return True
        dated = (is_day(first) or is_moment(first)) and (is_day(second) or is_moment(second))
        if dated:
            return one[:10] == other[:10] and (len(one) == 10 or len(other) == 10 or one[:16] == other[:16])
        return min(len(one), len(other)) >= 3 and (one in other or other in one)
    if isinstance(second, list) and not isinstance(first, list):
        return len(second) == 1 and values_agree(first, second[0])
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(values_agree(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)
