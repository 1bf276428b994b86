"""What stands in for the MCP server library while a tool file is loaded: it records the tools and serves nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType, MethodType, ModuleType
from typing import Any

from pydantic import ValidationError

from trajectory import ToolAnnotations

Function = Callable[..., Any]
_PLACES = ("mcp.server.fastmcp", "fastmcp")
_PARENTS = ("mcp", "mcp.server")


class ToolRefusal(Exception):
    """What the server library calls `ToolError`: a tool's way to refuse."""


class Context:
    """What a tool gets that asks for the request's context: there is no client to report to."""

    request_id = "call"
    client_id = None

    def info(self, *message: object, **extra: object) -> "_Done":
        return _Done()

    debug = warning = error = log = report_progress = info


class _Done:
    """Something that can be awaited and has ended already."""

    def __await__(self) -> Iterator[None]:
        return iter(())


@dataclass(frozen=True)
class Registered:
    """A tool as the file registers it."""

    name: str
    function: Function
    description: str | None
    annotations: ToolAnnotations


@dataclass
class Recorder:
    """What the servers of a file register while it is loaded."""

    tools: dict[str, Registered] = field(default_factory=dict)
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
        made = Registered(name or function.__name__, function, description, _annotations(annotations))
        if made.name in self.tools:
            self.notes.append(f"tool {made.name} is registered twice; the first one counts")
        self.tools.setdefault(made.name, made)


class Server:
    """Stands in for `FastMCP`. Whatever is no tool is accepted and noted."""

    recorder: Recorder

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
        given = name

        def register(function: Function) -> Function:
            self.recorder.add(function, given, description, annotations)
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


def _annotations(given: object) -> ToolAnnotations:
    if given is None:
        return ToolAnnotations()
    try:
        return ToolAnnotations.model_validate(given, from_attributes=True)
    except ValidationError:
        return ToolAnnotations()


@contextmanager
def server_library(recorder: Recorder) -> Iterator[type[Server]]:
    """Put the stand-in where tool files import the server library from; what was there comes back afterwards."""
    server = type("FastMCP", (Server,), {"recorder": recorder, "__module__": __name__})
    made = _modules(server)
    before = {name: sys.modules.get(name) for name in made}
    sys.modules.update(made)
    try:
        yield server
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


def _modules(server: type[Server]) -> dict[str, ModuleType]:
    made = {name: ModuleType(name) for name in (*_PARENTS, *_PLACES, "mcp.types")}
    for place in _PLACES:
        vars(made[place]).update(FastMCP=server, Context=Context)
        errors = made[f"{place}.exceptions"] = ModuleType(f"{place}.exceptions")
        vars(errors).update(ToolError=ToolRefusal)
    vars(made["mcp.types"]).update(ToolAnnotations=ToolAnnotations)
    vars(made["mcp.server"]).update(FastMCP=server, fastmcp=made["mcp.server.fastmcp"])
    vars(made["mcp"]).update(server=made["mcp.server"], types=made["mcp.types"])
    return made
