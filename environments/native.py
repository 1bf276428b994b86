"""The native form of an environment: a Pydantic state, and a class whose decorated methods are tools.

Clock, id counters and randomness are part of the state, so the same calls on the same state always give the same
result, in any process.
"""

import functools
import inspect
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import docstring_parser
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
    model_serializer,
)
from pydantic_core import PydanticSerializationError

from trajsmith.environments.foreign import format_error
from trajsmith.environments.schemas import tidy_schema, wrap_schema
from trajsmith.environments.session import ToolResult
from trajsmith.environments.tables import RecordTable, to_plain_containers
from trajsmith.records import (
    Actor,
    ConfirmationRule,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    PolicyRule,
    ToolAnnotations,
    ToolError,
    ToolSpec,
    UserCache,
    canonical_json,
    check_confirmation_rule,
    content_hash,
    derive_seed,
    environment_boundary,
    format_first_error,
    hash_bytes,
)

Effect = Literal["read", "write"]
Entity = TypeVar("Entity")
Method = TypeVar("Method", bound=Callable[..., Any])
_MARK = "__trajsmith_tool__"
_SPECS = UserCache("specs")
TABLES_SERIALIZER = "_write_tables"


class EnvironmentState(BaseModel):
    """Base of all states. Fields that are `dict[str, Model]` are tables: their records are read when they are touched.

    Between calls a state is its JSON: objects that a call has left in it are made anew, so that two records never
    share a list, and what is kept beside the fields of the state is lost.
    """

    model_config = ConfigDict(extra="forbid")

    now: datetime
    """The environment's own clock; nothing else may tell the time."""
    counters: dict[str, int] = {}
    """Last number given out, by kind of id; also counts the random draws."""
    seed: int = 0
    """Seed of the environment's randomness."""

    @model_serializer(mode="wrap")
    def _write_tables(self, write):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - hints would be its schema
        """Pydantic writes no mapping but dicts: it gets dicts in place of tables."""
        tables = {name: value.copy() for name, value in self.__dict__.items() if type(value) is RecordTable}
        if not tables:
            return write(self)
        plain_self = self.__copy__()
        plain_self.__dict__.update(tables)
        return write(plain_self)


class StateModel(BaseModel):
    """Base of entities inside a state or a result."""

    model_config = ConfigDict(extra="forbid")


StateT = TypeVar("StateT", bound=EnvironmentState)


@dataclass(frozen=True)
class ToolMark:
    effect: Effect
    actor: Actor
    destructive: bool
    confirm: ConfirmationRule | None = None


def tool(
    effect: Effect,
    actor: Actor = "assistant",
    destructive: bool = False,
    confirm: Literal["always", "never"] | ConfirmationRule | None = None,
) -> Callable[[Method], Method]:
    """Declare a method as a tool.

    Args:
        effect: "read" if it never changes the state, "write" otherwise; execution tests the declaration.
        actor: "user" for tools that only the simulated user has, on their own device.
        destructive: True if it removes or overwrites what cannot be brought back.
        confirm: When the agent must get the user's yes before it calls; None lets `destructive` decide.

    Raises:
        InputError: The effect or the actor is another word.
    """
    for name, value, words in (("effect", effect, get_args(Effect)), ("actor", actor, get_args(Actor))):
        if value not in words:
            raise InputError(f'@tool({name}="{value}"): it is ' + " or ".join(f'"{word}"' for word in words))

    rule = ConfirmationRule(always=confirm == "always") if isinstance(confirm, str) else confirm

    def mark(method: Method) -> Method:
        setattr(method, _MARK, ToolMark(effect, actor, destructive, rule))
        return method

    return mark


@dataclass(frozen=True, slots=True)
class NativeTool:
    """A decorated method, compiled; its validators and serializers are bound, so that no code can replace them later.

    Attributes:
        read_arguments: From JSON to a model whose fields are the arguments.
        check_result: Validates what the method returned.
        write_result: What the method returned, as plain JSON data.
        wrapped: True if the result is no object and is wrapped as {"result": ...}, as MCP wants it.
    """

    spec: ToolSpec
    effect: Effect
    method: Callable[..., Any]
    read_arguments: Callable[[bytes], BaseModel]
    check_result: Callable[[Any], Any]
    write_result: Callable[[Any], Any]
    wrapped: bool

    def parse_arguments(self, arguments: JsonObject) -> dict[str, Any] | str:
        """Return the validated keyword arguments of the method, or the text of their fault."""
        try:
            text = canonical_json(arguments)
        except InputError as error:  # no JSON
            return str(error)
        try:
            return self.read_arguments(text).__dict__
        except ValidationError as error:
            return format_first_error(error)

    def content(self, value: Any) -> JsonObject:
        """The result that a call shows.

        Raises:
            EnvironmentFault: The method returned what its own hint forbids.
        """
        try:
            content = self._content(value)
        except (PydanticSerializationError, ValueError) as error:
            raise EnvironmentFault("output_schema", self.spec.server, format_error(error), self.spec.name) from error
        return {"result": content} if self.wrapped else content

    def _content(self, value: Any) -> Any:
        try:
            self.check_result(value)  # the serializer lets None and unknown choices pass
            return self.write_result(value)
        except (PydanticSerializationError, ValueError):
            unwrapped = to_plain_containers(value)
            if unwrapped is value:
                raise
        self.check_result(unwrapped)
        return self.write_result(unwrapped)


class Environment(Generic[StateT]):
    """Base of native environments. Subclass it with a state type, a `policy` and decorated methods.

    Class attributes:
        name: Short name; the class name in snake case if left empty.
        domain: Domain path, for example "commerce/retail".
        policy: Markdown rules shown to the agent; the code must enforce them.
        rules: Those of them that the calls of a trajectory show to be kept or broken, for checks.
    """

    name: ClassVar[str] = ""
    domain: ClassVar[str] = ""
    policy: ClassVar[str] = ""
    rules: ClassVar[tuple[PolicyRule, ...]] = ()

    def __init__(self, state: StateT) -> None:
        self.state = state

    @classmethod
    def seed_state(cls, size: str, seed: int) -> StateT:
        """Make an initial state. Override it; `size` is "small", "medium" or "large"."""
        raise InputError(f"environment {cls.environment_name()} has no seed_state(): give its states as files")

    @classmethod
    def has_seeds(cls) -> bool:
        """Return whether the class makes initial states of its own."""
        return "seed_state" in {name for base in cls.__mro__ if base is not Environment for name in vars(base)}

    # What tools use

    def lookup(self, table: Mapping[str, Entity], key: str, noun: str) -> Entity:
        """Find an entity or refuse.

        Raises:
            ToolError: There is no such entity.
        """
        record = table.get(key)
        if record is None:
            raise ToolError(f"{noun} not found: {key}")
        return record

    def new_id(self, kind: str, pattern: str = "{:d}") -> str:
        """The next id of a kind, for example `new_id("order", "W{:05d}")`; the counter is part of the state."""
        number = self.state.counters.get(kind, 0) + 1
        self.state.counters[kind] = number
        return pattern.format(number)

    def random(self) -> random.Random:
        """A generator seeded by the state; every call of this method is a new draw. Only for tools that write."""
        draw = self.state.counters.get("random", 0) + 1
        self.state.counters["random"] = draw
        return random.Random(derive_seed(self.state.seed, draw))

    # For adapters and the sandbox

    @classmethod
    def environment_name(cls) -> str:
        return cls.name or "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__).lstrip("_")

    @classmethod
    def state_type(cls) -> type[StateT]:
        """The state type given in `Environment[...]`."""
        for base in getattr(cls, "__orig_bases__", ()):
            if get_origin(base) is Environment or (
                inspect.isclass(get_origin(base)) and issubclass(get_origin(base), Environment)
            ):
                return get_args(base)[0]  # type: ignore[no-any-return]
        raise InputError(f"class {cls.__name__} must name its state: class {cls.__name__}(Environment[MyState])")

    def call(self, name: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Validate, run, and dump the result; a refusal leaves the state as it was. Sessions have a faster way.

        Raises:
            EnvironmentFault: The method crashed or returned what its own hint forbids.
        """
        entry = native_tools(_key(type(self))).get(name)
        if entry is None or entry.spec.actor != actor:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {name}")
        with environment_boundary(self.environment_name(), name):
            parsed = entry.parse_arguments(arguments)
        if isinstance(parsed, str):
            return ToolResult.refusal("invalid_arguments", parsed)
        before = self.dump() if entry.effect == "write" else None
        try:
            with environment_boundary(self.environment_name(), name):
                value = entry.method(self, **parsed)
        except ToolError as refusal:
            if before is not None and self.dump() != before:
                self.restore(before)
            return ToolResult.refusal("refused", str(refusal))
        return ToolResult(entry.content(value))

    def dump(self) -> bytes:
        """The state as JSON bytes."""
        return self.state.model_dump_json().encode()

    def restore(self, data: bytes) -> None:
        """Go back to dumped bytes.

        Raises:
            EnvironmentFault: The bytes are no state of this environment.
        """
        try:
            self.state = self.state_type().model_validate_json(data)
        except ValidationError as error:
            raise EnvironmentFault("state", self.environment_name(), format_first_error(error)) from error

    @classmethod
    def describe(cls) -> EnvironmentSpec:
        """The environment's spec; built at the first call, never at import."""
        return _describe(_key(cls))


def _key(cls: Any) -> Any:
    """A class as a cache key; mypy does not see that classes can be hashed."""
    return cls


@functools.cache
def _describe(cls: Any) -> EnvironmentSpec:
    if not cls.__module__.startswith("trajsmith.environments.library."):
        return build_class_spec(cls, f"python:{cls.__module__}", _source_hash(cls))
    key = f"{cls.__module__}.{cls.__qualname__}"
    stored = _SPECS.get(key)
    if stored is not None:
        return EnvironmentSpec.model_validate_json(stored)
    spec = build_class_spec(cls, f"library:{cls.__module__}", _source_hash(cls))
    _SPECS.put(key, spec.model_dump_json().encode())
    return spec


def build_class_spec(cls: type[Environment[Any]], source: str, code: str) -> EnvironmentSpec:
    """Build the spec of a class whose source text has the hash `code`."""
    tools = tuple(entry.spec for entry in native_tools(_key(cls)).values())
    schema = tidy_schema(cls.state_type().model_json_schema())
    return EnvironmentSpec(
        name=cls.environment_name(),
        version=content_hash([code, schema, [tool.model_dump(mode="json") for tool in tools]], 16),
        description=inspect.getdoc(cls) or "",
        domain=cls.domain,
        policy=inspect.cleandoc(cls.policy),
        rules=cls.rules,
        tools=tools,
        state_schema=schema,
        source=source,
    )


def _source_hash(cls: type) -> str:
    """Hash of the source files of a class's module and, for a package, of all modules beside it."""
    module = sys.modules[cls.__module__]
    path = Path(getattr(module, "__file__", None) or "")  # a class of a notebook has no file
    package = path.parent if (path.parent / "__init__.py").exists() and "library" in path.parts else None
    files = sorted(package.glob("*.py")) if package else [path]
    return hash_bytes(b"\0".join(file.read_bytes() for file in files if file.is_file()))


@functools.cache
def native_tools(cls: Any) -> dict[str, NativeTool]:
    """All tools of a class, compiled once, in the order of their definition."""
    tools: dict[str, NativeTool] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            mark = getattr(member, _MARK, None)
            if isinstance(mark, ToolMark):
                tools[name] = _compile(cls, name, member, mark)
    if not tools:
        raise InputError(f"class {cls.__name__} has no tools: decorate methods with @tool(effect=...)")
    return tools


def _result_type(hint: Any) -> TypeAdapter[Any]:
    """The adapter of a result; NaN inside untyped data stays NaN, so that it is found, and does not become a null."""
    try:
        return TypeAdapter(hint, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # types with a configuration of their own
        return TypeAdapter(hint)


def _compile(cls: type[Environment[Any]], name: str, method: Callable[..., Any], mark: ToolMark) -> NativeTool:
    where = f"{cls.__name__}.{name}"
    hints = get_type_hints(method, include_extras=True)
    documentation = docstring_parser.parse(inspect.getdoc(method) or "")
    described = {parameter.arg_name: parameter.description for parameter in documentation.params}
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        if parameter.name not in hints:
            raise InputError(f"{where}: parameter {parameter.name} has no type hint")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        text = " ".join((described.get(parameter.name) or "").split())
        fields[parameter.name] = (Annotated[hints[parameter.name], Field(description=text or None)], default)
    if "return" not in hints:
        raise InputError(f"{where}: the result has no type hint")
    arguments = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid", strict=True), **fields)
    result = _result_type(hints["return"])
    output = tidy_schema(result.json_schema(mode="serialization"))
    wrapped = output.get("type") != "object"
    if wrapped:
        output = wrap_schema(output)
    description = "\n".join(filter(None, [documentation.short_description, documentation.long_description]))
    spec = ToolSpec(
        server=cls.environment_name(),
        name=name,
        description=description,
        input_schema=tidy_schema(arguments.model_json_schema()),
        output_schema=output,
        annotations=ToolAnnotations(
            read_only_hint=mark.effect == "read", destructive_hint=mark.destructive if mark.effect == "write" else None
        ),
        actor=mark.actor,
        confirm=mark.confirm,
    )
    check_confirmation_rule(spec)
    return NativeTool(
        spec,
        mark.effect,
        method,
        arguments.__pydantic_validator__.validate_json,
        result.validator.validate_python,
        functools.partial(result.serializer.to_python, mode="json", warnings="error"),
        wrapped,
    )


def only_environment(module: Any, file: str = "") -> type[Environment[Any]]:
    """The one `Environment` subclass that a module holds; `file` is its name in error texts.

    Raises:
        InputError: It holds none or several.
    """
    classes = {
        member
        for _, member in inspect.getmembers(module, inspect.isclass)
        if issubclass(member, Environment) and member is not Environment
    }
    if len(classes) != 1:
        names = ", ".join(sorted(cls.__name__ for cls in classes)) or "none"
        hint = f"; choose one as {file}:{min(cls.__name__ for cls in classes)}" if file and classes else ""
        raise InputError(f"{file or module.__name__}: expected one Environment class, found {names}{hint}")
    return classes.pop()
