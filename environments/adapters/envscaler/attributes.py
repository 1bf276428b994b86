"""The attributes of an object as JSON, and back.

JSON has no sets, tuples, deques and dates. An attribute that the class itself makes one of these stays one: it is an
array or text in the state, and becomes what it was when the state is loaded. Deeper inside, nothing is converted.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import orjson

from trajsmith.environments.json_data import NotJsonError, to_exact_json
from trajsmith.records import JsonObject, JsonValue

_DATES = (datetime, date, time)


def get_state_attributes(instance: object) -> dict[str, Any]:
    """Return the attributes that count as state: all of the object itself but names like `__this__`."""
    return {name: value for name, value in vars(instance).items() if not (name[:2] == name[-2:] == "__")}


def encode_attribute(value: object) -> JsonValue:
    """An attribute as plain JSON.

    Raises:
        NotJson: JSON cannot carry it, or would give back something else.
    """
    if isinstance(value, set | frozenset):
        return sorted((to_exact_json(item) for item in value), key=orjson.dumps)
    if isinstance(value, tuple | deque):
        return to_exact_json(list(value))
    if isinstance(value, _DATES):
        return value.isoformat()
    return to_exact_json(dict(value)) if isinstance(value, dict) and type(value) is not dict else to_exact_json(value)


def decode_attribute(template: object, value: JsonValue) -> object:
    """A value of the state, as the kind of thing that the class makes of this attribute.

    Args:
        made: What the constructor has put there.
        value: What the state says.

    Raises:
        ValueError, TypeError: The value cannot be one.
    """
    if isinstance(value, dict) and isinstance(template, defaultdict):
        return type(template)(template.default_factory, value)
    if isinstance(value, dict) and isinstance(template, dict):
        return type(template)(value)
    if isinstance(value, list) and isinstance(template, deque):
        return type(template)(value, template.maxlen)
    if isinstance(value, list) and isinstance(template, set | frozenset | tuple):
        return type(template)(value)
    if isinstance(value, str) and isinstance(template, _DATES):
        return type(template).fromisoformat(value)
    return value


def find_unserializable(instance: object) -> dict[str, str]:
    """Return attributes that JSON cannot carry, with the reason."""
    faults = {}
    for name, value in get_state_attributes(instance).items():
        try:
            encode_attribute(value)
        except NotJsonError as error:
            faults[name] = str(error)
    return faults


def dump_attributes(instance: object, without: Mapping[str, str]) -> JsonObject:
    """All attributes as JSON.

    Args:
        instance: The object.
        without: Attributes that are left out.

    Raises:
        NotJson: One of the others is no JSON.
    """
    state = {}
    for name, value in get_state_attributes(instance).items():
        if name not in without:
            try:
                state[name] = encode_attribute(value)
            except NotJsonError as error:
                raise NotJsonError(f"attribute {name}: {error}") from error
    return state
