"""Check functions from outside (a model wrote them) as a program, so that they run where foreign code runs.

A check is a function of `(initial_state, final_state, answer)` that returns True or False.
"""

from collections.abc import Sequence

import orjson

from trajsmith.environments.foreign import run_source
from trajsmith.environments.programs import StateChange
from trajsmith.environments.session import ToolResult
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    ToolSpec,
    content_hash,
    environment_boundary,
)

_TOOL = "check"


class CheckProgram:
    """One check function; an episode has no state."""

    def __init__(self, name: str, source: str, function: str) -> None:
        check = vars(run_source(source, f"{name}.py", "check_code")).get(function)
        if not callable(check):
            raise InputError(f"check {name}: its code has no function {function!r}")
        schema: JsonObject = {"type": "object", "properties": {"initial": {}, "final": {}, "answer": {}}}
        self._function = check
        self.notes: list[str] = []
        self.spec = EnvironmentSpec(
            name=name,
            version=content_hash(source, 16),
            description="A check function.",
            tools=(ToolSpec(server=name, name=_TOOL, input_schema=schema),),
            source="check",
        )

    def states(self, seed: int) -> list[JsonObject]:
        return [{}]

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> "CheckProgram":
        return self

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Run it; only True and False are verdicts, and only of a function that leaves alone what it is given."""
        before = orjson.dumps(arguments)
        with environment_boundary(self.spec.name, tool):
            verdict = self._function(arguments["initial"], arguments["final"], arguments["answer"])
        if _dumped(arguments) != before:
            raise EnvironmentFault("state", self.spec.name, "the check changed its arguments", tool)
        if verdict is not True and verdict is not False:
            raise EnvironmentFault("output_schema", self.spec.name, "a check must return True or False", tool)
        return ToolResult({"result": verdict})

    def changes(self) -> list[StateChange]:
        return []


def _dumped(arguments: JsonObject) -> bytes:
    """The arguments as JSON, or nothing if they are none any more."""
    try:
        return orjson.dumps(arguments)
    except TypeError:
        return b""


def load(payload: JsonObject) -> CheckProgram:
    """Load a check from `{"name", "source", "function"}`."""
    return CheckProgram(payload["name"], payload["source"], payload["function"])
