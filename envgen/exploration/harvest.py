"""Values that a server gave: what later calls refer to."""

import re
from collections.abc import Iterator
from typing import Any

from trajsmith.grounding import SchemaField, get_tool_noun, is_identifier, split_name
from trajsmith.records import JsonValue, ToolSpec

_IN_TEXT = re.compile(
    r"(?i)\b(?P<name>[a-z]+[ _]?id|id|uuid|number|no|slug|key|name|title)\b[\"'`*]{0,3}\s{0,2}[:=#]\s{0,2}[\"'`*]{0,3}"
    r"(?P<value>[\w-]{1,64})"
)
_MOST_VALUES = 400
_WRAPPERS = frozenset({"result", "results", "data", "items", "rows", "content", "structured"})
_LONGEST = 200


class Harvest:
    """Values by the words of their names, with the words of what they belong to."""

    def __init__(self) -> None:
        self._values: list[tuple[tuple[str, ...], tuple[str, ...], Any]] = []

    def add(self, tool: str, content: JsonValue) -> None:
        """Take in a result, or the arguments of a call that was made."""
        noun = get_tool_noun(tool)
        if isinstance(content, str):
            for match in _IN_TEXT.finditer(content[:20_000]):
                self._keep(split_name(match["name"].replace(" ", "_")), noun, match["value"])
            return
        for name, context, value in _walk(content, "", noun, 0):
            self._keep(split_name(name), context, value)

    def _keep(self, name: tuple[str, ...], context: tuple[str, ...], value: Any) -> None:
        entry = (name, context, value)
        if name and len(self._values) < _MOST_VALUES and not any(_is_same(entry, other) for other in self._values):
            self._values.append(entry)

    def find(self, tool: ToolSpec, field: SchemaField) -> list[Any]:
        """Return the values that may be meant by a parameter, the likeliest first."""
        words = split_name(field.name)
        noun = set(get_tool_noun(tool.name))
        wanted = set(words) - {"id", "uuid", "key", "ref", "number", "name", "slug", "code"}
        scored: list[tuple[float, int, Any]] = []
        for place, (name, context, value) in enumerate(self._values):
            score = 0.0
            near = bool(set(context) & (wanted or noun))
            if name == words:
                score = 3.0 if near or wanted & set(name) else 2.0
            elif name[-1] == words[-1] and (near or not wanted):
                score = 2.5 if near else 0.5
            elif words[-1] == "id" and name == words[:-1]:
                score = 1.5
            elif is_identifier(field.name) and is_identifier("_".join(name)) and near:
                score = 1.2
            elif words[-1] in ("number", "index") and name[-1] in ("id", "number", "no", "index") and near:
                score = 1.1
            elif len(words) > 1 and words[-1] in ("name", "title") and name[-1] in ("name", "title") and near:
                score = 1.0
            if score >= 1.0:
                scored.append((-score, place, value))
        return [value for _, _, value in sorted(scored, key=lambda entry: entry[:2])]

    def list_texts(self) -> list[str]:
        """Return the texts that are no identifiers."""
        return [
            value for name, _, value in self._values if isinstance(value, str) and not is_identifier("_".join(name))
        ]


def _is_same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return bool(one == other and type(one[2]) is type(other[2]))


def _walk(
    node: JsonValue, name: str, context: tuple[str, ...], depth: int
) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    if depth > 6:
        return
    if isinstance(node, dict):
        inner = split_name(name) if name and name.lower() not in _WRAPPERS else context
        for key, value in node.items():
            yield from _walk(value, key, inner, depth + 1)
    elif isinstance(node, list):
        for value in node[:50]:
            yield from _walk(value, name, context, depth + 1)
    elif node not in (None, "") and not isinstance(node, bool) and len(str(node)) <= _LONGEST and name:
        yield name, context, node
