"""Types whose values go to JSON and come back, compiled once: records of tables, and fields of states."""

import enum
import functools
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args, get_origin
from uuid import UUID

import orjson
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from trajsmith.records import canonical_json, format_first_error, to_one_line

_SCALARS = (str, bytes, bool, int, float, type(None), datetime, date, time, timedelta, Decimal, UUID, enum.Enum)


class StateError(ValueError):
    """A value that a state cannot hold. The text names the place and what is wrong."""


@dataclass(frozen=True, slots=True)
class JsonType:
    """One type.

    Attributes:
        read: From JSON; raises pydantic's ValidationError.
        write: To JSON; raises PydanticSerializationError, or ValueError for a cycle.
        scalar: True if values cannot be changed in place.
        flat: True if values are records that hold scalars only.
    """

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    scalar: bool
    flat: bool

    def seal(self, value: Any, *where: str) -> tuple[bytes, Any]:
        """Return the JSON of a value, and the value that this JSON stands for.

        Raises:
            StateError: The value has no JSON, or its JSON is not of this type.
        """
        try:
            parsed = self.read(self.write(value))
            return self.write(parsed), parsed
        except ValidationError as error:
            raise StateError(f"{'.'.join(where)}: {format_first_error(error)}") from error
        except (PydanticSerializationError, ValueError) as error:
            raise StateError(f"{'.'.join(where)}: {to_one_line(error)}") from error

    def load(self, text: bytes, *where: str) -> tuple[bytes, Any]:
        """The value that JSON stands for, and its JSON in the form in which this type writes it.

        Raises:
            StateError: The JSON is not of this type.
        """
        try:
            parsed = self.read(text)
        except ValidationError as error:
            raise StateError(f"{'.'.join(where)}: {format_first_error(error)}") from error
        return self.write(parsed), parsed

    def serializes_to(self, value: Any, text: bytes) -> bool:
        """Return whether the JSON of a value is this text."""
        try:
            return self.write(value) == text
        except (PydanticSerializationError, ValueError):
            return False


@functools.cache
def build_model_type(model: type[BaseModel]) -> JsonType:
    """The type of a model's instances, with its validator and serializer as they are now."""
    model.model_rebuild()
    read = model.__pydantic_validator__.validate_json
    write = functools.partial(model.__pydantic_serializer__.to_json, warnings=False)
    return JsonType(read, write, False, _flat_model(model))


def build_value_type(annotation: Any) -> JsonType:
    """The type that an annotation stands for."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    write = functools.partial(adapter.serializer.to_json, warnings=False)
    scalar = is_scalar(annotation)
    return JsonType(adapter.validator.validate_json, write, scalar, flat=False)


def _flat_model(model: type[BaseModel]) -> bool:
    """Private attributes and cached properties are no part of the JSON, extra fields can be anything."""
    if issubclass(model, RootModel) or model.__private_attributes__ or model.model_config.get("extra") == "allow":
        return False
    if any(isinstance(member, functools.cached_property) for base in model.__mro__ for member in vars(base).values()):
        return False
    return all(is_scalar(field.annotation) for field in model.model_fields.values())


def is_scalar(annotation: Any) -> bool:
    """Return whether no value of this type can be changed in place."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return is_scalar(get_args(annotation)[0])
    if origin is Literal:
        return True
    if origin in (typing.Union, types.UnionType):
        return all(map(is_scalar, get_args(annotation)))
    return annotation is None or (isinstance(annotation, type) and issubclass(annotation, _SCALARS))


def is_same_json(one: bytes, other: bytes) -> bool:
    """Return whether two texts are the same JSON value, whatever the order of keys."""
    return one == other or canonical_json(orjson.loads(one)) == canonical_json(orjson.loads(other))
