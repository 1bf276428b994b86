"""Schemas as models should see them."""

import json
from typing import Any

import pytest

from trajsmith.environments.arguments import validate_schema
from trajsmith.environments.schema_patterns import compile_schema
from trajsmith.environments.schemas import tidy_schema, wrap_schema
from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.records import InputError, JsonObject, JsonValue, ToolSpec
from trajsmith.records.tool_rendering import compact_schema
from trajsmith.toolgraph import build_graph

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


DOUBLED = {"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": {
    **{f"D{n}": {"type": "object", "properties": {
        "a": {"$ref": f"#/$defs/D{n + 1}"}, "b": {"$ref": f"#/$defs/D{n + 1}"}}} for n in range(26)},
    "D26": {"type": "string"}}}  # fmt: skip


def test_definitions_that_multiply_stay_definitions() -> None:
    tidied = validate_schema(DOUBLED, "x")
    assert tidied == DOUBLED
    tool = ToolSpec(server="s", name="t", inputSchema=DOUBLED, outputSchema=DOUBLED)
    assert len(list_input_fields(tool)) < 1000 and len(list_output_fields(tool)) < 1000
    assert build_graph([tool]).tools
    assert compact_schema(DOUBLED)["$defs"].keys() == DOUBLED["$defs"].keys()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"$ref": "#"}, "'#' leads back to itself"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
         "leads back to itself"),
        ({"$defs": {"A": {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/A"}]}]}},
          "properties": {"x": {"$ref": "#/$defs/A"}}}, "'#/$defs/A' leads back to itself"),
        ({"properties": {"x": {"not": {"$ref": "#/properties/x"}}}}, "'#/properties/x' leads back to itself"),
        (json.loads('{"properties":{"x":' * 60 + "{}" + "}}" * 60), "nested deeper than 100 levels"),
        (json.loads('{"allOf":[' * 450 + "{}" + "]}" * 450), "nested deeper than 100 levels"),
    ],
    ids=["itself", "two", "inside any of", "not", "deep", "very deep"],
)  # fmt: skip
def test_schemas_that_never_end_are_refused(schema: Any, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        validate_schema(schema, "the input schema")
    assert said in str(refusal.value)


def test_recursive_schemas_that_go_into_the_value_are_kept() -> None:
    schema = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
    assert validate_schema(schema, "x") == schema
    assert compile_schema(schema).is_valid({"next": {"next": None}})
    assert not compile_schema(schema).is_valid({"next": {"next": 5}})


@pytest.mark.parametrize("right", [True, False])
def test_a_wrapped_schema_that_refers_to_itself_is_checked(right: bool) -> None:
    wrapped = wrap_schema(tidy_schema({"type": "array", "items": {"$ref": "#/$defs/Node"}, "$defs": TREE["$defs"]}))
    assert compile_schema(wrapped).is_valid({"result": [{"next": {"next": {} if right else 5}}]}) is right


@pytest.mark.parametrize(
    ("schema", "valid", "not_valid"),
    [
        ({"$defs": {"": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/"}}}, "x", 1),
        ({"$defs": {"": {}}, "properties": {"a": {"type": "string"}}}, "x", 1),
        ({"$defs": {"A": True, "B": False}, "properties": {"a": {"$ref": "#/$defs/A"}}}, 1, None),
        ({"$defs": {"B": False}, "properties": {"a": {"$ref": "#/$defs/B"}}}, None, 1),
        (
            {
                "$defs": {"A": {"b": {"type": "string"}}, "A/b": {"items": {"$ref": "#/$defs/A/b"}}},
                "properties": {"a": {"$ref": "#/$defs/A/b"}},
            },
            "x",
            1,
        ),
        (
            {
                "$defs": {"A": {"properties": {"b": {"type": "string"}}}},
                "properties": {"a": {"$ref": "#/$defs/A/properties/b"}},
            },
            "x",
            1,
        ),
    ],
    ids=["no name", "no name, no reference", "true", "false", "slash", "into a definition"],
)
def test_definitions_of_any_name_are_tidied(schema: JsonObject, valid: JsonValue, not_valid: JsonValue) -> None:
    validator = compile_schema(validate_schema(schema, "tool t"))
    assert valid is None or validator.is_valid({"a": valid})
    assert not_valid is None or not validator.is_valid({"a": not_valid})
