"""Schemas whose parts refer to each other: a check costs more for a larger value, and never doubles with depth."""

import time

import pytest

from trajsmith.environments.arguments import find_fault, validate_schema
from trajsmith.environments.schema_patterns import LONGEST_PATTERN, compile_schema, matches_pattern
from trajsmith.records import JsonObject, JsonValue

ITSELF = {"$ref": "#/$defs/A"}
TWICE = [{"type": "array", "items": ITSELF}, {"type": "array", "items": ITSELF}]


def nest(levels: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = [value]
    return value


def chain(keyword: str, levels: int) -> JsonObject:
    """Definitions of which each refers to the next twice: as many ways as two to the power of the levels."""
    parts = {f"D{n}": {keyword: [{"$ref": f"#/$defs/D{n + 1}"}, {"$ref": f"#/$defs/D{n + 1}"}]} for n in range(levels)}
    return {"$defs": {**parts, f"D{levels}": {"type": "string"}}, "$ref": "#/$defs/D0"}


BOMBS: dict[str, tuple[JsonObject, JsonValue]] = {
    **{f"{keyword} of a flat value": (chain(keyword, 40), 5) for keyword in ("anyOf", "oneOf", "allOf")},
    **{
        f"{keyword} of a deep value": ({"$defs": {"A": {keyword: TWICE}}, **ITSELF}, nest(90))
        for keyword in ("anyOf", "oneOf", "allOf")
    },
    "an old dialect": (
        {
            "$schema": "http://json-schema.org/draft-03/schema#",
            "type": [{"extends": [{"$ref": "#"}, {"$ref": "#"}], "items": {"$ref": "#"}}, {"items": {"$ref": "#"}}],
        },
        nest(90),
    ),
    "if and then": ({"$defs": {"A": {"if": {"items": ITSELF}, "then": {"items": ITSELF}}}, **ITSELF}, nest(90)),
    "not": ({"$defs": {"A": {"not": {"allOf": TWICE}}}, **ITSELF}, nest(90)),
    "contains": ({"$defs": {"A": {"contains": ITSELF, "items": ITSELF}}, **ITSELF}, nest(90)),
    "unevaluated items": ({**chain("allOf", 40), "unevaluatedItems": False}, [5]),
    "unevaluated properties": ({**chain("anyOf", 40), "unevaluatedProperties": False}, {"a": 5}),
    "names of properties": ({"propertyNames": chain("anyOf", 40)["$defs"]["D0"], **chain("anyOf", 40)}, {"a": 1}),
    "dependent schemas": ({"dependentSchemas": {"a": {"$ref": "#/$defs/D0"}}, **chain("oneOf", 40)}, {"a": 1}),
    "a long list of choices": ({"items": {"enum": [f"v{n}" for n in range(20_000)]}}, ["x"] * 20_000),
    "many patterns": (
        {"patternProperties": {f"a{n}": {} for n in range(3000)}, "additionalProperties": False},
        {f"b{n}": 1 for n in range(3000)},
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", BOMBS)
def test_a_schema_that_refers_to_itself_is_checked_in_bounded_time(name: str) -> None:
    schema, value = BOMBS[name]
    validator = compile_schema(schema if "$schema" in schema else validate_schema(schema, "tool t"))
    began = time.process_time()
    fault = find_fault(validator, value)
    assert time.process_time() - began < 5
    assert fault is not None, "it takes more steps than this value deserves"
    assert find_fault(compile_schema({"type": "string"}), "x") is None, "the next value has its own steps"


def test_a_large_value_of_a_common_schema_is_checked_whole() -> None:
    row = {
        "type": "object",
        "properties": {name: {"anyOf": [{"type": "string"}, {"type": "null"}]} for name in "abcde"},
        "required": list("abcde"),
        "additionalProperties": False,
    }
    schema = {"type": "array", "items": {"$ref": "#/$defs/R"}, "$defs": {"R": row}}
    rows = [dict.fromkeys("abcde", "x") for _ in range(20_000)]
    validator = compile_schema(schema)
    assert validator.is_valid(rows)
    rows[-1]["e"] = 5  # type: ignore[assignment]
    assert find_fault(validator, rows) == "19999.e: 5 is not valid under any of the given schemas"


def test_a_union_of_many_kinds_is_checked() -> None:
    kinds = [{"properties": {"kind": {"const": f"k{n}"}, "v": {"type": "integer"}}} for n in range(100)]
    validator = compile_schema({"items": {"oneOf": kinds}})
    assert validator.is_valid([{"kind": f"k{n}", "v": 1} for n in range(100)])


def test_a_pattern_longer_than_any_person_writes_is_not_understood() -> None:
    assert not matches_pattern(r"\d{3}" * (LONGEST_PATTERN // 5), "x")
    began = time.process_time()
    assert matches_pattern(r"\d+" * 300_000, "x"), "it allows anything, as one that is wrong does"
    assert time.process_time() - began < 1


def test_a_number_without_end_is_a_fault_of_the_value() -> None:
    fault = find_fault(compile_schema({"properties": {"n": {"multipleOf": 0.01}}}), {"n": 10**400})
    assert fault is not None and "too large" in fault
