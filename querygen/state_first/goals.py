"""Goals: a change that is asked for on one state, and the condition that a final state must meet."""

import random
from collections.abc import Sequence, Set
from datetime import date
from typing import Any

from trajsmith.phrasing.value_formatting import parse_datetime, shift_date
from trajsmith.querygen.state_first.edits import StateEdit
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


def draw_goal(edits: Sequence[StateEdit], state: JsonObject, rng: random.Random) -> StateGoal | None:
    """Draw a goal that the state does not meet yet; None if no edit fits it.

    Args:
        edits: What the environment allows, as learnt on another state.
        state: The state on which the goal is asked for.
        rng: Decides.
    """
    for edit in rng.sample(edits, len(edits)):
        fields = {name: _shift_date(value, edit.learnt_on, state) for name, value in edit.fields.items()}
        rows: Any = state.get(edit.table, {})
        linked: set[str] = set()
        for field, table in edit.references.items():
            keys = list_linked_keys(state, table, linked)
            if not keys:
                break
            chosen = rng.choice(keys)
            fields[field] = chosen
            linked |= _list_links(state, table, chosen)
        else:
            if not isinstance(rows, dict):
                continue
            if edit.kind == "added":
                return StateGoal(table=edit.table, fields=fields)
            open_rows = [
                key for key, row in sorted(rows.items())
                if isinstance(row, dict) and fields.keys() <= row.keys()
                and any(row[name] != value for name, value in fields.items())
            ]  # fmt: skip
            if open_rows:
                return StateGoal(table=edit.table, key=rng.choice(open_rows), fields=fields)
    return None


def list_linked_keys(state: JsonObject, table: str, linked: Set[str]) -> list[str]:
    """List the rows of a table that belong to what was chosen before; all rows if none does.

    Args:
        state: The state.
        table: Name of the table.
        linked: Keys of the rows that were chosen, and of those that they refer to.
    """
    rows: Any = state.get(table)
    keys = sorted(rows) if isinstance(rows, dict) else []
    close = [key for key in keys if _list_links(state, table, key) & linked]
    return close or keys


def _list_links(state: JsonObject, table: str, key: str) -> set[str]:
    """Return the key of a row and the texts in it that are keys of rows."""
    rows: Any = state.get(table)
    row: Any = rows.get(key)
    values = [value for value in row.values() if isinstance(value, str)] if isinstance(row, dict) else []
    tables = [part for part in state.values() if isinstance(part, dict)]
    return {key, *(value for value in values if any(value in part for part in tables))}


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
