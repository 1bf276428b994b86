"""From text to a document: JSON or YAML 1.2, of a bounded size, of a version that we know."""

import re
from typing import Any

import orjson

from trajsmith.records import InputError, JsonObject, JsonValue

MAX_NODES = 5_000_000
"""Values that a document may have, aliases counted as often as they are used."""
MAX_DEPTH = 500
"""Levels that a YAML document may be nested; libyaml's composer calls itself in C and would end Python far above it."""

_IMPLICIT = (
    ("tag:yaml.org,2002:bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("tag:yaml.org,2002:int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("tag:yaml.org,2002:null", r"^(?:~|null|Null|NULL|)$", "~nN\0"),
    ("tag:yaml.org,2002:merge", r"^<<$", "<"),
)
"""YAML 1.2's core schema: "on" and "no" are texts, a date is a text."""


def read_document(text: str, file: str) -> JsonObject:
    """Parse an OpenAPI document.

    Raises:
        InputError: It does not parse, is no OpenAPI 3.0 or 3.1, or has no paths.
    """
    document = _parse_text(text, file)
    if not isinstance(document, dict):
        raise InputError(f"{file}: an OpenAPI document is an object, this is {type(document).__name__}")
    version = document.get("openapi")
    if version is None and "swagger" in document:
        raise InputError(f"{file}: Swagger {document['swagger']} is not read; convert it to OpenAPI 3.0 or 3.1 first")
    if not re.match(r"3\.[01](\.|$)", str(version)):
        raise InputError(f"{file}: `openapi` must say 3.0.x or 3.1.x, it says {version!r}")
    if not isinstance(document.get("paths"), dict) or not document["paths"]:
        raise InputError(f"{file}: there are no paths, so there is nothing to call")
    return document


def _parse_text(text: str, file: str) -> JsonValue:
    if text.lstrip()[:1] == "{":
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{file}:{error.lineno}: not JSON: {error.msg}") from error
    return _parse_yaml(text, file)


def _parse_yaml(text: str, file: str) -> JsonValue:
    import yaml

    fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # not every build of PyYAML has libyaml

    class Loader(fast):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}
        depth = 0

        def descend_resolver(self, parent: Any, index: Any) -> None:
            """Called by the composer for every level, in C too."""
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise InputError(f"{file}: nested more than {MAX_DEPTH} levels deep")

        def ascend_resolver(self) -> None:
            self.depth -= 1

    for tag, pattern, first in _IMPLICIT:
        Loader.add_implicit_resolver(tag, re.compile(pattern), ["" if letter == "\0" else letter for letter in first])
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
    try:
        value = yaml.load(text, Loader=Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InputError(f"{file}:{line}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{file}:1: not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InputError(f"{file}: nested too deeply") from error
    return _JsonNormalizer(file).plain(value)


class _JsonNormalizer:
    """Converter of parsed YAML to JSON values of bounded size, with text keys."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._made: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def plain(self, value: Any) -> JsonValue:
        try:
            return self._value(value)[0]
        except RecursionError as error:
            raise InputError(f"{self._file}: nested too deeply") from error

    def _value(self, value: Any) -> tuple[JsonValue, int]:
        if not isinstance(value, dict | list):
            if not isinstance(value, str | int | float | bool | None):
                raise InputError(f"{self._file}: a value of type {type(value).__name__} is no JSON")
            return value, 1
        known = self._made.get(id(value))
        if known is not None:
            return known
        if id(value) in self._open:
            raise InputError(f"{self._file}: a YAML alias contains itself")
        self._open.add(id(value))
        converted, size = self._list(value) if isinstance(value, list) else self._object(value)
        self._open.discard(id(value))
        if size > MAX_NODES:
            raise InputError(f"{self._file}: its YAML aliases unfold to more than {MAX_NODES} values")
        self._made[id(value)] = converted, size
        return converted, size

    def _list(self, value: list[Any]) -> tuple[JsonValue, int]:
        pairs = [self._value(child) for child in value]
        return [item for item, _ in pairs], 1 + sum(size for _, size in pairs)

    def _object(self, value: dict[Any, Any]) -> tuple[JsonValue, int]:
        converted, size = {}, 1
        for key, child in value.items():
            if isinstance(key, dict | list | tuple):
                raise InputError(f"{self._file}: a key that is no text: {key!r}")
            converted[_to_key_text(key)], more = self._value(child)
            size += more
        return converted, size


def _to_key_text(key: Any) -> str:
    return key if isinstance(key, str) else orjson.dumps(key).decode()
