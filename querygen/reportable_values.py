"""Values of a result that an answer reports where no phrases say which ones matter."""

from typing import Any

from trajsmith.grounding import is_identifier


def pick_reportable_values(result: Any) -> list[Any]:
    """Return the first short texts and numbers of a result that are no identifiers; of a text, its first line."""
    if isinstance(result, str):
        line = next((line.strip() for line in result.splitlines() if line.strip()), "")
        return [line] if 0 < len(line) <= 80 else []
    rows = [result]
    while len(rows) == 1 and isinstance(rows[0], dict) and len(rows[0]) == 1:
        inner = next(iter(rows[0].values()))
        rows = inner if isinstance(inner, list) else [inner]
    reportable: list[Any] = []
    for row in rows[:4]:
        if isinstance(row, dict):
            values = [value for key, value in row.items() if not is_identifier(key) and _is_short(value)]
            reportable += values[: 2 if len(rows) == 1 else 1]
        elif _is_short(row):
            reportable.append(row)
    return reportable


def _is_short(value: Any) -> bool:
    return (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and 0 < len(str(value)) <= 60
        and "\n" not in str(value)
    )
