"""Lists that a tool cut: what such a list does not show may be cheaper, newer or larger than all that it shows."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from trajsmith.grounding.names import is_paging, split_name
from trajsmith.grounding.paths import find_values, get_value
from trajsmith.records import ToolSpec

_BOUND = re.compile(
    r"\b(?:at most|up to|no more than|a maximum of|maximum of|max\.?|limited to|(?:the )?(?:first|latest|last|top))"
    r" (\d{1,4})\b",
    re.IGNORECASE,
)
_NO_ROWS = re.compile(
    r"\s*(?:days?|hours?|minutes?|weeks?|months?|years?|characters?|percent|%|£|\$|€|kb|mb|gb)\b", re.I
)
_MORE = ("has_more", "hasMore", "more", "truncated", "is_truncated", "incomplete_results")
_NEXT = ("next_page", "nextPage", "next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next", "cursor")
_TOTALS = ("total", "total_count", "totalCount", "total_results", "totalResults", "total_items", "count")


def is_list_cut(tool: ToolSpec | None, arguments: Mapping[str, Any], result: Any, path: str) -> bool:
    """Return whether a list in a result may be shorter than what there is.

    A list is cut where it has as many rows as a limit in the arguments, in their defaults or in the description allows
    ("at most 8"), and where the result says so: a next page, a flag, a total above the rows that are shown.

    Args:
        tool: The tool that gave the result; None if nobody knows it.
        arguments: Arguments of the call.
        result: What it returned.
        path: Path of the list in the result.
    """
    rows = next((match.value for match in find_values(result, path)), None)
    if not isinstance(rows, list) or not rows:
        return False
    return _says_more(result, path, len(rows)) or any(
        len(rows) >= bound for bound in _list_bounds(tool, arguments, path)
    )


def is_end_out_of_reach(tool: ToolSpec, arguments: Mapping[str, Any], result: Any) -> bool:
    """Return whether a result is a list that holds as many rows as its tool gives at most, with no way to read on."""
    return not any(is_paging(name) for name in tool.parameters) and is_list_cut(tool, arguments, result, "$.result")


def is_extreme_certain(tool: ToolSpec | None, values: list[Any], own: Any) -> bool:
    """Return whether a cut list still shows its extreme: the tool sorts by it, and it stands at the top.

    Args:
        values: The compared field of all rows, in the order of the list.
        own: The extreme.
    """
    if tool is None or not re.search(r"\b\w+ first\b", tool.description) or not values or values[0] != own:
        return False
    try:
        return values in (sorted(values), sorted(values, reverse=True))
    except TypeError:
        return False


def has_namesake(
    rows: Iterable[Mapping[str, Any]], row: Mapping[str, Any], field: str, arguments: Mapping[str, Any]
) -> bool:
    """Return whether two rows of a state are like one of a list, with the same value in a field.

    Args:
        rows: Rows of the state.
        row: The row that the list shows.
        field: The field.
        arguments: Those of the call: a list of the payments of one account cannot lack a payment of another.
    """
    value, names = row.get(field), {name for name, inner in row.items() if not isinstance(inner, dict | list)}

    def is_like(other: Mapping[str, Any]) -> bool:
        own = other.get(field)
        return (
            own == value
            and type(own) is type(value)
            and 2 * len(names & other.keys()) >= len(names)
            and all(other[name] == argument for name, argument in arguments.items() if name in other)
        )

    return value is not None and sum(map(is_like, rows)) > 1


def find_page_size(tool: ToolSpec) -> int | None:
    """Return the most rows of one page, as the description gives it; None if it does not."""
    return next(iter(_described_bounds(tool.description)), None)


def _list_bounds(tool: ToolSpec | None, arguments: Mapping[str, Any], path: str) -> list[int]:
    if tool is None:
        return [value for name, value in arguments.items() if is_paging(name) and _is_size(name, value)]
    bounds = [
        value
        for name, schema in tool.parameters.items()
        if is_paging(name) and _is_size(name, value := arguments.get(name, _default(schema)))
    ]
    nested = path.count("[*]") > 0 or path.count(".") > 1
    return bounds if nested else [*bounds, *_described_bounds(tool.description)]


def _default(schema: Any) -> Any:
    return schema.get("default") if isinstance(schema, dict) else None


def _is_size(name: str, value: Any) -> bool:
    """Return True for a number of rows, and not for the page or the row to start with."""
    starts = {"offset", "skip", "cursor", "token"} & set(split_name(name)) or split_name(name)[-1:] in (("page",),)
    return not (starts and split_name(name)[:1] != ("per",)) and isinstance(value, int) and not isinstance(value, bool)


@functools.lru_cache(maxsize=4096)
def _described_bounds(description: str) -> tuple[int, ...]:
    """Numbers of rows that a description gives as the most, in its first sentences."""
    return tuple(
        int(match.group(1))
        for match in _BOUND.finditer(description.split("Args:")[0])
        if int(match.group(1)) > 1 and not _NO_ROWS.match(description, match.end())
    )


def _says_more(result: Any, path: str, shown: int) -> bool:
    """Return whether the object around the list says that there is more."""
    around = get_value(result, path.rpartition(".")[0]) if path.count(".") > 1 else result
    for level in (result, around):
        if not isinstance(level, dict):
            continue
        if any(level.get(name) is True for name in _MORE) or any(level.get(name) for name in _NEXT):
            return True
        totals = [level[name] for name in _TOTALS if isinstance(level.get(name), int)]
        if any(not isinstance(total, bool) and total > shown for total in totals):
            return True
    return False
