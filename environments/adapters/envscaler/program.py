"""An EnvScaler environment as a program: a class that is made of a configuration, and its methods.

What the published code does is kept:

* An object is made of the configuration (of nothing, where its class takes nothing), then every entry of the
  configuration is set as an attribute. The state is the attributes of the object.
* Methods answer `{"success": true, ...}`, or `{"success": false, "error": "reason"}`: that is a refusal, and the agent
  sees the whole object. The form has no refusal by exception; an exception is a crash.
* A refused call may have changed the state; the class says what it does, and nothing is rolled back here.
* The list of tools says which methods are offered. Where a schema disagrees with the method's signature, the signature
  is what can be called, and the disagreement stands in `EnvScalerProgram.notes`.

Attributes that are no JSON when the object is fresh (locks, loggers, nested sets) are not part of the state, and noted.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType, ModuleType
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.environments.adapters.envscaler.attributes import (
    decode_attribute,
    dump_attributes,
    find_unserializable,
    get_state_attributes,
)
from trajsmith.environments.foreign import run_source
from trajsmith.environments.json_data import NotJsonError
from trajsmith.environments.module_state import ModuleState, ModuleValues, module_name
from trajsmith.environments.programs import StateChange, StateDiffer, apply_changes
from trajsmith.environments.session import ToolResult
from trajsmith.environments.signatures import FunctionSignature, read_signature
from trajsmith.environments.tool_metadata import merge_tool_metadata
from trajsmith.environments.toolbox import Toolbox, resolve_result
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    ToolAnnotations,
    content_hash,
    environment_boundary,
    format_first_error,
)


@dataclass(frozen=True)
class ToolMethod:
    """A method that agents have."""

    function: Callable[..., Any]
    signature: FunctionSignature


class EnvScalerProgram:
    """A loaded class.

    Attributes:
        spec: What can be called.
        notes: What is odd about it.
    """

    def __init__(self, payload: JsonObject) -> None:
        self.name: str = payload["name"]
        self.file: str = payload["file"]
        module = run_source(payload["source"], self.file, f"envscaler_{module_name(self.name)}")
        self._class = _find_class(module, payload["class_name"], self.file)
        self._takes_one = _takes_one_argument(self._class)
        self._routines = {name for name, value in inspect.getmembers_static(self._class) if inspect.isroutine(value)}
        self._module = ModuleState(module, payload["source"])
        self.notes: list[str] = list(self._module.notes)
        self.methods = self._read_methods(payload["tools"])
        self.spec = self._describe(payload)
        self.toolbox = Toolbox(self.spec)
        self._unfit: dict[str, str] = {}
        self._states = self._initial(payload["states"])

    def states(self, seed: int) -> list[JsonObject]:
        """The configurations of which the class makes an object, completed by it.

        Raises:
            InputError: It can be made of none of them.
        """
        if not self._states:
            raise InputError(f"{self.file}: no initial state: {self.notes[-1]}; give scenarios that it accepts")
        return self._states

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> "EnvScalerEpisode":
        configuration = apply_changes(state, changes)
        text = StateDiffer(configuration)
        values = self._module.copy_initial_values()
        return EnvScalerEpisode(self, self.make(configuration, apply_changes(state, changes), values), values, text)

    def make(self, configuration: JsonObject, entries: JsonObject, values: ModuleValues) -> object:
        """An object of the class; `configuration` and `entries` are equal, and share nothing.

        Raises:
            EnvironmentFault: It cannot be made of this (kind `state`).
        """
        for name in entries:
            if name.startswith("__") or name in self._routines:
                raise EnvironmentFault("state", self.name, f"{name} is no attribute of a state")
        try:
            with self._module.swap_in(values), environment_boundary(self.name):
                instance = self._class(configuration) if self._takes_one else self._class()
                existing = get_state_attributes(instance)
                for name, value in entries.items():
                    setattr(instance, name, decode_attribute(existing.get(name), value))
        except EnvironmentFault as fault:
            message = f"no {self._class.__name__} can be made of it: {fault.message}"
            raise EnvironmentFault("state", self.name, message) from fault
        return instance

    def dump_state(self, instance: object) -> JsonObject:
        """The state of an object.

        Raises:
            EnvironmentFault: An attribute has become something that is no JSON (kind `state`).
        """
        try:
            return dump_attributes(instance, self._unfit)
        except NotJsonError as error:
            raise EnvironmentFault("state", self.name, str(error)) from error

    def run(self, tool: str, arguments: dict[str, Any], instance: object, values: ModuleValues) -> Any:
        with self._module.swap_in(values), environment_boundary(self.name, tool):
            return resolve_result(self.methods[tool].function.__get__(instance, type(instance))(**arguments))

    def _read_methods(self, tools: list[JsonObject] | None) -> dict[str, ToolMethod]:
        offered = _methods(self._class)
        wanted = list(offered) if tools is None else [tool["name"] for tool in tools]
        methods = {}
        for name in wanted:
            if name not in offered:
                self.notes.append(f"tool {name} is no public method of {self._class.__name__}: it is not offered")
                continue
            where = f"{self.file}:{offered[name].__code__.co_firstlineno}: tool {name}"
            try:
                methods[name] = ToolMethod(offered[name], read_signature(MethodType(offered[name], self._class), where))
            except InputError as error:
                self.notes.append(f"{error}; it is not offered")
        if not methods:
            raise InputError(f"{self.file}:1: class {self._class.__name__} has no method that can be a tool")
        return methods

    def _describe(self, payload: JsonObject) -> EnvironmentSpec:
        schemas = {tool["name"]: tool for tool in payload["tools"] or ()}
        tools = []
        for name, method in self.methods.items():
            shape = merge_tool_metadata(name, method.signature, None, schemas.get(name))
            self.notes += shape.notes
            hints = ToolAnnotations(read_only_hint=payload["reads"].get(name))
            tools.append(shape.tool(self.name, name, hints))
        return EnvironmentSpec(
            name=self.name,
            version=content_hash([payload["source"], [tool.model_dump(mode="json") for tool in tools]], 16),
            description=payload["description"] or inspect.getdoc(self._class) or "",
            policy=payload["policy"],
            tools=tuple(tools),
            source=f"envscaler:{self.file}",
        )

    def _initial(self, states: list[JsonObject]) -> list[JsonObject]:
        loaded = []
        for entry in states or [{"name": "default", "state": "{}"}]:
            try:
                configuration = orjson.loads(entry["state"])
                instance = self.make(configuration, orjson.loads(entry["state"]), self._module.copy_initial_values())
                fresh = {name: text for name, text in find_unserializable(instance).items() if name not in self._unfit}
                self._unfit |= fresh
                self.notes += [f"attribute {name} is not part of the state: {text}" for name, text in fresh.items()]
                loaded.append(self.dump_state(instance))
            except EnvironmentFault as fault:
                self.notes.append(f"state {entry['name']} does not load: {fault.message}")
        return loaded


class EnvScalerEpisode:
    """One episode: an object of its own, and its own values of the module."""

    def __init__(self, program: EnvScalerProgram, instance: object, values: ModuleValues, text: StateDiffer) -> None:
        self._program = program
        self._instance = instance
        self._values = values
        self._text = text

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        program = self._program
        refused = program.toolbox.refusal(tool, arguments, actor)
        if refused is not None:
            return refused
        try:
            parsed = program.methods[tool].signature.parse_arguments(arguments)
        except ValidationError as error:
            return ToolResult.refusal("invalid_arguments", format_first_error(error))
        content = program.toolbox.content(tool, program.run(tool, parsed, self._instance, self._values))
        return program.toolbox.answer(tool, content)

    def changes(self) -> list[StateChange]:
        return self._text.changes(self._program.dump_state(self._instance), self._program.name)


def load(payload: JsonObject) -> EnvScalerProgram:
    """Load a class; see `trajsmith.environments.adapters.envscaler.settings.payload` for what it comes with.

    Raises:
        InputError: Its code does not run, or has no such class; the text names file and line.
    """
    return EnvScalerProgram(payload)


def _find_class(module: ModuleType, wanted: str, file: str) -> type:
    """The class of this name; else the last one with public methods, as published code has it."""
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }
    fitting = [value for value in own.values() if _methods(value)]
    cls = own.get(wanted) if wanted else (fitting[-1] if fitting else None)
    if cls is None:
        there = ", ".join(own) or "none"
        raise InputError(f"{file}:1: no class {wanted or 'with public methods'}; classes there: {there}")
    return cls


def _methods(cls: type) -> dict[str, FunctionType]:
    """Public methods, also inherited ones, in the order of their definition."""
    return {
        name: value
        for base in reversed(cls.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, FunctionType) and not name.startswith("_")
    }


def _takes_one_argument(cls: type) -> bool:
    """Return whether the class can be constructed with one argument."""
    try:
        inspect.signature(cls).bind({})
    except (TypeError, ValueError):
        return False
    return True
