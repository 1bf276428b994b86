"""Convert names of sources to Python identifiers that are no keywords and shadow nothing."""

import builtins
import keyword
import re
from collections.abc import Container

from trajsmith.phrasing import singularize, to_snake_case
from trajsmith.records import content_hash

_LENGTH = 60
_TAKEN = frozenset({
    "self", "now", "seed", "counters", "state", "limit", "query", "model_config", "schema", "copy", "json", "record",
    "changed", "given", "found", "one", "rng", "place", "wanted", "validate", "construct", "dict_value", "str", "int",
    "float", "bool", "list", "dict", "date", "datetime", "random", "any", "all", "tool",
})  # fmt: skip
"""Names that generated code uses itself, or that Pydantic does."""


def to_identifier(text: str, fallback: str = "field", taken: Container[str] = ()) -> str:
    """Return a name for a field, an argument or a table, different from those in use."""
    name = to_snake_case(text)
    name = re.sub(r"[^a-z0-9_]", "_", name).strip("_")
    if not name and text:
        name = f"{fallback}_{content_hash(text, 4)}"
    name = name or fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"
    name = name[:_LENGTH].rstrip("_")
    if keyword.iskeyword(name) or name in _TAKEN or name.startswith("model_"):
        name += "_value"
    wished, number = name, 1
    while name in taken:
        number += 1
        name = f"{wished}_{number}"
    return name


def to_class_name(noun: str) -> str:
    """Return a class name for a noun in snake case."""
    name = "".join(part.capitalize() for part in noun.split("_") if part)
    clash = keyword.iskeyword(name) or name in vars(builtins) or name in _MODULE_NAMES
    return f"{name}Record" if clash else name


def to_words(name: str) -> str:
    """Return a snake-case name as separate words."""
    return name.replace("_", " ")


def to_plain_words(text: str) -> str:
    """Return a text of a source that can stand inside a quoted text of the code."""
    return " ".join(re.sub(r"[\"'{}\\\\]", " ", to_words(text)).split())


def quote_text(text: str) -> str:
    """Return a text of a source, on one line, that can stand between triple quotation marks."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.replace("\\", "/").replace('"', "'").split())


def to_noun(text: str) -> str:
    """Return the singular of a table's name, as an identifier."""
    return to_identifier(singularize(to_snake_case(text)), "item")


_MODULE_NAMES = frozenset(
    ["Annotated", "Any", "Environment", "EnvironmentState", "Field", "Literal", "StateModel", "ToolError"]
)
