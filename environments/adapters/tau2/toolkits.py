"""The toolkits of an environment, and what they keep beside their databases: counters, defaults. That is state too."""

import copy
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from pydantic import BaseModel, ValidationError

from trajsmith.environments.adapters.envscaler.attributes import decode_attribute, encode_attribute
from trajsmith.environments.json_data import NotJsonError
from trajsmith.records import Actor, JsonObject, JsonValue, format_first_error


def get_toolkits(environment: Any) -> dict[Actor, Any]:
    """The toolkits by who has them."""
    toolkits: dict[Actor, Any] = {"assistant": environment.tools, "user": environment.user_tools}
    return {actor: kit for actor, kit in toolkits.items() if kit is not None}


def method(environment: Any, actor: Actor, name: str) -> Callable[..., Any]:
    """A public method of an actor's toolkit, a tool or not.

    Raises:
        ValueError: There is none of that name.
    """
    kit = get_toolkits(environment).get(actor)
    if kit is None or name.startswith("_") or not inspect.isroutine(getattr(type(kit), name, None)):
        raise ValueError(f"the toolkit of the {actor} has no method {name}")
    function: Callable[..., Any] = getattr(kit, name)
    return function


def get_databases(environment: Any) -> list[Any]:
    """The databases: of the agent's toolkit, and of the user's if that is another one."""
    unique: list[Any] = []
    for kit in get_toolkits(environment).values():
        if kit.db is not None and all(kit.db is not one for one in unique):
            unique.append(kit.db)
    return unique


class ToolkitAttributes:
    """Attributes of a toolkit that count as state.

    Attributes:
        notes: Attributes that cannot be state, with the reason; all plays share them.
    """

    def __init__(self, toolkit: Any) -> None:
        """Find them on a fresh toolkit. What stands on its class and can change becomes its own."""
        for name, value in _of_class(type(toolkit)):
            if name not in vars(toolkit):
                setattr(toolkit, name, copy.deepcopy(value))
        self.notes: list[str] = []
        self._first: dict[str, Any] = {}
        for name, value in vars(toolkit).items():
            if name != "db" and not (name[:2] == name[-2:] == "__"):
                try:
                    _as_json(value)
                    self._first[name] = copy.deepcopy(value)
                except (NotJsonError, TypeError) as error:
                    self.notes.append(f"{type(toolkit).__name__}.{name} is not part of the state: {error}")

    def __bool__(self) -> bool:
        return bool(self._first)

    def dump(self, toolkit: Any) -> JsonObject:
        """The attributes as JSON.

        Raises:
            NotJson: One of them is none any more.
        """
        return {name: _as_json(getattr(toolkit, name)) for name in self._first}

    def load(self, toolkit: Any, saved: JsonObject) -> None:
        """Give a toolkit its own attributes, as they were saved.

        Raises:
            ValueError: This is not what was saved.
        """
        unknown = sorted(saved.keys() - self._first.keys())
        if unknown:
            raise ValueError(f"{type(toolkit).__name__} has no attribute {unknown[0]}")
        for name, first in self._first.items():
            value = copy.deepcopy(first)
            setattr(toolkit, name, _from_json(value, saved[name]) if name in saved else value)


def _of_class(cls: type) -> Iterator[tuple[str, Any]]:
    """Values on a class and what it inherits that a method could change."""
    for base in cls.__mro__[:-1]:
        for name, value in vars(base).items():
            constant = isinstance(value, str | int | float | bool | bytes | Enum | frozenset | type | None)
            described = callable(value) or inspect.isdatadescriptor(value) or hasattr(type(value), "__get__")
            if not (constant or described or name.startswith("__") or name == "_abc_impl"):
                yield name, value


def _as_json(value: Any) -> JsonValue:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    fields = _fields(value)
    return encode_attribute(value) if fields is None else {name: _as_json(field) for name, field in fields.items()}


def _from_json(template: Any, value: JsonValue) -> Any:
    """A value of the kind that a fresh toolkit has."""
    try:
        if isinstance(template, BaseModel) and value is not None:
            return type(template).model_validate(value)
        fields = _fields(template)
        if fields is None or not isinstance(value, dict):
            return decode_attribute(template, value)
        for name, field in value.items():
            setattr(template, name, _from_json(fields.get(name), field))
        return template
    except ValidationError as error:
        raise ValueError(format_first_error(error)) from error


def _fields(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a foreign class; None for plain values."""
    plain = isinstance(value, str | int | float | bool | list | tuple | dict | set | frozenset | Enum | None)
    return None if plain or isinstance(value, type) or not hasattr(value, "__dict__") else vars(value)
