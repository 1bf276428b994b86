"""What results of a dialogue have shown of a thing, and of those beside it."""

from collections.abc import Sequence
from typing import Any

from trajsmith.grounding import find_values
from trajsmith.phrasing import iterate_rows
from trajsmith.records import FromOutput, GoldCall


def find_shown_before(calls: Sequence[GoldCall], shown: Sequence[Any], call: GoldCall) -> Any:
    """Return what was last shown of what a call shows; None where nothing was.

    Args:
        calls: The calls before it.
        shown: The results of the dialogue so far, by the numbers of their calls.
        call: A read, of which the last result with the same arguments counts, or a write, of which all results count
            that show the thing which it changes.
    """
    earlier = list(zip(calls, shown, strict=False))
    if call.effect != "write":
        again = [content for one, content in earlier if (one.tool, one.arguments) == (call.tool, call.arguments)]
        return again[-1] if again else None
    fields: dict[str, Any] = {}
    for name in (name for name, source in call.provenance.items() if isinstance(source, FromOutput)):
        for row in (row for _, content in earlier for row in iterate_rows(content)):
            if row.get(name) == call.arguments[name]:
                fields.update(row)
    return fields or None


def list_other_rows(shown: Sequence[Any], call: GoldCall) -> list[dict[str, Any]]:
    """Return the rows beside the thing of a call, of the list that it was chosen from, as they are now.

    Args:
        shown: The results of the dialogue so far, by the numbers of their calls.
        call: The call.
    """
    for name, source in call.provenance.items():
        if not isinstance(source, FromOutput) or source.call >= len(shown):
            continue
        matches = find_values(shown[source.call], source.path)
        rows = (match.levels[-1].row for match in matches if match.levels)
        others = [row for row in rows if isinstance(row, dict) and row.get(name) != call.arguments[name]]
        later = [row for content in shown[source.call + 1 :] for row in iterate_rows(content)]
        if others:
            return [_update(row, [one for one in later if one.get(name) == row.get(name)]) for row in others]
    return []


def _update(row: dict[str, Any], later: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {field: [value, *(one[field] for one in later if field in one)][-1] for field, value in row.items()}
