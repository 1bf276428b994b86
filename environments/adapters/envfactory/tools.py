"""The tools of a tool file: their signatures, their shapes, and which functions are administration."""

from dataclasses import dataclass
from types import MethodType, ModuleType

from pydantic import BaseModel

from trajsmith.environments.adapters.envfactory.fastmcp_stub import (
    Function,
    RegisteredTool,
    StubContext,
    ToolRecorder,
)
from trajsmith.environments.module_state import ModuleState
from trajsmith.environments.schemas import tidy_schema
from trajsmith.environments.signatures import FunctionSignature, read_signature
from trajsmith.environments.tool_metadata import merge_tool_metadata
from trajsmith.records import EnvironmentSpec, InputError, JsonObject, content_hash

LOAD, SAVE = "load_scenario", "save_scenario"


@dataclass(frozen=True)
class EnvFactoryTool:
    """A tool that agents have."""

    registered: RegisteredTool
    signature: FunctionSignature
    context: str
    """The parameter that takes the request's context, or nothing."""


def find_admin_function(module: ModuleType, recorder: ToolRecorder, name: str, file: str) -> Function | None:
    """The tool of this name, or the method of the only object in the module that has one."""
    if name in recorder.tools:
        return recorder.tools[name].function
    owners = [value for value in vars(module).values() if callable(vars(type(value)).get(name))]
    if len(owners) > 1:
        raise InputError(f"{file}:1: several objects have {name}: make one of them a tool of that name")
    return MethodType(vars(type(owners[0]))[name], owners[0]) if owners else None


def read_tools(recorder: ToolRecorder, module: ModuleState, hidden: set[str], file: str) -> dict[str, EnvFactoryTool]:
    """All tools that agents have, by name.

    Raises:
        InputError: There are none, or one has a signature that no tool can have.
    """
    unknown = sorted(hidden - recorder.tools.keys() - {LOAD, SAVE})
    if unknown:
        raise InputError(f"{file}: `hide` names {', '.join(unknown)}, which are no tools of it")
    tools = {}
    for name, tool in recorder.tools.items():
        if name in hidden:
            continue
        where = f"{file}:{_line(tool.function)}: tool {name}"
        try:
            module.bind_function(tool.function, module.copy_initial_values())
        except KeyError as error:
            raise InputError(f"{where} is a method of an object that is no module variable") from error
        context = _context(tool.function)
        tools[name] = EnvFactoryTool(tool, read_signature(tool.function, where, (context,) if context else ()), context)
    if not tools:
        raise InputError(f"{file}:1: no tools beside {', '.join(sorted(hidden))}")
    return tools


def build_spec(
    payload: JsonObject, tools: dict[str, EnvFactoryTool], recorder: ToolRecorder, module: ModuleType
) -> tuple[EnvironmentSpec, list[str]]:
    """The specification, and where code and metadata disagree."""
    metadata: JsonObject = payload["metadata"] or {"description": "", "tools": []}
    entries = {entry["name"]: entry for entry in metadata["tools"]}
    notes = [
        f"tool {name} is in the code, but not in the metadata" for name in tools if entries and name not in entries
    ]
    missing = [name for name in entries if name not in recorder.tools]
    notes += [f"tool {name} is in the metadata, but not in the code: it is not offered" for name in missing]
    specs = []
    for name, tool in tools.items():
        shape = merge_tool_metadata(name, tool.signature, tool.registered.description, entries.get(name))
        notes += shape.notes
        specs.append(shape.tool(payload["name"], name, tool.registered.annotations))
    schema = _state_schema(module)
    spec = EnvironmentSpec(
        name=payload["name"],
        version=content_hash([payload["source"], [tool.model_dump(mode="json") for tool in specs], schema], 16),
        description=str(metadata["description"] or " ".join(recorder.instructions) or module.__doc__ or "").strip(),
        tools=tuple(specs),
        state_schema=schema,
        source=f"envfactory:{payload['file']}",
    )
    return spec, notes


def _state_schema(module: ModuleType) -> JsonObject:
    """Schema of the main model: by convention the last of the file's own list of models."""
    models = vars(module).get("Scenario_Schema")
    if isinstance(models, list) and models and isinstance(models[-1], type) and issubclass(models[-1], BaseModel):
        return tidy_schema(models[-1].model_json_schema())
    return {}


def _context(function: Function) -> str:
    hints = function.__annotations__
    return next((name for name, hint in hints.items() if hint is StubContext or hint == "Context"), "")


def _line(function: Function) -> int:
    code = (function.__func__ if isinstance(function, MethodType) else function).__code__
    return int(code.co_firstlineno)
