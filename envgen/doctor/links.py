"""Which row of the state an object in an answer speaks of."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from envgen.doctor.checks.watching import Seen
from envgen.doctor.facts.data import Data, is_day, is_moment, is_number
from envgen.doctor.places import Places
from envgen.doctor.shape import Row
from grounding.names import singular, words

NUMBER = 0.0051
FLAT = (str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Link:
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
class Linked:
    """An object, one link of it, and the row at its end."""

    link: Link
    row: Row


def objects(content: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    """All objects of a result with the path to them, without the places in lists."""
    if isinstance(content, dict):
        yield path, content
        for name, value in content.items():
            yield from objects(value, f"{path}.{name}")
    elif isinstance(content, list):
        for value in content[:20]:
            yield from objects(value, f"{path}[*]")


def linked(places: Places, seen: Seen, item: dict[str, Any]) -> Iterator[Linked]:
    """Rows that an object may speak of."""
    data = places.data
    for name, value in item.items():
        yield from _named(places, seen, "own", name, value)
    for name, value in seen.outcome.step.arguments.items():
        yield from _named(places, seen, "argument", name, value)
    changed: dict[str, list[Row]] = {}
    for change in seen.changes if seen.changed else ():
        changed.setdefault(change.relation, []).append(
            change.after if change.after is not None else change.before or {}
        )
    for relation, rows in changed.items():
        if len(rows) == 1 and relation:
            link = Link("change", "", relation, target=relation)
            yield Linked(link, rows[0])
            yield from _hops(data, seen, link, rows[0])


def _named(places: Places, seen: Seen, origin: str, name: str, value: Any) -> Iterator[Linked]:
    relation = places.entity(name)
    if not relation or not isinstance(value, str | int) or isinstance(value, bool):
        return
    row = row_of(seen, relation, str(value))
    if row is None:
        return
    link = Link(origin, name, relation, target=relation)
    yield Linked(link, row)
    yield from _hops(places.data, seen, link, row)


def _hops(data: Data, seen: Seen, link: Link, row: Row) -> Iterator[Linked]:
    for reference in data.references:
        if reference.relation == link.relation and not reference.listed and row.get(reference.column) is not None:
            other = row_of(seen, reference.target, str(row[reference.column]))
            if other is not None:
                yield Linked(Link(link.origin, link.name, link.relation, reference.column, reference.target), other)


def row_of(seen: Seen, relation: str, name: str) -> Row | None:
    """The row with this key after a call, or before it if it is gone."""
    for view in (seen.after, seen.before):
        rows = view.rows(relation)
        found = rows.get((name,))
        if found is not None:
            return found
        if "." in relation:
            alike = [row for key, row in rows.items() if key[-1] == name]
            if alike:
                return alike[0] if len(alike) == 1 and (f"{name} (again)" not in str(list(rows))) else None
    return None


def is_there(seen: Seen, relation: str, name: str) -> bool:
    """True if a row goes by this name before or after a call."""
    return any(key[-1] == name for view in (seen.after, seen.before) for key in view.rows(relation))


def column_for(field: str, link: Link, row: Row) -> str | None:
    """The column of a row that a field of an answer must agree with, going by the names."""
    if field in row:
        return field
    if not link.hop:
        parts = words(field)
        longer = [column for column in row if words(column)[-len(parts) :] == parts] if len(parts) > 1 else []
        return longer[0] if len(longer) == 1 else None
    noun, parts = words(link.target.rsplit(".", 1)[-1]), words(field)
    if noun and len(parts) > 1 and parts[0] == singular(noun[-1]):
        rest = "_".join(parts[1:])
        return rest if rest in row else None
    return None


def agree(first: Any, second: Any) -> bool:
    """True if two values say the same: days may lack their time, texts their case, amounts their last digits."""
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
        return len(second) == 1 and agree(first, second[0])
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(agree(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)
