"""Schemas as models should see them."""

from typing import Any

import pytest

from trajsmith.environments.schemas import tidy_schema

TREE = {
    "$defs": {"Node": {"title": "Node", "type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    "$ref": "#/$defs/Node",
}


@pytest.mark.parametrize(
    ("schema", "tidied"),
    [
        pytest.param({"title": "A", "type": "string"}, {"type": "string"}, id="generated-title"),
        pytest.param(
            {"properties": {"title": {"title": "Title", "type": "string"}}},
            {"properties": {"title": {"type": "string"}}},
            id="property-called-title",
        ),
        pytest.param(
            {"properties": {"properties": {"properties": {"title": {"type": "string"}}}}},
            {"properties": {"properties": {"properties": {"title": {"type": "string"}}}}},
            id="property-called-properties",
        ),
        pytest.param(
            {"$defs": {"A": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/A", "description": "x"}}},
            {"properties": {"a": {"type": "string", "description": "x"}}},
            id="reference-with-a-description",
        ),
        pytest.param(
            {"$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"type": "integer"}}, "$ref": "#/$defs/A"},
            {"items": {"type": "integer"}},
            id="reference-in-a-reference",
        ),
        pytest.param(
            TREE,
            {
                "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
                "$ref": "#/$defs/Node",
            },
            id="recursive-schemas-keep-their-definitions",
        ),
        pytest.param(
            {"default": {"title": "Untitled"}, "examples": [{"title": "One"}]},
            {"default": {"title": "Untitled"}, "examples": [{"title": "One"}]},
            id="titles-in-data",
        ),
        pytest.param(
            {"const": {"title": "x"}, "enum": [{"title": "y"}]},
            {"const": {"title": "x"}, "enum": [{"title": "y"}]},
            id="titles-in-choices",
        ),
    ],
)
def test_tidy(schema: dict[str, Any], tidied: dict[str, Any]) -> None:
    assert tidy_schema(schema) == tidied
