"""Schemas whose parts refer to each other: a check costs more for a larger value, and never doubles with depth."""

import time

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from trajsmith.environments import check_time, schema_patterns
from trajsmith.environments.arguments import find_fault, validate_schema
from trajsmith.environments.check_time import LIST_SECONDS, limit_check_time
from trajsmith.environments.schema_patterns import LONGEST_PATTERN, MOST_ESCAPES, compile_schema, matches_pattern
from trajsmith.records import InputError, JsonObject, JsonValue

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


DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    *(f"http://json-schema.org/draft-{number}/schema#" for number in ("03", "04", "06", "07")),
)
SLOW = "^(a|a)*$"
STOPPED = "a" * 40 + "!"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_part_that_names_a_dialect_is_bounded_as_well(dialect: str) -> None:
    schema = {"properties": {"a": {"$schema": dialect, "pattern": SLOW}}}
    began = time.process_time()
    assert not compile_schema(schema).is_valid({"a": STOPPED})
    items = {"$schema": dialect, "type": "array", "items": {"$ref": "#"}}
    bomb: JsonObject = {"anyOf": [items, dict(items)], "type": "array"}
    assert not compile_schema(bomb).is_valid(nest(90)) or dialect == DIALECTS[2], "which has no `anyOf`"
    assert time.process_time() - began < 5


UNEVALUATED: dict[str, tuple[JsonObject, JsonValue]] = {
    "patterns of names": ({"unevaluatedProperties": False, "patternProperties": {SLOW: {}}}, {STOPPED: 1}),
    "ways through names": ({"unevaluatedProperties": False, **chain("allOf", 40)}, {"a": 1}),
    "ways through items": ({"unevaluatedItems": False, **chain("allOf", 40)}, [1]),
    "many names in each part": (
        {"unevaluatedProperties": False, "allOf": [{"properties": {f"a{n}": {} for n in range(500)}}] * 500},
        {f"b{n}": 1 for n in range(5000)},
    ),
    "many items in each part": (
        {"unevaluatedItems": False, "allOf": [{"prefixItems": [{}] * 500}] * 500},
        [1] * 5000,
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", UNEVALUATED)
def test_what_is_left_of_a_value_is_found_in_bounded_time(name: str) -> None:
    schema, value = UNEVALUATED[name]
    began = time.process_time()
    assert not compile_schema(schema).is_valid(value)
    assert time.process_time() - began < 5


PARTS: JsonObject = {
    "$defs": {"B": {"properties": {"b": {}}}},
    "$ref": "#/$defs/B",
    "properties": {"a": {}},
    "patternProperties": {"^x-": {}},
    "anyOf": [{"properties": {"c": {"type": "string"}}, "required": ["c"]}, {"properties": {"d": {}}}],
    "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
    "then": {"properties": {"e": {}}},
    "else": {"properties": {"f": {}}},
    "dependentSchemas": {"d": {"properties": {"g": {}}}},
    "unevaluatedProperties": {"type": "null"},
}
ITEMS: JsonObject = {"prefixItems": [{"type": "string"}], "contains": {"const": 5}, "unevaluatedItems": False}


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        (PARTS, {"a": 1, "b": 1, "x-1": 1, "e": 1}, True),
        (PARTS, {"a": 1, "f": 1}, False),
        (PARTS, {"a": 2, "f": 1}, True),
        (PARTS, {"d": 1, "g": 1}, True),
        (PARTS, {"g": 1}, False),
        (PARTS, {"g": None}, True),
        (PARTS, {"c": 1}, False),
        (PARTS, [1], True),
        (ITEMS, ["a", 5, 5], True),
        (ITEMS, ["a", 5, 6], False),
        (ITEMS, ["a"], False),
        ({"$schema": DIALECTS[1], "items": [{}], "unevaluatedItems": False}, [1], True),
        ({"$schema": DIALECTS[1], "items": [{}], "unevaluatedItems": False}, [1, 2], False),
        ({"$schema": DIALECTS[1], "items": [{}], "additionalItems": {}, "unevaluatedItems": False}, [1, 2], True),
        ({"items": {}, "unevaluatedItems": False}, [1, 2], True),
    ],
)
def test_what_is_left_of_a_value_is_what_the_library_says(schema: JsonObject, value: JsonValue, valid: bool) -> None:
    assert compile_schema(schema).is_valid(value) is valid
    assert validator_for(schema, default=Draft202012Validator)(schema).is_valid(value) is valid


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(" * 900 + ")" * 900}}},
        {"properties": {"a": {"pattern": "a{99999999999999}"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"type": [{"a": n} for n in range(5000)]},
        {"$schema": DIALECTS[3], "properties": {"a": {"enum": [{"a": n % 4999} for n in range(5000)]}}},
        {"required": [one for n in range(5000) for one in (n, f"a{n}")]},
    ],
    ids=["deep pattern", "large count", "no pattern", "types", "choices", "names"],
)
def test_a_schema_that_is_none_is_one_line_in_bounded_time(schema: JsonObject) -> None:
    began = time.process_time()
    with pytest.raises(InputError, match="tool t is no valid JSON Schema"):
        validate_schema(schema, "tool t")
    assert time.process_time() - began < 5


def test_references_in_a_long_row_end_before_the_stack_does(capfd: pytest.CaptureFixture[str]) -> None:
    parts = {f"D{n}": {"$ref": f"#/$defs/D{n + 1}"} for n in range(900)}
    for keyword in ("unevaluatedProperties", "additionalProperties"):
        schema = {"$defs": {**parts, "D900": {}}, "$ref": "#/$defs/D0", keyword: False}
        assert find_fault(compile_schema(schema), {"a": 1}) is not None
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("way", ["#/s/aA", "#/n/a", "#/s/5", "#/t/a"])
def test_a_reference_into_what_has_no_parts_leads_nowhere(way: str) -> None:
    schema: JsonObject = {"properties": {"a": {"$ref": way}}, "s": [1, 2], "n": 5, "t": "text"}
    with pytest.raises(InputError, match="leads nowhere"):
        validate_schema(schema, "tool t")
    fault = find_fault(compile_schema(schema), {"a": 1})
    assert fault is not None and "a $ref of the schema leads nowhere" in fault


def test_a_reference_that_leads_nowhere_is_a_fault_of_the_value() -> None:
    fault = find_fault(compile_schema({"$ref": "http://example.com/a"}), 1)
    assert fault is not None and "a $ref of the schema leads nowhere" in fault


SLOW_PATTERNS = {
    "letters of either case": "(?i)" + "[a-\U0010ffff]" * 100,
    "many of any letter": ".{300}",
    "others of either case": "(?i)[^a]{2}",
    "what only Python understands": "(a)(?(1)b|c)" + "[\x00-\U0010ffff]" * 100,
    "escapes": r"\S" * (MOST_ESCAPES // 2),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", SLOW_PATTERNS)
def test_patterns_of_a_list_of_tools_have_one_budget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_time, "LIST_SECONDS", 1.0)
    began = time.process_time()
    message = "tools x: its schemas and their patterns take more than 1 s to read"
    with pytest.raises(InputError, match=message), limit_check_time("tools x"):
        for n in range(20_000):
            patterns = {f"p{m}": {"pattern": f"{SLOW_PATTERNS[name]}{n}-{m}"} for m in range(100)}
            validate_schema({"properties": patterns}, f"tool {n}")
    assert time.process_time() - began < 3
    assert find_fault(compile_schema({"pattern": "^a"}), "b") is not None, "what comes next has its own time"


def test_many_common_patterns_take_a_part_of_the_budget() -> None:
    schema = {"properties": {f"p{n}": {"pattern": rf"^arn:[\w-]{{1,64}}:[0-9]{{12}}:{n}$"} for n in range(3000)}}
    began = time.process_time()
    with limit_check_time("tools x"):
        validate_schema(schema, "tool t")
    assert time.process_time() - began < LIST_SECONDS / 2


@pytest.mark.timeout(60)
def test_patterns_of_one_value_have_a_budget_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_patterns, "CHECK_SECONDS", 1.0)
    schema = {"allOf": [{"pattern": f"{SLOW_PATTERNS['letters of either case']}{n}"} for n in range(2000)]}
    began = time.process_time()
    fault = find_fault(compile_schema(schema), "x")
    assert time.process_time() - began < 3
    assert fault is not None and "[a-" in fault, "the first fault counts, also where the others take too long"
    last = list(compile_schema(schema).iter_errors("x"))[-1]
    assert "takes too many steps, or too long," in last.message


def test_a_pattern_that_would_fill_the_memory_is_not_understood() -> None:
    assert matches_pattern(".{100000}", "x"), "it allows anything, as one that is wrong does"
    assert not matches_pattern("^.{1,200}$", "x" * 201)
    assert matches_pattern(r"\S" * (MOST_ESCAPES + 1), "x"), "it takes time with the square of its escapes"


def test_a_large_schema_is_read_at_once() -> None:
    schema = {"properties": {f"p{n}": {"type": "string"} for n in range(50_000)}}
    began = time.process_time()
    validate_schema(schema, "tool t")
    assert time.process_time() - began < 2
    with pytest.raises(InputError, match=r"tool t is no valid JSON Schema: \$.properties.p50000.type: 'foo' is not"):
        validate_schema({"properties": {"p50000": {"type": "foo"}}}, "tool t")
