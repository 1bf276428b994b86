"""One function of source text from outside as a program of the sandbox; an episode has no state."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

from trajsmith.environments.foreign import run_source
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import ToolResult
from trajsmith.records import Actor, EnvironmentSpec, InputError, JsonObject, ToolSpec, content_hash


class FunctionProgram(ABC):
    """Base of programs whose only tool calls a function of a text; subclasses make the call.

    Args:
        name: Name in texts.
        source: Python text that defines the function.
        function: Name of the function.
        tool: Name of the tool.
        says: The program and its function in words, for the error if there is no such function.
        inputs: Arguments of the tool.
    """

    def __init__(self, name: str, source: str, function: str, tool: str, says: str, inputs: Sequence[str]) -> None:
        loaded = vars(run_source(source, f"{name}.py", f"{tool}_code")).get(function)
        if not callable(loaded):
            raise InputError(says)
        schema: JsonObject = {"type": "object", "properties": {one: {} for one in inputs}}
        self.function: Callable[..., Any] = loaded
        self.notes: list[str] = []
        self.spec = EnvironmentSpec(
            name=name,
            version=content_hash(source, 16),
            description=f"A function {function}.",
            tools=(ToolSpec(server=name, name=tool, input_schema=schema),),
            source=tool,
        )

    def states(self, seed: int) -> list[JsonObject]:
        """Return the only state, which is empty."""
        return [{}]

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> Self:
        """Return this program as an episode."""
        return self

    @abstractmethod
    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call the function."""

    def changes(self) -> list[StateChange]:
        """Return no change."""
        return []
