"""The parts that documents are read with: words, patterns, values, where records are."""

import random
import re
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument
from trajsmith.environments.adapters.openapi.naming import find_outcomes, to_singular, to_snake_case, with_article
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.value_generation import ValueContext, ValueGenerator
from trajsmith.environments.pattern_text import generate_matching_text


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("listUsers", "list_users"),
        ("customerID", "customer_id"),
        ("HTTPServer", "http_server"),
        ("pets.list!", "pets_list"),
    ],
)
def test_snake(name: str, made: str) -> None:
    assert to_snake_case(name) == made


@pytest.mark.parametrize(
    ("many", "one"),
    [("orders", "order"), ("categories", "category"), ("addresses", "address"), ("boxes", "box"), ("status", "status"),
     ("order_items", "order_item"), ("people", "person"), ("movies", "movie"), ("analysis", "analysis")],
)  # fmt: skip
def test_singular(many: str, one: str) -> None:
    assert to_singular(many) == one


@pytest.mark.parametrize(
    ("verb", "made"),
    [("cancel", "canceled"), ("ship", "shipped"), ("pay", "paid"), ("apply", "applied"), ("close", "closed"),
     ("reopen", "open"), ("activate", "active"), ("mark_x", "marked")],
)  # fmt: skip
def test_outcomes(verb: str, made: str) -> None:
    assert made in find_outcomes(verb)


def test_article() -> None:
    assert (with_article("order"), with_article("line_item")) == ("an order", "a line item")


@pytest.mark.parametrize(
    "pattern",
    [r"^[A-Z]{3}-\d{4}$", r"^(a|bc)+\.x?$", r"^\w+@\w+$", r"^[^a-z]{2,}$", r"(\d)-\1", r"^.{9,}$", r"^\S\D\W$"],
)
def test_texts_of_patterns(pattern: str) -> None:
    for seed in range(20):
        assert re.search(pattern, generate_matching_text(pattern, random.Random(seed)))


def test_a_pattern_without_text_is_named() -> None:
    with pytest.raises(ValueError, match="no text found for the pattern"):
        generate_matching_text("^(?=x)y$", random.Random(0))


def dialect(schemas: dict[str, Any], version: str = "3.1.0", **root: Any) -> Dialect:
    document = {"openapi": version, "paths": {}, "components": {"schemas": schemas}, **root}
    return Dialect(OpenApiDocument(document, "x"), "response")


def test_all_of_becomes_one_object_and_circles_stay() -> None:
    reader = dialect(
        {
            "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
            "Pet": {
                "allOf": [
                    {"$ref": "#/components/schemas/Base"},
                    {"properties": {"mate": {"$ref": "#/components/schemas/Pet"}}},
                ]
            },
            "Loop": {"allOf": [{"$ref": "#/components/schemas/Loop"}, {"properties": {"a": {}}}]},
        }
    )
    assert reader.look(reader.convert({"$ref": "#/components/schemas/Pet"})) == {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "mate": {"$ref": "#/$defs/Pet"}},
        "required": ["id"],
    }
    assert reader.look(reader.convert({"$ref": "#/components/schemas/Loop"}))["allOf"][0] == {"$ref": "#/$defs/Loop"}


def test_hidden_properties_are_not_required() -> None:
    schema = {
        "type": "object",
        "required": ["id", "secret"],
        "properties": {"id": {"type": "integer", "readOnly": True}, "secret": {"type": "string", "writeOnly": True}},
    }
    document = OpenApiDocument({"openapi": "3.1.0", "paths": {}}, "x")
    assert Dialect(document, "request").convert(schema)["required"] == ["secret"]
    assert Dialect(document, "response").convert(schema)["required"] == ["id"]


SCHEMAS = st.one_of(
    st.builds(
        lambda low, more, step: {"type": "integer", "minimum": low, "maximum": low + more, "multipleOf": step},
        st.integers(-50, 50), st.integers(10, 60), st.integers(1, 10),
    ),
    st.builds(
        lambda low, more: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + more},
        st.integers(-1000, 1000), st.integers(1, 100),
    ),
    st.builds(
        lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
        st.integers(0, 60), st.integers(0, 40),
    ),
    st.sampled_from(
        [{"type": "string", "format": name} for name in ("date", "date-time", "uuid", "email", "ipv4", "uri")]
        + [{"enum": [1, "a", None]}, {"const": {"a": 1}}, {"type": ["string", "null"], "enum": ["x", None]}]
    ),
)  # fmt: skip
NAMES = st.sampled_from(
    ["price", "name", "email", "created_at", "rating", "x", "quantity", "latitude", "description", "zip"]
)


@given(children=st.dictionaries(NAMES, SCHEMAS, max_size=5), number=st.integers(0, 1000))
def test_made_values_are_valid(children: dict[str, Any], number: int) -> None:
    schema = {"type": "object", "required": sorted(children), "properties": children}
    occasion = ValueContext("thing", number, random.Random(number), datetime(2026, 1, 1))
    value = ValueGenerator(dialect({})).make(schema, (), occasion)
    checker = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    assert [error.message for error in checker.iter_errors(value)] == []
