"""Rows of a list among which a user could mean another: those on which the same action is possible."""

from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.grounding import find_values, get_value
from trajsmith.phrasing import ScenarioStep, parse_datetime
from trajsmith.records import FromOutput, GoldCall


def list_possible_rows(
    call: GoldCall, value: Any, source: FromOutput, rows: str, calls: Sequence[GoldCall], step: ScenarioStep | None
) -> list[Any]:
    """Return the rows of a list that a call could take its argument from as well as from the one that it takes.

    They have what the step's `where` asks for, and agree with the chosen row in its flags and in the texts that the
    call changes: a card that is unfrozen was frozen before, and a blocked one is none of them.

    Args:
        call: The call that takes the argument.
        value: The argument.
        source: Where it comes from.
        rows: Path of the list.
        calls: All gold calls.
        step: The scenario's step that the call is, if it is one.
    """
    lists = [match.value for match in find_values(calls[source.call].result, rows) if isinstance(match.value, list)]
    field = source.path.rpartition(".")[2]
    for listed in lists:
        chosen = next((row for row in listed if isinstance(row, Mapping) and row.get(field) == value), None)
        if chosen is not None:
            same = _list_conditions(chosen, call)
            where = step.where if step is not None else {}
            return [
                row
                for row in listed
                if all(row.get(name) == chosen[name] for name in same)
                and all(get_value(row, name) in (None, *allowed) for name, allowed in where.items())
            ]
    return max(lists, key=len, default=[])


def _list_conditions(row: Mapping[str, Any], call: GoldCall) -> list[str]:
    """Return the fields of a row that decide whether a call is possible: flags, and texts that the call changes."""
    after = call.result if call.effect == "write" and isinstance(call.result, Mapping) else {}
    return [
        name
        for name, value in row.items()
        if isinstance(value, bool)
        or (isinstance(value, str) and parse_datetime(value) is None and after.get(name, value) != value)
    ]
