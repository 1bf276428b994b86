"""Paths into results: `$.orders[*].lines[*].sku`. The small part of JSONPath that schemas need."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ListLevel:
    """One list on the way to a value: its path, its rows, and which row was taken."""

    path: str
    rows: list[Any]
    index: int

    @property
    def row(self) -> Any:
        return self.rows[self.index]


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A value found at a path, and the lists it was found through, outermost first."""

    value: Any
    levels: tuple[ListLevel, ...]


@functools.lru_cache(maxsize=4096)
def split_path(path: str) -> tuple[str, ...]:
    """`$.a[*].b` as ("a", "*", "b"); the leading `$` may be missing."""
    body = path.removeprefix("$").replace("[*]", ".*").lstrip(".")
    return tuple(part for part in body.split(".") if part)


def find_values(document: Any, path: str) -> Iterator[PathMatch]:
    """All values at a path, in document order; parts that do not exist give nothing."""
    return _find(document, split_path(path), 0, ())


def _find(node: Any, parts: tuple[str, ...], depth: int, levels: tuple[ListLevel, ...]) -> Iterator[PathMatch]:
    if depth == len(parts):
        yield PathMatch(node, levels)
        return
    part = parts[depth]
    if part == "*":
        if isinstance(node, list):
            where = join_path(parts[:depth])
            for index, row in enumerate(node):
                yield from _find(row, parts, depth + 1, (*levels, ListLevel(where, node, index)))
    elif isinstance(node, dict) and part in node:
        yield from _find(node[part], parts, depth + 1, levels)


def iterate_nodes(
    document: Any, rows: int | None = None, deepest: int | None = None, parts: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (parts of the path, value) of everything in a document, the outer before the inner.

    Args:
        document: Plain JSON data; names that no path can hold are left out.
        rows: Items of each list at most.
        deepest: Parts of a path at most.
        parts: Where the document stands in a larger one.
    """
    if deepest is not None and len(parts) > deepest:
        return
    yield parts, document
    if isinstance(document, dict):
        for name, child in document.items():
            if split_path(name) == (name,):
                yield from iterate_nodes(child, rows, deepest, (*parts, name))
    elif isinstance(document, list):
        for child in document[:rows]:
            yield from iterate_nodes(child, rows, deepest, (*parts, "*"))


def iterate_named_values(document: Any, rows: int, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (nearest name, value) of all scalars but null; `rows` bounds the items of each list."""
    if isinstance(document, dict):
        for key, child in document.items():
            yield from iterate_named_values(child, rows, key)
    elif isinstance(document, list):
        for child in document[:rows]:
            yield from iterate_named_values(child, rows, name)
    elif document is not None:
        yield name, document


def join_path(parts: tuple[str, ...]) -> str:
    """Inverse of `split`."""
    return "$" + "".join("[*]" if part == "*" else f".{part}" for part in parts)


def get_value(row: Any, path: str) -> Any:
    """A value inside a row by a dotted path; None if there is none."""
    for part in split_path(path):
        if not isinstance(row, dict) or part not in row:
            return None
        row = row[part]
    return row
