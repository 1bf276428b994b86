"""Foreign schemas and their regular expressions, checked in bounded time.

`re` backtracks without limit: a tool whose schema says `^(a|a)*$` can stop this process with one text. The engine of
`jsonschema_rs` is linear where the expression has no look-around and no back-reference, and stops early where it has.
Expressions are read as ECMA 262, which JSON Schema asks for: `$` is the end of the text, and `\\d` an ASCII digit.
"""

import functools
import re
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from trajsmith.records import JsonObject, JsonValue

if TYPE_CHECKING:
    from jsonschema import ValidationError

BACKTRACKS = 100_000
"""Steps after which an expression with look-around or back-references counts as not matching."""
LONGEST_PATTERN = 2000
"""Characters of an expression; a longer one is not understood, since to compile it takes time with their square."""
STEPS, STEPS_PER_VALUE = 50_000, 20
"""Keywords that may be evaluated to check a value, and more for each value in it: parts of a schema that refer to
parts that refer to parts are otherwise evaluated as often as there are ways through them, which doubles at each.
"""
_ENTRIES_PER_STEP = 20
"""Entries of a keyword, such as choices, that it takes a step to go through."""
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
    matches = _compile_pattern(pattern) if len(pattern) <= LONGEST_PATTERN else None
    return matches is None or matches(text)


class _Steps(threading.local):
    """Steps that are left for the value that this thread checks; None between values."""

    left: int | None = None


_steps = _Steps()


class _ExhaustedError(Exception):
    """No steps are left."""


class SchemaValidator:
    """A compiled schema. To check a value takes time with its size, whatever the schema is."""

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def iter_errors(self, value: JsonValue) -> "Iterator[ValidationError]":
        """Yield what is wrong with a value, last of all that its schema takes too many steps to tell."""
        from jsonschema import ValidationError

        before = _steps.left
        _steps.left = STEPS + STEPS_PER_VALUE * _count_values(value)
        try:
            yield from self._validator.iter_errors(value)
        except _ExhaustedError:
            yield ValidationError("the schema takes too many steps to check this value")
        except RecursionError:
            yield ValidationError("the schema nests too deeply to check this value")
        except OverflowError:
            yield ValidationError("a number in it is too large to check")
        finally:
            _steps.left = before

    def is_valid(self, value: JsonValue) -> bool:
        """Return True if nothing is wrong with a value."""
        return next(self.iter_errors(value), None) is None


def compile_schema(schema: JsonValue) -> SchemaValidator:
    """Return a validator of the schema's dialect that loads nothing and ends in bounded time."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    dialect = _bound_dialect(validator_for(schema, default=Draft202012Validator))
    return SchemaValidator(dialect(schema, registry=Registry()))


def _count_values(value: JsonValue) -> int:
    count, rest = 0, [value]
    while rest:
        inner = rest.pop()
        count += 1
        if isinstance(inner, dict):
            rest += inner.values()
        elif isinstance(inner, list):
            rest += inner
    return count


def _spend(steps: int) -> None:
    if _steps.left is not None:
        _steps.left -= steps
        if _steps.left < 0:
            raise _ExhaustedError


def _count_steps(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return a keyword's check that counts, by the size of what it goes through."""

    def counted(
        validator: Any, content: JsonValue, value: JsonValue, schema: JsonObject
    ) -> "Iterator[ValidationError]":
        _spend(1 + (len(content) if isinstance(content, list | dict) else 0) // _ENTRIES_PER_STEP)
        yield from check(validator, content, value, schema) or ()

    return counted


def _hashable(value: JsonValue) -> object:
    """Return a value that is equal where JSON Schema takes two for equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return tuple(_hashable(inner) for inner in value)
    return _TRUTHS[value] if isinstance(value, bool) else value


@functools.lru_cache
def _bound_dialect(dialect: Any) -> Callable[..., Any]:
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
            _spend(len(instance) // _ENTRIES_PER_STEP)
            for name, value in instance.items():
                if matches_pattern(pattern, name):
                    yield from validator.descend(value, schema, path=name, schema_path=pattern)

    def check_additional(
        validator: Any, rest: JsonValue, instance: JsonValue, schema: JsonObject
    ) -> "Iterator[ValidationError]":
        patterns = schema.get("patternProperties")
        if patterns and isinstance(instance, dict):
            _spend(len(patterns) * len(instance) // _ENTRIES_PER_STEP)
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
    known = {**dialect.VALIDATORS, **checks}
    counted = {name: _count_steps(check) for name, check in known.items()}  # all, since old dialects have others
    bounded: Callable[..., Any] = extend(dialect, counted)  # type: ignore[no-untyped-call]
    return bounded
