"""Following `$ref` inside one document."""

from typing import Any
from urllib.parse import unquote

from trajsmith.records import InputError, JsonObject, JsonValue

_DEPTH = 50
"""References to references that are followed."""


class UnsupportedFeature(Exception):
    """Part of the document that is unsupported; becomes a note of the program."""


class OpenApiDocument:
    """Parsed OpenAPI document."""

    def __init__(self, root: JsonObject, file: str) -> None:
        self.root = root
        self.file = file
        self.modern = str(root.get("openapi")).startswith("3.1")
        """True for 3.1, whose schemas are JSON Schema as it stands."""
        _check_references(root, file)

    def target(self, reference: str) -> JsonValue:
        """Return the node that a local reference points at.

        Raises:
            LeftOut: Nothing is there.
        """
        node: Any = self.root
        for part in unquote(reference.removeprefix("#")).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            else:
                raise UnsupportedFeature(f"$ref {reference!r} leads nowhere")
        return node

    def follow(self, node: JsonValue) -> JsonObject:
        """Return an object of the document with references followed.

        Raises:
            LeftOut: The references lead nowhere or in a circle, or to something that is no object.
        """
        for _ in range(_DEPTH):
            if not isinstance(node, dict):
                raise UnsupportedFeature(f"an object was expected, there is {type(node).__name__}")
            if not isinstance(node.get("$ref"), str):
                return node
            node = self.target(node["$ref"])
        raise UnsupportedFeature("a $ref leads in a circle")


def _check_references(root: JsonObject, file: str) -> None:
    """Everything has to be in this one file: nothing is fetched.

    Raises:
        InputError: A reference leads out of the document.
    """
    pending: list[tuple[JsonValue, bool]] = [(root["paths"], True), (root.get("components"), False)]
    while pending:
        node, named = pending.pop()
        if isinstance(node, list):
            pending.extend((child, False) for child in node)
        elif isinstance(node, dict):
            reference = None if named else node.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                raise InputError(
                    f"{file}: $ref {reference!r} leads out of the document, and nothing is fetched; "
                    "bundle the document into one file first (for example with `redocly bundle`)"
                )
            pending.extend(
                (child, key in ("properties", "schemas") and not named)
                for key, child in node.items()
                if named or not (key in ("example", "examples", "default", "enum", "const") or key.startswith("x-"))
            )
