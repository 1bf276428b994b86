"""The attributes of an object as JSON, and back.

JSON has no sets, tuples, deques and dates. An attribute that the class itself makes one of these stays one: it is an
array or text in the state, and becomes what it was when the state is loaded. Deeper inside, nothing is converted.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import orjson

from environments.plain import NotJson, exact
from trajectory import JsonObject, JsonValue

_DATES = (datetime, date, time)


def attributes(instance: object) -> dict[str, Any]:
    """What counts as state: all attributes of the object itself but those with a name like `__this__`."""
    return {name: value for name, value in vars(instance).items() if not (name[:2] == name[-2:] == "__")}


def attribute_json(value: object) -> JsonValue:
    """An attribute as plain JSON.

    Raises:
        NotJson: JSON cannot carry it, or would give back something else.
    """
    if isinstance(value, set | frozenset):
        return sorted((exact(item) for item in value), key=orjson.dumps)
    if isinstance(value, tuple | deque):
        return exact(list(value))
    if isinstance(value, _DATES):
        return value.isoformat()
    return exact(dict(value)) if isinstance(value, dict) and type(value) is not dict else exact(value)


def attribute_value(made: object, value: JsonValue) -> object:
    """A value of the state, as the kind of thing that the class makes of this attribute.

    Args:
        made: What the constructor has put there.
        value: What the state says.

    Raises:
        ValueError, TypeError: The value cannot be one.
    """
    if isinstance(value, dict) and isinstance(made, defaultdict):
        return type(made)(made.default_factory, value)
    if isinstance(value, dict) and isinstance(made, dict):
        return type(made)(value)
    if isinstance(value, list) and isinstance(made, deque):
        return type(made)(value, made.maxlen)
    if isinstance(value, list) and isinstance(made, set | frozenset | tuple):
        return type(made)(value)
    if isinstance(value, str) and isinstance(made, _DATES):
        return type(made).fromisoformat(value)
    return value


def unfit(instance: object) -> dict[str, str]:
    """Attributes that JSON cannot carry, with the reason."""
    found = {}
    for name, value in attributes(instance).items():
        try:
            attribute_json(value)
        except NotJson as error:
            found[name] = str(error)
    return found


def state_of(instance: object, without: Mapping[str, str]) -> JsonObject:
    """All attributes as JSON.

    Args:
        instance: The object.
        without: Attributes that are left out.

    Raises:
        NotJson: One of the others is no JSON.
    """
    state = {}
    for name, value in attributes(instance).items():
        if name not in without:
            try:
                state[name] = attribute_json(value)
            except NotJson as error:
                raise NotJson(f"attribute {name}: {error}") from error
    return state
