"""Calls of one dialogue that contradict each other, decided by what they change: undone, repeated, at one time."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal

from trajsmith.grounding.argument_paths import get_leaf_name
from trajsmith.grounding.names import is_identifier
from trajsmith.grounding.user_facts import iterate_leaves
from trajsmith.phrasing import parse_datetime, split_identifier
from trajsmith.records import FromOutput, FromUser, GoldCall, JsonObject, JsonValue

Contradiction = Literal["undone", "repeated_goal", "clash", "no_change", "odd_hour"]
Place = tuple[str, ...]
_OPPOSITES = frozenset(
    frozenset(pair.split("/"))
    for pair in (
        "activate/deactivate", "enable/disable", "activate/disable", "enable/deactivate", "archive/restore",
        "archive/activate", "open/close", "reopen/close", "start/stop", "pause/resume", "hide/show", "approve/reject",
        "accept/decline", "suspend/activate", "suspend/reactivate", "publish/withdraw", "submit/withdraw",
        "release/withdraw",
    )
)  # fmt: skip
"""Words of tools of which nobody asks for both, whatever the state was before. A word and the same with "un" before it
count, too: "freeze/unfreeze"."""
_ENDS = frozenset({"archive", "close", "complete", "finish", "cancel", "retire", "deactivate", "suspend", "terminate"})
"""Words of tools after which nobody adds something to the thing."""
_HOURS = {
    "breakfast": range(5, 12), "morning": range(5, 12), "lunch": range(11, 15), "afternoon": range(12, 18),
    "dinner": range(16, 24), "supper": range(16, 24), "evening": range(16, 24), "night": (*range(17, 24), *range(6)),
}  # fmt: skip
"""Hours at which something of that name may begin."""
_NAMES = ("name", "title", "subject")
_CLOCK_TIME = re.compile(r"(?:\d{4}-\d{2}-\d{2}[T ])?([01]\d|2[0-3]):[0-5]\d(?::\d{2})?")


class _Absent:
    """Marker of a value that is not there."""


ABSENT = _Absent()


@dataclass(frozen=True)
class StateChanges:
    """Changes of one write: place in the state to (value before, value after). Lists are values as a whole."""

    values: Mapping[Place, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def created(self) -> list[Place]:
        """Places of objects that were added to maps or lists."""
        return [place for place, (before, after) in self.values.items() if _adds_object(before, after)]

    def restores(self, earlier: "StateChanges") -> list[Place]:
        """Places that have the value again that they had before an earlier write changed them."""
        return [
            place
            for place, (_, after) in self.values.items()
            if place in earlier.values and _same(earlier.values[place][0], after)
        ]


def list_changes(before: JsonObject, after: JsonObject) -> StateChanges:
    """Compare two states."""
    return StateChanges(dict(_walk((), before, after)))


def _walk(place: Place, before: Any, after: Any) -> Iterator[tuple[Place, tuple[Any, Any]]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in after.items():
            old = before.get(key, ABSENT)
            if old is not value:  # snapshots share what did not change
                yield from _walk((*place, key), old, value)
        yield from (((*place, key), (value, ABSENT)) for key, value in before.items() if key not in after)
    elif not _same(before, after):
        yield place, (before, after)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _adds_object(before: Any, after: Any) -> bool:
    if isinstance(before, list) and isinstance(after, list):
        return len(after) > len(before) and isinstance(after[-1], dict)
    return before is ABSENT and isinstance(after, dict)


@dataclass(frozen=True)
class ExecutedWrite:
    """A write that was executed, and what it changed."""

    call: GoldCall
    changes: StateChanges


def find_contradiction(
    write: ExecutedWrite, earlier: Sequence[ExecutedWrite], in_scenario: bool, destructive: bool, today: date
) -> Contradiction | None:
    """Return how a write contradicts the writes before it, or None.

    What a write changed is undone where a later one brings the value back, unless that one makes something of it, as a
    checkout does of a basket. What the dialogue itself made is undone where a later call takes it away or, outside of
    scenarios, changes its status and nothing else. Outside of scenarios, nobody takes away what they have just changed:
    a booking is not extended and cancelled, no page published and unpublished, and nothing added to a closed account.
    A write may also contradict the name of what it is about: a spa evening does not begin at 06:45.

    Args:
        write: The write.
        earlier: The writes before it.
        in_scenario: The calls tell a scenario, which says by itself what belongs together.
        destructive: The tool takes something away.
        today: Day of the environment's clock.
    """
    if _is_at_odd_hour(write.call):
        return "odd_hour"
    for before in earlier:
        if write.changes.restores(before.changes) and (destructive or not write.changes.created):
            return "undone"
        if (destructive or not in_scenario) and _settles(write, before):
            return "undone"
        same = not in_scenario and _same_entity(write.call, before.call)
        if same and (destructive or _are_opposite(write.call.tool, before.call.tool)):
            return "undone"
        if not in_scenario and _adds_to_ended(write, before):
            return "undone"
        if same and before.call.tool == write.call.tool:
            return "repeated_goal"
        if not in_scenario and _clashes(write, before, today):
            return "clash"
    return None


def sets_what_is_there(write: ExecutedWrite, before: JsonObject, required: Sequence[str]) -> bool:
    """Return whether the user gives a value, and need not, that the thing has already: nobody has the price of a desk
    changed to what it is.

    Args:
        write: A write.
        before: The state before it.
        required: Arguments that the tool needs: who moves a meeting says its day again with the new time.
    """
    sources = write.call.provenance.items()
    names = [name for name, source in sources if isinstance(source, FromUser) and name not in required]
    identifiers = {str(value) for value in _list_identifiers(write.call).values()}
    if len(identifiers) != 1 or write.changes.created:
        return False
    for table, key in {place[:2] for place in write.changes.values if len(place) > 2 and place[1] in identifiers}:
        rows = before.get(table)
        row = rows.get(key) if isinstance(rows, dict) else None
        if isinstance(row, dict) and any(_same(row.get(name), write.call.arguments[name]) for name in names):
            return True
    return False


def _is_at_odd_hour(call: GoldCall) -> bool:
    times = [match for _, _, value in iterate_leaves(call) if (match := _CLOCK_TIME.fullmatch(str(value)))]
    fields = {**(call.result if isinstance(call.result, dict) else {}), **call.arguments}
    names = [value for field, value in fields.items() if isinstance(value, str) and field.split("_")[-1] in _NAMES]
    hours = [_HOURS[word] for name in names for word in re.findall("[a-z]+", name.lower()) if word in _HOURS]
    return any(int(time[1]) not in allowed for time in times for allowed in hours)


def _settles(write: ExecutedWrite, before: ExecutedWrite) -> bool:
    """Return whether a call changes what an earlier one created and gives it no value: it closes or withdraws it."""
    created = {text for place in before.changes.created for text in (place[-1], *_list_new_ids(before, place))}
    about = {str(value) for path, _, value in iterate_leaves(write.call) if is_identifier(get_leaf_name(path))}
    if not created & about:
        return False
    values = {str(value) for path, _, value in iterate_leaves(write.call) if not is_identifier(get_leaf_name(path))}
    inside = [
        str(after)
        for place, (_, after) in write.changes.values.items()
        if created & set(place) and not isinstance(after, dict | list)
    ]
    return bool(inside) and not values & set(inside)


def _list_new_ids(before: ExecutedWrite, place: Place) -> list[str]:
    """Texts of an object that was appended to a list, by which a later call may name it."""
    _, after = before.changes.values[place]
    row = after[-1] if isinstance(after, list) else after
    return [str(value) for name, value in row.items() if is_identifier(name) and isinstance(value, str)]


def _list_identifiers(call: GoldCall) -> dict[str, JsonValue]:
    return {path: value for path, _, value in iterate_leaves(call) if is_identifier(get_leaf_name(path))}


def _list_choices(call: GoldCall) -> set[str]:
    """Texts of the identifiers that were chosen from a list; who the user is, is not chosen."""
    return {
        str(value)
        for path, source, value in iterate_leaves(call)
        if is_identifier(get_leaf_name(path)) and isinstance(source, FromOutput) and source.selectors
    }


def _same_entity(one: GoldCall, other: GoldCall) -> bool:
    return bool(_list_choices(one)) and _list_identifiers(one) == _list_identifiers(other)


def _are_opposite(one: str, other: str) -> bool:
    words, others = set(split_identifier(one)), set(split_identifier(other))
    different = words ^ others
    if any(f"un{word}" in different for word in different if len(word) > 2):
        return True
    return any(pair & words and pair & others and not pair & words & others for pair in _OPPOSITES)


def _adds_to_ended(write: ExecutedWrite, before: ExecutedWrite) -> bool:
    """Return whether a call makes something of a thing that an earlier one closed."""
    if not write.changes.created or before.changes.created or _ENDS.isdisjoint(split_identifier(before.call.tool)):
        return False
    return not {*map(str, _list_identifiers(before.call).values())}.isdisjoint(
        map(str, _list_identifiers(write.call).values())
    )


def _clashes(write: ExecutedWrite, before: ExecutedWrite, today: date) -> bool:
    """Return whether two calls make things that take place at one time; what is about one and the same thing may."""
    if not write.changes.created or not before.changes.created:
        return False
    one, other = _list_days(write.call, today), _list_days(before.call, today)
    if not one or not other or min(one) > max(other) or min(other) > max(one):
        return False
    created = {text for place in before.changes.created for text in (place[-1], *_list_new_ids(before, place))}
    mentioned = created | _list_choices(before.call)
    return mentioned.isdisjoint(str(value) for value in _list_identifiers(write.call).values())


def _list_days(call: GoldCall, today: date) -> list[date]:
    """Days to come that a call sets: of its arguments, and of its result where the arguments only name a thing."""
    values = [value for _, _, value in iterate_leaves(call)]
    days = _days_after(values, today)
    if not days and isinstance(call.result, dict):
        days = _days_after(list(call.result.values()), today)
    return days


def _days_after(values: Sequence[Any], today: date) -> list[date]:
    moments = [moment for value in values if (moment := parse_datetime(value)) is not None]
    days = [moment.date() if isinstance(moment, datetime) else moment for moment in moments]
    return [day for day in days if day > today]
