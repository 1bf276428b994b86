"""Python functions as tools: the model of their arguments, the adapter of their result, what their docstring says."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Dict, List, get_type_hints  # noqa: UP035 - foreign code writes Dict and List

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaError

from trajsmith.environments.arguments import validate_schema
from trajsmith.environments.foreign import format_error
from trajsmith.environments.schemas import wrap_schema
from trajsmith.records import InputError, JsonObject

Function = Callable[..., Any]
_UNTYPED: tuple[object, ...] = (dict, Dict, list, List, str, object, Any, None, type(None))  # noqa: UP006
_GUESSED = (str, int, float, bool, list, dict)
_UNFIT = (PydanticUserError, PydanticInvalidForJsonSchema, SchemaError, TypeError, ValueError)


class _Quiet(GenerateJsonSchema):
    """Defaults that are no JSON are left out of schemas without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}


@dataclass(frozen=True)
class FunctionSignature:
    """Function as a tool: the model of its arguments and the adapter of its result.

    Attributes:
        model: Model of the arguments; its fields are aliases of the parameters, in their order.
        names: The parameters.
        input_schema: Schema of the arguments, with what the docstring says of them.
        result: Adapter of the result, or None where its type hint says nothing beyond "an object" or "text".
        output_schema: Schema of the result, or None without an adapter.
        text: True if the type hint says that the result is text.
        description: The docstring without its sections.
    """

    model: type[BaseModel]
    names: tuple[str, ...]
    input_schema: JsonObject
    result: TypeAdapter[Any] | None
    output_schema: JsonObject | None
    text: bool
    description: str

    def parse_arguments(self, arguments: JsonObject) -> dict[str, Any]:
        """Return arguments as the function takes them: converted to its types, defaults filled in.

        Raises:
            ValidationError: They do not fit the type hints.
        """
        validated = self.model.model_validate(arguments)
        return dict(zip(self.names, dict(validated).values(), strict=True))


def read_signature(
    function: Function, where: str, skip: tuple[str, ...] = (), guess: bool = False
) -> FunctionSignature:
    """Compile a function's signature.

    Args:
        function: The function, or a bound method.
        where: Its name in error texts, with the file.
        skip: Parameters that are no arguments.
        guess: True if a parameter without a type hint has the type of its default.

    Raises:
        InputError: A parameter or type hint cannot be a tool's.
    """
    hints = _hints(function, where)
    documentation = docstring_parser.parse(inspect.getdoc(function) or "")
    texts = {parameter.arg_name: parameter.description for parameter in documentation.params}
    fields: dict[str, Any] = {}
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in skip:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InputError(f"{where}: parameter {parameter} cannot be given by name; name every parameter")
        names.append(parameter.name)
        guessed = type(parameter.default) if guess and type(parameter.default) in _GUESSED else Any
        hint = hints.get(parameter.name, guessed)
        fields[f"argument_{len(fields)}"] = _field(parameter, hint, texts.get(parameter.name))
    model = _model(fields, where)
    schema = validate_schema({"properties": {}, **_schema(model, where)}, where)
    result, output, text = _result(hints.get("return", Any), where)
    parts = (documentation.short_description, documentation.long_description)
    return FunctionSignature(model, tuple(names), schema, result, output, text, "\n".join(filter(None, parts)).strip())


def _hints(function: Function, where: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as error:  # type hints are foreign expressions
        raise InputError(f"{where}: its type hints cannot be read: {type(error).__name__}: {error}") from error


def _field(parameter: inspect.Parameter, hint: Any, text: str | None) -> tuple[Any, Any]:
    described = Field(alias=parameter.name, description=" ".join(text.split()) if text else None)
    if isinstance(parameter.default, FieldInfo):
        own = parameter.default
        aliased = Field(alias=parameter.name, description=own.description or described.description)
        return Annotated[hint, own, aliased], own.get_default() if not own.is_required() else ...
    return Annotated[hint, described], ... if parameter.default is parameter.empty else parameter.default


def _model(fields: dict[str, Any], where: str) -> type[BaseModel]:
    try:
        return create_model("Arguments", __config__=ConfigDict(arbitrary_types_allowed=True), **fields)
    except _UNFIT as error:
        raise InputError(f"{where}: no tool can have these parameters: {format_error(error)}") from error


def _schema(model: type[BaseModel], where: str) -> JsonObject:
    try:
        return model.model_json_schema(by_alias=True, schema_generator=_Quiet)
    except _UNFIT as error:
        raise InputError(f"{where}: its parameters have no JSON Schema: {format_error(error)}") from error


def _result(hint: Any, where: str) -> tuple[TypeAdapter[Any] | None, JsonObject | None, bool]:
    """Adapter and schema of a result, if its hint says something; a result that is no object is wrapped."""
    if hint in _UNTYPED:
        return None, None, hint is str
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        schema = validate_schema(adapter.json_schema(mode="serialization", schema_generator=_Quiet), where)
    except (*_UNFIT, InputError):
        return None, None, False  # as the server library does: such a result has no schema
    return adapter, schema if schema.get("type") == "object" else wrap_schema(schema), False
