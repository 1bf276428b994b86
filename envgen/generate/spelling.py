"""Names in sources as names in Python: identifiers that are no keywords and hide nothing."""

import builtins
import keyword
import re
from collections.abc import Container

from environments.openapi.words import singular, snake
from trajectory import content_hash

_LENGTH = 60
_TAKEN = frozenset(
    [
        "self",
        "now",
        "seed",
        "counters",
        "state",
        "limit",
        "query",
        "model_config",
        "schema",
        "copy",
        "json",
        "record",
        "changed",
        "given",
        "found",
        "one",
        "rng",
        "place",
        "wanted",
        "validate",
        "construct",
        "dict_value",
    ]
)
"""Names that generated code uses itself, or that Pydantic does."""


def identifier(text: str, fallback: str = "field", taken: Container[str] = ()) -> str:
    """A name for a field, an argument or a table, different from those taken."""
    name = snake(text)
    name = re.sub(r"[^a-z0-9_]", "_", name).strip("_")
    if not name and text:
        name = f"{fallback}_{content_hash(text, 4)}"
    name = name or fallback
    if name[0].isdigit():
        name = f"{fallback}_{name}"
    name = name[:_LENGTH].rstrip("_")
    if keyword.iskeyword(name) or name in _TAKEN or name.startswith("model_") or _hides(name):
        name += "_value"
    wished, number = name, 1
    while name in taken:
        number += 1
        name = f"{wished}_{number}"
    return name


def class_name(noun: str) -> str:
    """A class for a noun in snake case."""
    name = "".join(part.capitalize() for part in noun.split("_") if part)
    clash = keyword.iskeyword(name) or name in vars(builtins) or name in _MODULE_NAMES
    return f"{name}Record" if clash else name


def words(name: str) -> str:
    """A name in snake case as words."""
    return name.replace("_", " ")


def plain_words(text: str) -> str:
    """A text of a source that can stand inside a quoted text of the code."""
    return " ".join(re.sub(r"[\"'{}\\\\]", " ", words(text)).split())


def quoted(text: str) -> str:
    """A text of a source, in one line, that can stand between three quotation marks."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.replace("\\", "/").replace('"', "'").split())


def noun_of(text: str) -> str:
    """The singular of a table's name, as an identifier."""
    return identifier(singular(snake(text)), "item")


def _hides(name: str) -> bool:
    """True for names that generated code itself uses."""
    return name in ("str", "int", "float", "bool", "list", "dict", "date", "datetime", "random", "any", "all", "tool")


_MODULE_NAMES = frozenset(
    ["Annotated", "Any", "Environment", "EnvironmentState", "Field", "Literal", "StateModel", "ToolError"]
)
