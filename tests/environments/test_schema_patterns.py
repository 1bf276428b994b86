"""Patterns of foreign schemas: what they match, and that none of them stops the process."""

import random
import time

import pytest
from jsonschema.exceptions import best_match

from trajsmith.envgen.generate.columns import _fits
from trajsmith.environments import check_time, schema_patterns
from trajsmith.environments.pattern_text import generate_matching_text
from trajsmith.environments.schema_patterns import compile_schema, matches_pattern
from trajsmith.records import JsonObject


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        pytest.param(r"^[A-Z]{3}-\d+$", "ABC-12", True, id="plain"),
        pytest.param(r"^[A-Z]{3}-\d+$", "AB-12", False, id="plain-refused"),
        pytest.param("b", "abc", True, id="anywhere"),
        pytest.param(r"^(?P<x>a|b)$", "a", True, id="python-groups"),
        pytest.param(r"^(?P<x>a|b)$", "ab", False, id="python-groups-refused"),
        pytest.param(r"\Aab\Z", "ab", True, id="python-ends"),
        pytest.param(r"\Aab\Z", "cab", False, id="python-ends-refused"),
        pytest.param(r"^\\Z$", r"\Z", True, id="escaped-backslash"),
        pytest.param(r"^(?!x)\w+$", "ax", True, id="look-around"),
        pytest.param("^a$", "a\n", False, id="end-is-the-end"),
        pytest.param("(", "anything", True, id="not-understood"),
    ],
)
def test_a_pattern_matches(pattern: str, text: str, matches: bool) -> None:
    assert matches_pattern(pattern, text) is matches


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^\S{1,255}$", "two words"),
        (r"^[^/]{1,1000}$", "a/b"),
        (r"^.{1,5000}$", ""),
        (r"^[A-Za-z0-9+/=]{1,5000}$", "-"),
        (r"^[\p{L}\p{N} _.-]{1,64}$", "!"),
    ],
)
def test_bounds_of_a_length_that_people_write_are_checked(pattern: str, text: str) -> None:
    assert matches_pattern(pattern, "ab") and not matches_pattern(pattern, text)


def test_a_pattern_that_is_not_checked_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    pattern = r"^(?:\p{L}\p{N}){1,1999}$"
    assert matches_pattern(pattern, "!") and matches_pattern(pattern, "?")
    assert [record.getMessage() for record in caplog.records] == [
        f"the pattern {pattern!r} is not understood, or too large, and is not checked"
    ]


def test_the_limits_of_a_value_end_with_the_first_error_that_is_taken() -> None:
    errors = compile_schema({"items": {"type": "integer"}}).iter_errors(["a", "b"])
    assert next(errors).message == "'a' is not of type 'integer'"
    assert schema_patterns._steps.left is None and check_time._clock.limits == ()
    assert next(errors).message == "'b' is not of type 'integer'"


HOSTILE = [r"^(a|a)*$", r"^(a+)+$", r"^(?=(a|a)*$)(a+)+\1$"]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", HOSTILE)
@pytest.mark.parametrize(
    ("keyword", "path"),
    [
        pytest.param(lambda p: {"properties": {"x": {"pattern": p}}}, ["x"], id="pattern"),
        pytest.param(
            lambda p: {"patternProperties": {p: {}}, "additionalProperties": False}, [], id="names-of-properties"
        ),
    ],
)
def test_no_pattern_takes_exponential_time(keyword: object, path: list[str], pattern: str) -> None:
    text = "a" * 60 + "!"
    schema: JsonObject = {"type": "object", **keyword(pattern)}  # type: ignore[operator]
    error = best_match(compile_schema(schema).iter_errors({"x": text} if path else {text: 1}))
    assert error is not None
    assert list(error.absolute_path) == path


def test_pattern_properties_are_checked_as_before() -> None:
    schema = {"patternProperties": {"^n_": {"type": "integer"}}, "properties": {"a": {}}, "additionalProperties": False}
    validator = compile_schema(schema)
    assert validator.is_valid({"n_x": 1, "a": "b"})
    assert [error.message for error in validator.iter_errors({"n_x": "1"})] == ["'1' is not of type 'integer'"]
    assert [error.validator for error in validator.iter_errors({"m_x": 1})] == ["additionalProperties"]


@pytest.mark.parametrize(
    "pattern",
    ["((a{1000}){1000}){1000}", "(" * 3000 + ")" * 3000, "a{4294967294}", "(a{100})\\1{60000}\\1\\1", "[^\\s\\S]"],
    ids=["nested repetitions", "nested groups", "huge repetition", "repeated reference", "empty set"],
)
def test_a_pattern_for_which_no_text_of_any_size_can_be_made_is_refused_at_once(pattern: str) -> None:
    with pytest.raises(ValueError, match="no text"):
        generate_matching_text(pattern, random.Random(1))


def test_an_example_of_a_document_cannot_hang_the_generator_of_environments() -> None:
    start = time.process_time()
    assert not _fits("a" * 40 + "!", {"pattern": "^(a|a)*$"}, "text")
    assert time.process_time() - start < 5
