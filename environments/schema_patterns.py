"""Regular expressions of foreign schemas, matched in bounded time.

`re` backtracks without limit: a tool whose schema says `^(a|a)*$` can stop this process with one text. The engine of
`jsonschema_rs` is linear where the expression has no look-around and no back-reference, and stops early where it has.
Expressions are read as ECMA 262, which JSON Schema asks for: `$` is the end of the text, and `\\d` an ASCII digit.
"""

import functools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from trajsmith.records import JsonObject, JsonValue

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

BACKTRACKS = 100_000
"""Steps after which an expression with look-around or back-references counts as not matching."""
_TRUTHS = (object(), object())
"""What stands for false and true in a set, where Python takes them for 0 and 1."""
_PYTHON_SYNTAX = re.compile(r"\\.|\(\?P<", re.DOTALL)
_ECMA_SYNTAX = {"(?P<": "(?<", r"\A": "^", r"\Z": "$"}


@functools.lru_cache(maxsize=2048)
def _compile_pattern(pattern: str) -> Callable[[str], bool] | None:
    """Compile an expression, also one with Python's named groups or ends; None if it is not understood."""
    import jsonschema_rs

    translated = _PYTHON_SYNTAX.sub(lambda token: _ECMA_SYNTAX.get(token[0], token[0]), pattern)
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": translated}, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None


def matches_pattern(pattern: str, text: str) -> bool:
    """Return True if a text contains a match of an expression; True for an expression that is not understood."""
    matches = _compile_pattern(pattern)
    return matches is None or matches(text)


def compile_schema(schema: JsonValue) -> "Validator":
    """Return a validator of the schema's dialect that loads nothing and matches patterns in bounded time."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    return _bound_dialect(validator_for(schema, default=Draft202012Validator))(schema, registry=Registry())


def _hashable(value: JsonValue) -> object:
    """Return a value that is equal where JSON Schema takes two for equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return tuple(_hashable(inner) for inner in value)
    return _TRUTHS[value] if isinstance(value, bool) else value


@functools.lru_cache
def _bound_dialect(dialect: "type[Validator]") -> "Callable[..., Validator]":
    from jsonschema import ValidationError
    from jsonschema.validators import extend

    additional = dialect.VALIDATORS["additionalProperties"]

    def check_pattern(validator: Any, pattern: str, text: JsonValue, _: JsonObject) -> "Iterator[ValidationError]":
        if isinstance(text, str) and not matches_pattern(pattern, text):
            yield ValidationError(f"{text!r} does not match {pattern!r}")

    def check_pattern_properties(
        validator: Any, patterns: JsonObject, instance: JsonValue, _: JsonObject
    ) -> "Iterator[ValidationError]":
        for pattern, schema in patterns.items() if isinstance(instance, dict) else ():
            for name, value in instance.items():
                if matches_pattern(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)

    def check_additional(
        validator: Any, rest: JsonValue, instance: JsonValue, schema: JsonObject
    ) -> "Iterator[ValidationError]":
        patterns = schema.get("patternProperties")
        if patterns and isinstance(instance, dict):
            named = {name: True for name in instance if any(matches_pattern(pattern, name) for pattern in patterns)}
            schema = {"properties": {**schema.get("properties", {}), **named}}
        yield from additional(validator, rest, instance, schema)

    def check_unique(validator: Any, unique: JsonValue, items: JsonValue, _: JsonObject) -> "Iterator[ValidationError]":
        if unique and isinstance(items, list) and len({_hashable(item) for item in items}) < len(items):
            yield ValidationError(f"{items!r} has non-unique elements")

    checks = {
        "pattern": check_pattern,
        "uniqueItems": check_unique,
        "patternProperties": check_pattern_properties,
        "additionalProperties": check_additional,
    }
    bounded: Callable[..., Validator] = extend(dialect, checks)  # type: ignore[no-untyped-call]
    return bounded
