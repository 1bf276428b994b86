"""Parameters whose descriptions name the tool that gives them: "the id, retrieved from `resolve-library-id`"."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from trajsmith.records import ToolSpec
from trajsmith.toolgraph.endpoints import Endpoint

_COMPOUND = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_\-.:/][A-Za-z0-9]+)+|[A-Za-z]?[a-z]+(?:[A-Z][A-Za-z0-9]*)+")
"""Names of several parts; a tool that is named by one plain word cannot be told from the word."""
_EXAMPLE_OF = re.compile(r"(?:\be\.g\.?,?|\bexample:?|\bsuch as|\blike|\bsame as)\s*[\"'`(]*$", re.IGNORECASE)
"""What stands before a name that is a value, or a comparison."""


def find_tool_mentions(tools: Sequence[ToolSpec], parameters: Sequence[Endpoint]) -> Any:
    """int64, sorted: row of a parameter times the number of tools, plus the row of a tool that its description names.

    Only other tools of the same server count.
    """
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    for row, tool in enumerate(tools):
        rows[tool.server][tool.name.lower()] = row
    named_tools = {
        place * len(tools) + named
        for place, end in enumerate(parameters)
        for name in _names(end.field.description)
        if (named := rows[tools[end.tool].server].get(name)) is not None and named != end.tool
    }
    return np.array(sorted(named_tools), np.int64)


def _names(description: str) -> list[str]:
    """Compound names in a text, in lower case."""
    return [
        match.group().lower()
        for match in _COMPOUND.finditer(description)
        if not _EXAMPLE_OF.search(description[: match.start()])
    ]
