"""The leaves of real values, with the paths that schemas give them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from trajsmith.grounding import list_input_fields, split_name, unwrap
from trajsmith.records import JsonObject, ToolSpec

MAX_LEAVES = 20_000
"""Leaves of one value that are looked at."""
MAX_TEXT = 400
"""Longest text that counts as a value."""
STOP_WORDS = frozenset({
    "the", "and", "for", "yes", "not", "none", "null", "true", "false", "all", "any", "now", "new", "success", "error",
    "ok", "done", "failed", "unknown", "active", "open", "closed", "pending",
})  # fmt: skip
_TOKEN = re.compile(r"[A-Za-z0-9_#\-]{3,}")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value inside a result or an argument."""

    path: str
    """As in schemas: `$.orders[*].id` in results, `items[*].sku` in arguments; keys of a map are `$.users{}`."""
    name: str
    """The last name on the path."""
    value: Any


def walk_leaves(value: Any, schema: JsonObject | None, root: str = "$", keys: bool = False) -> Iterator[Leaf]:
    """Scalars below a value, null and empty text left out.

    Args:
        value: A result or arguments.
        schema: Its schema; what it does not declare, and reads like data, is a key of a map and becomes `*`.
        root: "$" for results, "" for arguments; a parameter that takes a list of scalars is one leaf, as its field is.
        keys: Also give the keys of maps, as values.
    """
    leaves = islice(_walk(value, schema or {}, schema or {}, root, "", keys), MAX_LEAVES)
    return leaves if root else (replace(leaf, path=leaf.path.removesuffix("[*]")) for leaf in leaves)


def _walk(node: Any, schema: JsonObject, root: JsonObject, path: str, name: str, keys: bool) -> Iterator[Leaf]:
    schema = unwrap(schema, root)
    if isinstance(node, dict):
        declared = schema.get("properties")
        declared = declared if isinstance(declared, dict) else {}
        rest = schema.get("additionalProperties")
        for key, child in node.items():
            if key in declared or not is_map_key(key, declared, rest):
                below = f"{path}.{key}" if path else key
                yield from _walk(child, declared.get(key) or {}, root, below, key, keys)
            else:
                if keys:
                    yield Leaf(f"{path}{{}}", name, key)
                inner = rest if isinstance(rest, dict) else {}
                yield from _walk(child, inner, root, f"{path}.*" if path else "*", name, keys)
    elif isinstance(node, list):
        items = schema.get("items")
        for child in node:
            yield from _walk(child, items if isinstance(items, dict) else {}, root, f"{path}[*]", name, keys)
    elif node is not None and node != "":
        yield Leaf(path, name, node)


def is_map_key(key: str, declared: Mapping[str, Any], rest: Any) -> bool:
    """Return True if an undeclared key is data rather than a field name."""
    return isinstance(rest, dict) or (not declared and any(letter.isdigit() for letter in key))


def canonicalize_value(value: Any) -> str | None:
    """A form in which equal values are equal, numbers with their texts; None for what is no value to pass on."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    text = str(value).strip()
    return text if 0 < len(text) <= MAX_TEXT else None


def is_id_like(text: str) -> bool:
    """True for values that systems give out: letters with digits or underscores between, or long numbers."""
    if " " in text:
        return False
    digits = sum(letter.isdigit() for letter in text)
    return (0 < digits < len(text) and len(text) >= 3 and any(letter.isalpha() for letter in text)) or (
        digits == len(text) and digits >= 4
    )


def is_specific_match(text: str, output_name: str, parameter_name: str) -> bool:
    """Return True if the same value on both sides is hardly chance.

    Args:
        text: The value, as `same` gives it.
        given: Name of the output field.
        taken: Name of the parameter.
    """
    try:
        small = abs(float(text)) < 100
    except ValueError:
        return len(text) >= 3 and text.lower() not in STOP_WORDS
    return not small or bool(set(split_name(output_name)) & set(split_name(parameter_name)))


def extract_id_tokens(text: str) -> set[str]:
    """Id-like words of a text, without a plural or sentence mark around them."""
    return {token for token in _TOKEN.findall(text) if is_id_like(token)}


def contains_value(text: str, value: str) -> bool:
    """Return True if a text contains a value, ignoring case; numbers and short values only as whole words."""
    haystack, value = text.lower(), value.lower()
    if len(value) >= 5 and not value.isdigit():
        return value in haystack
    return re.search(rf"(?<![\w.]){re.escape(value)}(?![\w])", haystack) is not None


def list_enumerated_values(tool: ToolSpec) -> dict[str, frozenset[str]]:
    """Leaf path to the values that its schema lists; booleans have no values to pass on."""
    return {
        leaf.path: frozenset(map(str, leaf.schema.get("enum") or [leaf.schema.get("const")]))
        for leaf in list_input_fields(tool)
        if leaf.is_choice
    }
