"""How the states of a class are kept: which fields are tables, which are small parts, or all of it as a whole."""

import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_origin

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationError,
    WrapValidator,
)
from pydantic.fields import FieldInfo

from trajsmith.environments.jsontypes import JsonType, StateError, build_model_type, build_value_type, is_same_json
from trajsmith.environments.native import TABLES_SERIALIZER, EnvironmentState
from trajsmith.environments.programs import StateChange
from trajsmith.records import JsonObject, format_first_error

_SETTINGS = {"extra", "frozen", "title", "validate_assignment", "arbitrary_types_allowed", "use_attribute_docstrings"}
"""Settings of a state class that do not reach into its fields."""
_METHODS = ("__init__", "__new__", "model_post_init", "__setattr__", "__getattribute__", "__getattr__")
_VALIDATORS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)


@dataclass(frozen=True, slots=True)
class InitialState:
    """A state taken apart, as its class writes it.

    Attributes:
        tables: JSON of each record, by table and key; plays share it and cannot change it.
        parts: JSON of each other field.
        untold: How this differs from what was given: defaults that were left out, other forms of the same value.
    """

    tables: dict[str, Mapping[str, bytes]]
    parts: dict[str, bytes]
    unreported: list[StateChange]


class StateLayout:
    """Layout of a state class: which fields are tables and which are parts. Computed once per class.

    Attributes:
        eager_because: Why states of this class are kept as a whole; empty if their fields are kept one by one.
        tables: Types of the records, by field.
        parts: Types of the other fields; empty if states are kept as a whole.
    """

    def __init__(self, cls: type[EnvironmentState]) -> None:
        cls.model_rebuild()
        self.cls = cls
        self.eager_reason = _find_eager_reasons(cls)
        self.tables: dict[str, JsonType] = {}
        self.parts: dict[str, JsonType] = {}
        for name, field in {}.items() if self.eager_reason else cls.model_fields.items():
            record = _find_record_model(field)
            if record is not None:
                self.tables[name] = build_model_type(record)
            else:
                self.parts[name] = build_value_type(_annotation(field))
        self.whole = JsonType(
            cls.__pydantic_validator__.validate_json,
            functools.partial(
                cls.__pydantic_serializer__.to_json, exclude=set(cls.model_computed_fields) or None, warnings=False
            ),
            scalar=False,
            flat=False,
        )
        """Type of the states themselves, without computed fields."""

    def split_state(self, text: bytes) -> InitialState:
        """Split a state into tables and parts.

        Raises:
            StateError: It is no state of this class.
        """
        try:
            state = self.whole.read(text)
        except ValidationError as error:
            raise StateError(format_first_error(error)) from error
        values = state.__dict__
        tables: dict[str, Mapping[str, bytes]] = {
            name: MappingProxyType({key: kind.write(record) for key, record in values[name].items()})
            for name, kind in self.tables.items()
        }
        if self.eager_reason:
            parts = split_parts(self.whole.write(state))
        else:
            parts = {name: kind.write(values[name]) for name, kind in self.parts.items()}
        return InitialState(tables, parts, list(_find_normalized_parts(orjson.loads(text), tables, parts)))


@functools.cache
def get_state_layout(cls: type[EnvironmentState]) -> StateLayout:
    return StateLayout(cls)


def split_parts(text: bytes) -> dict[str, bytes]:
    """The parts of a state that was written as a whole. Python's own parser keeps integers beyond 64 bits."""
    return {name: json.dumps(part, ensure_ascii=False).encode() for name, part in json.loads(text).items()}


def join_parts(parts: Mapping[str, bytes]) -> bytes:
    """The inverse of `split`."""
    return b"{" + b",".join(orjson.dumps(name) + b":" + text for name, text in parts.items()) + b"}"


def _find_eager_reasons(cls: type[EnvironmentState]) -> str:
    """Return the features of a class that work on whole states only."""
    base = EnvironmentState if issubclass(cls, EnvironmentState) else BaseModel  # databases of adapters are any models
    own = cls.__mro__[: cls.__mro__.index(base)]
    marks, fields = cls.__pydantic_decorators__, cls.model_fields
    reasons = {
        "methods": {name for name in _METHODS for base in own if name in vars(base)},
        "validators": {*marks.validators, *marks.field_validators, *marks.root_validators, *marks.model_validators},
        "serializers": {*marks.field_serializers, *marks.model_serializers} - {TABLES_SERIALIZER},
        "computed fields": set(cls.model_computed_fields),
        "private attributes": set(cls.__private_attributes__),
        "settings": {name for name in cls.model_config if name not in _SETTINGS},
        "fields with validators": {
            name for name, field in fields.items() if any(isinstance(mark, _VALIDATORS) for mark in field.metadata)
        },
        "fields that are renamed or left out": {
            name
            for name, field in fields.items()
            if field.exclude or field.validation_alias or field.serialization_alias
        },
    }
    return "; ".join(f"{reason}: {', '.join(sorted(names))}" for reason, names in reasons.items() if names)


def _find_record_model(field: FieldInfo) -> type[BaseModel] | None:
    """The model of the records if a field is a table."""
    arguments = get_args(field.annotation)
    is_table = get_origin(field.annotation) is dict and arguments[0] is str and not field.metadata
    record = arguments[1] if is_table else None
    return record if isinstance(record, type) and issubclass(record, BaseModel) else None


def _annotation(field: FieldInfo) -> Any:
    marks = list(field.metadata)
    if field.discriminator is not None:
        marks.append(Field(discriminator=field.discriminator))
    return Annotated[field.annotation, *marks] if marks else field.annotation


def _find_normalized_parts(
    state: JsonObject, tables: Mapping[str, Mapping[str, bytes]], parts: Mapping[str, bytes]
) -> Iterator[StateChange]:
    """Yield parts whose normalized form differs from the JSON that the state was made of."""
    for name, part in parts.items():
        if name not in state or not is_same_json(part, orjson.dumps(state[name])):
            yield name, None, part
    for name, records in tables.items():
        known = state.get(name)
        if not isinstance(known, dict):
            yield name, None, join_parts(records)
        else:
            for key, text in records.items():
                if not is_same_json(text, orjson.dumps(known[key])):
                    yield name, key, text
