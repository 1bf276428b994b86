"""Paths of leaves in arguments: `items[0].sku` in a call, `items[*].sku` in a schema."""

from collections.abc import Mapping
from typing import Any

from trajsmith.records import JsonObject


def get_argument_name(path: str) -> str:
    """Return the argument that a leaf is in: `items` for `items[0].sku`."""
    return path.split(".", 1)[0].split("[", 1)[0]


def get_leaf_name(path: str) -> str:
    """Return the last name of a path: `sku` for `items[0].sku`, `tags` for `tags[0]`."""
    return path.split(".")[-1].split("[")[0]


def get_value_at(arguments: Mapping[str, Any], path: str) -> Any:
    """Return the value at the path of a call."""
    node: Any = arguments
    for part in _split_steps(path):
        node = node[part]
    return node


def replace_value_at(arguments: JsonObject, path: str, value: Any) -> JsonObject:
    """Return the arguments with another value at the path of a call; what is not on the way is shared."""
    replaced: JsonObject = _replace(arguments, _split_steps(path), value)
    return replaced


def _replace(node: Any, steps: list[str | int], value: Any) -> Any:
    if not steps:
        return value
    copy: Any = list(node) if isinstance(node, list) else dict(node)
    copy[steps[0]] = _replace(copy[steps[0]], steps[1:], value)
    return copy


def _split_steps(path: str) -> list[str | int]:
    return [int(part[1:-1]) if part.startswith("[") else part for part in path.replace("[", ".[").split(".")]


def build_arguments(leaves: Mapping[str, Any]) -> JsonObject:
    """Return nested arguments from leaf paths; `[*]` is the first row of a list."""
    arguments: JsonObject = {}
    for path, value in leaves.items():
        _place(arguments, path, value)
    return arguments


def _place(arguments: JsonObject, path: str, value: Any) -> None:
    node: Any = arguments
    parts = path.split(".")
    for part in parts[:-1]:
        name, _, index = part.removesuffix("]").partition("[")
        node = node.setdefault(name, [] if index else {})
        if index:
            number = 0 if index == "*" else int(index)
            node.extend({} for _ in range(len(node), number + 1))
            node = node[number]
    name, _, index = parts[-1].removesuffix("]").partition("[")
    node[name] = [value] if index else value
