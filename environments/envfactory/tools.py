"""The tools of a tool file: their signatures, their shapes, and which functions are administration."""

from dataclasses import dataclass
from types import MethodType, ModuleType

from pydantic import BaseModel

from environments.agreement import agreed_shape
from environments.envfactory.standin import Context, Function, Recorder, Registered
from environments.module_state import ModuleState
from environments.schemas import tidy
from environments.signatures import Signature, read_signature
from trajectory import EnvironmentSpec, InputError, JsonObject, content_hash

LOAD, SAVE = "load_scenario", "save_scenario"


@dataclass(frozen=True)
class Tool:
    """A tool that agents have."""

    registered: Registered
    signature: Signature
    context: str
    """The parameter that takes the request's context, or nothing."""


def administration(module: ModuleType, recorder: Recorder, name: str, file: str) -> Function | None:
    """The tool of this name, or the method of the only object in the module that has one."""
    if name in recorder.tools:
        return recorder.tools[name].function
    owners = [value for value in vars(module).values() if callable(vars(type(value)).get(name))]
    if len(owners) > 1:
        raise InputError(f"{file}:1: several objects have {name}: make one of them a tool of that name")
    return MethodType(vars(type(owners[0]))[name], owners[0]) if owners else None


def read_tools(recorder: Recorder, module: ModuleState, hidden: set[str], file: str) -> dict[str, Tool]:
    """All tools that agents have, by name.

    Raises:
        InputError: There are none, or one has a signature that no tool can have.
    """
    unknown = sorted(hidden - recorder.tools.keys() - {LOAD, SAVE})
    if unknown:
        raise InputError(f"{file}: `hide` names {', '.join(unknown)}, which are no tools of it")
    found = {}
    for name, tool in recorder.tools.items():
        if name in hidden:
            continue
        where = f"{file}:{_line(tool.function)}: tool {name}"
        try:
            module.bound(tool.function, module.fresh())
        except KeyError as error:
            raise InputError(f"{where} is a method of an object that is no module variable") from error
        context = _context(tool.function)
        found[name] = Tool(tool, read_signature(tool.function, where, (context,) if context else ()), context)
    if not found:
        raise InputError(f"{file}:1: no tools beside {', '.join(sorted(hidden))}")
    return found


def described(
    payload: JsonObject, tools: dict[str, Tool], recorder: Recorder, module: ModuleType
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
        shape = agreed_shape(name, tool.signature, tool.registered.description, entries.get(name))
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
        return tidy(models[-1].model_json_schema())
    return {}


def _context(function: Function) -> str:
    hints = function.__annotations__
    return next((name for name, hint in hints.items() if hint is Context or hint == "Context"), "")


def _line(function: Function) -> int:
    code = (function.__func__ if isinstance(function, MethodType) else function).__code__
    return int(code.co_firstlineno)
