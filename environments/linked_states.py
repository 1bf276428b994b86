"""States of several environments as those of one world: one clock, and equal values where links say so."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import orjson
from pydantic import ConfigDict, Field

from trajsmith.phrasing import parse_datetime
from trajsmith.records import FrozenModel, JsonObject

_MOMENT = re.compile(r'"(\d{4}-\d\d-\d\d)((?:[T ]\d\d:\d\d[^"]*)?)"')
_NAME_PARTS = r"[\w.@+-]"


class BrokenLinkError(Exception):
    """A link does not fit a state."""


class StateLink(FrozenModel):
    """Rows of two environments that are the same thing: the k-th of one table is the k-th of the other."""

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    """Table or object whose values count, as `environment.path`: "bank.customers", "calendar.owner"."""
    target: str = Field(alias="to")
    """Table or object that gets them."""
    names: dict[str, str] = {}
    """Field of the source to the field of the target that is the same name, address or number of a thing: the
    target's old text is exchanged for it wherever it stands in that environment."""
    values: dict[str, str] = {}
    """The same for values that change in this row only: dates, amounts, choices."""
    rows: int | None = Field(None, ge=1)
    """Number of rows that are the same; all that both have if left out."""
    skip_from: int = Field(0, ge=0)
    """Rows of the source that come before the first of them."""
    skip_to: int = Field(0, ge=0)
    """Rows of the target that come before the first of them."""

    @property
    def title(self) -> str:
        """Name of the link in messages."""
        return f"link from {self.source} to {self.target}"


def link_states(states: JsonObject, links: Sequence[StateLink], clock: str) -> JsonObject:
    """Return the states of several environments as those of one world.

    Args:
        states: Environment to its initial state; not changed.
        links: Links, applied in order.
        clock: Environment whose day all get; the time is the latest of all, so that nothing recorded is to come.

    Raises:
        BrokenLinkError: A link names a table, a row or a field that a state does not have.
    """
    linked = set_clock(states, clock)
    for link in links:
        environment = link.target.partition(".")[0]
        linked = linked | {environment: _apply(link, linked)}
    return linked


def set_clock(states: JsonObject, clock: str) -> JsonObject:
    """Return the states on one day: all dates of an environment move by the days between its clock and `clock`'s.

    An environment without a clock (`now`) stays as it is.
    """
    clocks = {name: parse_datetime(state.get("now")) for name, state in states.items()}
    moments = {name: now for name, now in clocks.items() if isinstance(now, datetime)}
    if clock not in moments:
        return states
    now = datetime.combine(moments[clock].date(), max(moment.time() for moment in moments.values()))
    return {
        name: _move(state, (now.date() - moments[name].date()).days) | {"now": now.isoformat()}
        if name in moments
        else state
        for name, state in states.items()
    }


def _move(state: JsonObject, days: int) -> JsonObject:
    def move(match: re.Match[str]) -> str:
        try:
            day = date.fromisoformat(match[1])
        except ValueError:  # a number that looks like a date
            return match[0]
        try:
            return f'"{day + timedelta(days=days)}{match[2]}"'
        except OverflowError as error:
            raise BrokenLinkError(f"{match[1]} cannot be moved by {days} days") from error

    moved: JsonObject = orjson.loads(_MOMENT.sub(move, orjson.dumps(state).decode()))
    return moved


def _apply(link: StateLink, states: JsonObject) -> JsonObject:
    """Return the target's state with the values of the source."""
    source = _list_rows(link, link.source, states)[link.skip_from :]
    target = _list_rows(link, link.target, states)[link.skip_to :]
    count = min(len(source), len(target)) if link.rows is None else link.rows
    if not count or count > min(len(source), len(target)):
        raise BrokenLinkError(
            f"{link.title}: there are {len(source)} and {len(target)} rows, and {count or 1} must be in both"
        )
    environment = link.target.partition(".")[0]
    linked = states | {environment: orjson.loads(orjson.dumps(states[environment]))}
    for number in range(count):
        for field, other in link.names.items():
            old = _get(link, _list_rows(link, link.target, linked)[link.skip_to + number], other)
            linked[environment] = _exchange(link, linked[environment], old, _get(link, source[number], field))
        for field, other in link.values.items():
            row = _list_rows(link, link.target, linked)[link.skip_to + number]
            _get(link, row, other)
            row[other] = _get(link, source[number], field)
    changed: JsonObject = linked[environment]
    return changed


def _list_rows(link: StateLink, place: str, states: JsonObject) -> list[dict[str, Any]]:
    """Return the rows of a table, or the one object, at a place."""
    node: Any = states
    for part in place.split("."):
        if not isinstance(node, Mapping) or part not in node:
            raise BrokenLinkError(f"{link.title}: the state has no {place}")
        node = node[part]
    rows = list(node.values()) if isinstance(node, dict) else node
    if isinstance(node, dict) and not all(isinstance(row, dict) for row in rows):
        return [node]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BrokenLinkError(f"{link.title}: {place} is neither a table nor an object")
    return rows


def _get(link: StateLink, row: Mapping[str, Any], field: str) -> Any:
    value: Any = row
    for part in field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None:
        raise BrokenLinkError(f"{link.title}: a row has no {field}")
    return value


def _exchange(link: StateLink, state: JsonObject, old: Any, new: Any) -> JsonObject:
    """Return a state in which two names have changed places, wherever they stand as words of their own."""
    if not (isinstance(old, str) and isinstance(new, str) and old and new):
        raise BrokenLinkError(f"{link.title}: {old!r} and {new!r} are no texts: write the field under `values`")
    if old == new:
        return state
    pairs = {_quote(old): _quote(new), _quote(new): _quote(old)}
    either = "|".join(map(re.escape, sorted(pairs, key=len, reverse=True)))
    pattern = re.compile(f"(?<!{_NAME_PARTS})(?:{either})(?!{_NAME_PARTS})")
    text = pattern.sub(lambda match: pairs[match[0]], orjson.dumps(state).decode())
    exchanged: JsonObject = orjson.loads(text)
    return exchanged


def _quote(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]
