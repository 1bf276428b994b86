"""Goals: a change that is asked for on one state, and the condition that a final state must meet."""

import random
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from trajsmith.phrasing import parse_datetime, shift_date
from trajsmith.querygen.state_first.edits import StateEdit
from trajsmith.querygen.state_first.row_links import Row, RowLinks
from trajsmith.records import FrozenModel, JsonObject, JsonValue


class StateGoal(FrozenModel):
    """Condition on the final state; which calls lead there is not known."""

    table: str
    key: str = ""
    """Row that is meant; empty for a row that is not there yet."""
    fields: dict[str, JsonValue]
    """Field to the value that it must have."""

    def holds(self, initial: JsonObject, state: JsonObject) -> bool:
        """Return True if a state meets the condition."""
        rows: Any = state.get(self.table)
        if not isinstance(rows, dict):
            return False
        old: Any = initial.get(self.table)
        candidates = [rows.get(self.key)] if self.key else [row for key, row in rows.items() if key not in (old or {})]
        return any(
            isinstance(row, dict) and all(row.get(name) == value for name, value in self.fields.items())
            for row in candidates
        )


def draw_goal(edits: Sequence[StateEdit], links: RowLinks, rng: random.Random) -> StateGoal | None:
    """Draw a goal that the state does not meet yet; None if no edit fits it.

    Args:
        edits: What the environment allows, as learnt on another state.
        links: The state on which the goal is asked for.
        rng: Decides.
    """
    for edit in rng.sample(edits, len(edits)):
        fields = {name: _shift_date(value, edit.learnt_on, links.state) for name, value in edit.fields.items()}
        chosen: list[Row] = []
        for field, table in edit.references.items():
            rows = list_linked_rows(links, table, chosen)
            if not rows:
                break
            chosen.append(rng.choice(rows))
            fields[field] = chosen[-1][1]
        else:
            if edit.kind == "added":
                return StateGoal(table=edit.table, fields=fields)
            keys = list_open_keys(edit, fields, links)
            if keys:
                return StateGoal(table=edit.table, key=rng.choice(keys), fields=fields)
    return None


def list_open_keys(edit: StateEdit, fields: Mapping[str, JsonValue], links: RowLinks) -> list[str]:
    """List the rows that an edit may change: the user's if the state names one, in a state as that of the edit.

    Args:
        edit: The kind of change.
        fields: Values that the row is to have, of which one at least is new.
        links: The state.
    """
    rows: Any = links.state.get(edit.table, {})
    keys = [
        key for key, row in sorted(rows.items() if isinstance(rows, dict) else ())
        if isinstance(row, dict) and fields.keys() <= row.keys()
        and any(row[name] != value for name, value in fields.items())
        and all(row.get(name) == value for name, value in edit.before.items())
    ]  # fmt: skip
    return [key for key in keys if (edit.table, key) in links.own] or keys


def list_linked_rows(links: RowLinks, table: str, chosen: Sequence[Row]) -> list[Row]:
    """List the rows of a table that belong to what was chosen before, else to the user; all rows if none does.

    Args:
        links: The state.
        table: Name of the table.
        chosen: Rows that were chosen.
    """
    keys: Any = links.state.get(table)
    rows = [(table, key) for key in sorted(keys)] if isinstance(keys, dict) else []
    linked = {other for row in chosen for other in (row, *links.list_targets(row))}
    close = [row for row in rows if row in linked or not linked.isdisjoint(links.list_targets(row))]
    return close or [row for row in rows if row in links.own] or rows


def _shift_date(value: JsonValue, learnt_on: str, state: JsonObject) -> JsonValue:
    """Return a date as many days from the clock of this state as it was from the clock of the other.

    Dates that stand for "never", such as 9999-12-31, stay where there is no such day.
    """
    moment, old, now = (parse_datetime(each) for each in (value, learnt_on, state.get("now")))
    if not isinstance(value, str) or moment is None or old is None or now is None:
        return value
    days = (date(now.year, now.month, now.day) - date(old.year, old.month, old.day)).days
    shifted = shift_date(moment, days)
    return value if shifted is None else shifted.isoformat()
