"""What stands in for the MCP server library while a tool file is loaded: it records the tools and serves nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

from pydantic import ValidationError

from trajsmith.records import ToolAnnotations

Function = Callable[..., Any]
_PLACES = ("mcp.server.fastmcp", "fastmcp")
_PARENTS = ("mcp", "mcp.server")


class ToolRefusal(Exception):
    """Refusal of a tool; the server library calls it `ToolError`."""


class StubContext:
    """Stub of the request's context, for tools that ask for one: there is no client to report to."""

    request_id = "call"
    client_id = None

    def info(self, *message: object, **extra: object) -> "_CompletedAwaitable":
        return _CompletedAwaitable()

    debug = warning = error = log = report_progress = info


class _CompletedAwaitable:
    """Something that can be awaited and has ended already."""

    def __await__(self) -> Iterator[None]:
        return iter(())


@dataclass(frozen=True)
class RegisteredTool:
    """A tool as the file registers it."""

    name: str
    function: Function
    description: str | None
    annotations: ToolAnnotations


@dataclass
class ToolRecorder:
    """Record of the tools that a file's servers register while it is loaded."""

    tools: dict[str, RegisteredTool] = field(default_factory=dict)
    instructions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, function: object, name: object, description: object, annotations: object) -> None:
        """Record a tool.

        Raises:
            TypeError: It is none; whoever loads the file says on which line.
        """
        if not isinstance(function, FunctionType | MethodType):
            raise TypeError(f"a tool is a function, this one is of type {type(function).__name__}")
        if not isinstance(name, str | None) or not isinstance(description, str | None):
            raise TypeError("name and description of a tool are texts")
        tool = RegisteredTool(name or function.__name__, function, description, _annotations(annotations))
        if tool.name in self.tools:
            self.notes.append(f"tool {tool.name} is registered twice; the first one counts")
        self.tools.setdefault(tool.name, tool)


class StubFastMCP:
    """Stands in for `FastMCP`. Whatever is no tool is accepted and noted."""

    recorder: ToolRecorder

    def __init__(
        self, name: str | None = None, instructions: str | None = None, *more: object, **settings: object
    ) -> None:
        self.name = name or "FastMCP"
        self.instructions = instructions
        if instructions:
            self.recorder.instructions.append(instructions)

    def tool(
        self,
        name: str | Function | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: object = None,
        **settings: object,
    ) -> Function:
        """Used as `@mcp.tool`, `@mcp.tool()`, `@mcp.tool("name")` and `mcp.tool(name=...)(function)`."""
        if callable(name):
            self.recorder.add(name, None, description, annotations)
            return name
        tool_name = name

        def register(function: Function) -> Function:
            self.recorder.add(function, tool_name, description, annotations)
            return function

        return register

    def add_tool(
        self,
        fn: Function,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: object = None,
        **settings: object,
    ) -> None:
        self.recorder.add(fn, name, description, annotations)

    def resource(self, *arguments: object, **settings: object) -> Function:
        """Resources, prompts and routes are no tools; their functions stay ordinary functions."""

        def keep(function: Function) -> Function:
            self.recorder.notes.append(f"{function.__name__} is a resource, prompt or route: it is not offered")
            return function

        return keep

    prompt = custom_route = completion = resource

    def run(self, *arguments: object, **settings: object) -> None:
        self.recorder.notes.append("the file starts its server when it is loaded; it is served from here instead")


def _annotations(value: object) -> ToolAnnotations:
    if value is None:
        return ToolAnnotations()
    try:
        return ToolAnnotations.model_validate(value, from_attributes=True)
    except ValidationError:
        return ToolAnnotations()


@contextmanager
def install_stub_library(recorder: ToolRecorder) -> Iterator[type[StubFastMCP]]:
    """Put the stand-in where tool files import the server library from; what was there comes back afterwards."""
    server = type("FastMCP", (StubFastMCP,), {"recorder": recorder, "__module__": __name__})
    modules = _modules(server)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield server
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _modules(server: type[StubFastMCP]) -> dict[str, ModuleType]:
    modules = {name: ModuleType(name) for name in (*_PARENTS, *_PLACES, "mcp.types")}
    for place in _PLACES:
        vars(modules[place]).update(FastMCP=server, Context=StubContext)
        errors = modules[f"{place}.exceptions"] = ModuleType(f"{place}.exceptions")
        vars(errors).update(ToolError=ToolRefusal)
    vars(modules["mcp.types"]).update(ToolAnnotations=ToolAnnotations)
    vars(modules["mcp.server"]).update(FastMCP=server, fastmcp=modules["mcp.server.fastmcp"])
    vars(modules["mcp"]).update(server=modules["mcp.server"], types=modules["mcp.types"])
    return modules
