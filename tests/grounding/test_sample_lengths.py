"""Texts that are made up stay short, however long a schema says that they may or must be."""

import random
from typing import Any

import pytest

from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.schema_values import list_boundary_values, list_invalid_values
from trajsmith.grounding.text_generation import LONGEST_SAMPLE, generate_text


@pytest.mark.parametrize("schema", [{"minLength": 10**9}, {"maxLength": 2**31 - 1}, {"minLength": 5}])
def test_no_text_is_as_long_as_memory(schema: dict[str, Any]) -> None:
    kinds = frozenset({"string"})
    field = SchemaField("note", "note", (), kinds, required=True, schema={"type": "string", **schema})
    assert len(generate_text(field, random.Random(0))) <= LONGEST_SAMPLE
    edges = list_boundary_values(field.schema, kinds) + list_invalid_values(field.schema, kinds)
    assert all(len(value) <= LONGEST_SAMPLE for value in edges)
