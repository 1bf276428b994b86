"""Foreign schemas and their regular expressions, checked in bounded time.

`re` backtracks without limit: a tool whose schema says `^(a|a)*$` can stop this process with one text. The engine of
`jsonschema_rs` is linear where the expression has no look-around and no back-reference, and stops early where it has.
Expressions are read as ECMA 262, which JSON Schema asks for: `$` is the end of the text, and `\\d` an ASCII digit.
"""

import functools
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from trajsmith.environments.check_time import TimeLimit, add_time_limit, charge_check_time, count_check_time
from trajsmith.records import JsonObject, JsonValue

if TYPE_CHECKING:
    from jsonschema import ValidationError

BACKTRACKS = 100_000
"""Steps after which an expression with look-around or back-references counts as not matching."""
LONGEST_PATTERN = 2000
"""Characters of an expression; a longer one is not understood, since to compile it takes time with their square."""
MOST_ESCAPES = 400
"""Backslashes of an expression, for the same reason: what they stand for is put in one by one."""
CHECK_SECONDS = 5.0
"""CPU time to check one value, compiling and matching patterns included."""
_CACHES = ((64 << 10, 1024), (512 << 10, 64))
"""Bytes of a compiled expression at most, and how many are kept of that size; a larger one is not understood."""
STEPS, STEPS_PER_VALUE = 50_000, 20
"""Keywords that may be evaluated to check a value, and more for each value in it: parts of a schema that refer to
parts that refer to parts are otherwise evaluated as often as there are ways through them, which doubles at each.
"""
STEPS_PER_SCHEMA_VALUE = 100
"""The same for each value in a schema that is checked itself: schemas of schemas evaluate many keywords for each."""
DEEPEST_CHECK = 180
"""Keywords inside each other: at a few hundred Python's stack ends, where what is written in Rust prints a panic."""
_STEPS_PER_CLOCK = 256
"""Steps between two looks at the clock."""
_SHORT_TEXT = 1000
"""Characters of a text that is matched in less time than it takes to look at the clock, or nearly so."""
_ENTRIES_PER_STEP = 20
"""Entries of a keyword, such as choices, that it takes a step to go through."""
_TRUTHS = (object(), object())
"""What stands for false and true in a set, where Python takes them for 0 and 1."""
_PYTHON_SYNTAX = re.compile(r"\\.|\(\?P<", re.DOTALL)
_ECMA_SYNTAX = {"(?P<": "(?<", r"\A": "^", r"\Z": "$"}


def _compile_within(size: int, pattern: str) -> Callable[[str], bool] | None:
    import jsonschema_rs

    translated = _PYTHON_SYNTAX.sub(lambda token: _ECMA_SYNTAX.get(token[0], token[0]), pattern)
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS, size_limit=size)
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": translated}, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        return None
    finally:
        charge_check_time()


_COMPILERS = tuple(functools.lru_cache(entries)(functools.partial(_compile_within, size)) for size, entries in _CACHES)


def _compile_pattern(pattern: str) -> Callable[[str], bool] | None:
    """Compile an expression, also one with Python's named groups or ends; None if it is not understood."""
    return next(filter(None, (compile_within(pattern) for compile_within in _COMPILERS)), None)


def _is_long(pattern: str) -> bool:
    return len(pattern) > LONGEST_PATTERN or pattern.count("\\") > MOST_ESCAPES


def matches_pattern(pattern: str, text: str) -> bool:
    """Return True if a text contains a match of an expression; True for an expression that is not understood."""
    if _is_long(pattern):
        return True
    matches = _compile_pattern(pattern)
    matched = matches is None or matches(text)
    if len(text) > _SHORT_TEXT:
        charge_check_time()
    return matched


def _is_pattern(pattern: JsonValue) -> bool:
    """Return False for an expression that nobody understands. A long one is not looked at, nor used later."""
    if not isinstance(pattern, str) or _is_long(pattern):
        return True
    with count_check_time():
        if _compile_pattern(pattern) is not None:
            return True
        try:
            with warnings.catch_warnings(action="ignore"):
                re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            return False
    return True


class _Steps(threading.local):
    """Steps that are left for the value that this thread checks; None between values."""

    left: int | None = None
    depth = 0
    """Keywords that are being evaluated inside each other."""


_steps = _Steps()


class _ExhaustedError(Exception):
    """No steps are left."""


class _TooDeepError(Exception):
    """Too many keywords are evaluated inside each other."""


def _make_exhausted_error() -> "ValidationError":
    from jsonschema import ValidationError

    return ValidationError("the schema takes too many steps, or too long, to check this value")


class SchemaValidator:
    """A compiled schema. To check a value takes time with its size, whatever the schema is."""

    def __init__(self, validator: Any, steps_per_value: int = STEPS_PER_VALUE) -> None:
        self._validator = validator
        self._steps_per_value = steps_per_value

    def iter_errors(self, value: JsonValue) -> "Iterator[ValidationError]":
        """Yield what is wrong with a value, last of all that its schema takes too many steps to tell."""
        from jsonschema import ValidationError
        from referencing.exceptions import Unresolvable

        before = _steps.left, _steps.depth
        _steps.depth = 0
        _steps.left = STEPS + self._steps_per_value * _count_values(value)
        try:
            with add_time_limit(TimeLimit(CHECK_SECONDS, _ExhaustedError())), count_check_time():
                yield from self._validator.iter_errors(value)
        except _ExhaustedError:
            yield _make_exhausted_error()
        except (_TooDeepError, RecursionError):
            yield ValidationError("the schema nests too deeply to check this value")
        except (Unresolvable, ValueError, TypeError):  # the latter for a way into a list by a name, or into a number
            yield ValidationError("a $ref of the schema leads nowhere")
        except OverflowError:
            yield ValidationError("a number in it is too large to check")
        finally:
            _steps.left, _steps.depth = before

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


def find_schema_fault(schema: JsonValue) -> "ValidationError | None":
    """Return the first fault of a schema by the schema of its dialect, in bounded time; None if it is valid."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    dialect = validator_for(schema, default=Draft202012Validator)
    try:
        if _compile_meta_schema(dialect)(schema):
            return None
    except _ExhaustedError:
        return _make_exhausted_error()
    meta = _bound_dialect(validator_for(dialect.META_SCHEMA, default=dialect))
    validator = meta(dialect.META_SCHEMA, format_checker=_make_pattern_checker())
    return next(SchemaValidator(validator, STEPS_PER_SCHEMA_VALUE).iter_errors(schema), None)


@functools.cache
def _compile_meta_schema(dialect: Any) -> Callable[[JsonValue], bool]:
    """Return a quick check whether a schema is valid; False where the other check, which says why, has to tell.

    It raises `_ExhaustedError` where it takes too long.
    """
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(
            dialect.META_SCHEMA, formats={"regex": _is_pattern}, validate_formats=True
        )
    except jsonschema_rs.ValidationError:  # draft 3
        return lambda _: False

    def is_valid(schema: JsonValue) -> bool:
        try:
            with add_time_limit(TimeLimit(CHECK_SECONDS, _ExhaustedError())), count_check_time():
                return validator.is_valid(schema)
        except ValueError:  # no JSON
            return False

    return is_valid


@functools.cache
def _make_pattern_checker() -> Any:
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    checker.checks("regex")(_is_pattern)
    return checker


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
        before = _steps.left
        _steps.left -= steps
        if _steps.left < 0:
            raise _ExhaustedError
        if before // _STEPS_PER_CLOCK != _steps.left // _STEPS_PER_CLOCK:
            charge_check_time()


def _count_steps(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return a keyword's check that counts, by the size of what it goes through."""

    def counted(
        validator: Any, content: JsonValue, value: JsonValue, schema: JsonObject
    ) -> "Iterator[ValidationError]":
        _spend(1 + (len(content) if isinstance(content, list | dict) else 0) // _ENTRIES_PER_STEP)
        _steps.depth += 1
        try:
            if _steps.depth > DEEPEST_CHECK:
                raise _TooDeepError
            yield from check(validator, content, value, schema) or ()
        finally:
            _steps.depth -= 1

    return counted


def _hashable(value: JsonValue) -> object:
    """Return a value that is equal where JSON Schema takes two for equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((key, _hashable(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return tuple(_hashable(inner) for inner in value)
    return _TRUTHS[value] if isinstance(value, bool) else value


@functools.cache
def _list_dialects() -> dict[str, Any]:
    """Return the library's dialects by the names of their schemas."""
    from jsonschema import validators

    names = ("Draft3", "Draft4", "Draft6", "Draft7", "Draft201909", "Draft202012")
    dialects = [getattr(validators, f"{name}Validator") for name in names]
    return {dialect.ID_OF(dialect.META_SCHEMA).rstrip("#"): dialect for dialect in dialects}


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
    for keyword, check in (
        ("unevaluatedProperties", _check_unevaluated_properties),
        ("unevaluatedItems", _check_unevaluated_items),
    ):
        if keyword in dialect.VALIDATORS:
            checks[keyword] = check
    known = {**dialect.VALIDATORS, **checks}
    counted = {name: _count_steps(check) for name, check in known.items()}  # all, since old dialects have others
    bounded: Any = extend(dialect, counted)  # type: ignore[no-untyped-call]
    arguments = [(field.name, field.alias) for field in bounded.__attrs_attrs__ if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        """Return a validator of a part, bounded as well; the library's takes another one where a part has `$schema`."""
        _spend(1)
        part = changes.setdefault("schema", self.schema)
        for name, argument in arguments:
            if argument not in changes:
                changes[argument] = getattr(self, name)
        named = part.get("$schema") if isinstance(part, dict) else None
        chosen = _list_dialects().get(named.rstrip("#"), dialect) if isinstance(named, str) else dialect
        return _bound_dialect(chosen)(**changes)

    bounded.evolve = evolve
    return cast("Callable[..., Any]", bounded)


def _iter_applied(validator: Any, value: JsonValue, schema: JsonValue) -> "Iterator[tuple[Any, JsonObject]]":
    """Yield a schema and those that it applies to the same value, each with its validator, where the value fits."""
    _spend(1 + (len(value) if isinstance(value, list | dict) else 0) // _ENTRIES_PER_STEP)
    if not isinstance(schema, dict):
        return
    yield validator, schema
    _steps.depth += 1
    try:
        if _steps.depth > DEEPEST_CHECK:
            raise _TooDeepError
        yield from _iter_parts(validator, value, schema)
    finally:
        _steps.depth -= 1


def _iter_parts(validator: Any, value: JsonValue, schema: JsonObject) -> "Iterator[tuple[Any, JsonObject]]":
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            resolved = validator._resolver.lookup(schema[keyword])
            inner = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            yield from _iter_applied(inner, value, resolved.contents)
    parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in schema.get(keyword, ())]
    if isinstance(value, dict):
        parts += [part for name, part in schema.get("dependentSchemas", {}).items() if name in value]
    if "if" in schema:
        holds = validator.evolve(schema=schema["if"]).is_valid(value)
        parts += [schema[keyword] for keyword in (("if", "then") if holds else ("else",)) if keyword in schema]
    for part in parts:
        if next(validator.descend(value, part), None) is None:
            yield from _iter_applied(validator, value, part)


def _check_unevaluated_properties(
    validator: Any, rest: JsonValue, instance: JsonValue, schema: JsonObject
) -> "Iterator[ValidationError]":
    from jsonschema import ValidationError

    if not isinstance(instance, dict):
        return
    left = set(instance)
    for inner, part in _iter_applied(validator, instance, schema):
        left -= {name for name in left if name in part.get("properties", {})}
        for pattern in part.get("patternProperties", {}):
            _spend(len(instance) // _ENTRIES_PER_STEP)
            left -= {name for name in left if matches_pattern(pattern, name)}
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in part:
                fits = part[keyword]
                left -= {name for name in left if next(inner.descend(instance[name], fits), None) is None}
    if left:
        names = ", ".join(repr(name) for name in instance if name in left)
        yield ValidationError(f"Unevaluated properties are not allowed ({names})")


def _check_unevaluated_items(
    validator: Any, rest: JsonValue, instance: JsonValue, schema: JsonObject
) -> "Iterator[ValidationError]":
    from jsonschema import ValidationError

    if not isinstance(instance, list):
        return
    left = set(range(len(instance)))
    for inner, part in _iter_applied(validator, instance, schema):
        items, first = part.get("items"), part.get("prefixItems", ())
        if isinstance(items, list):  # before 2020-12
            items, first = part.get("additionalItems"), items
        left -= left if items is not None else set(range(len(first)))
        for keyword in ("contains", "unevaluatedItems"):
            if keyword in part:
                fits = part[keyword]
                left -= {place for place in left if next(inner.descend(instance[place], fits), None) is None}
    if left:
        yield ValidationError(f"Unevaluated items are not allowed ({len(left)} of {len(instance)})")
