"""Check functions from outside (a model wrote them) as a program, so that they run where foreign code runs.

A check is a function of `(initial_state, final_state, answer)` that returns True or False.
"""

import orjson

from trajsmith.environments.function_program import FunctionProgram
from trajsmith.environments.session import ToolResult
from trajsmith.records import Actor, EnvironmentFault, JsonObject, environment_boundary

_TOOL = "check"


class CheckProgram(FunctionProgram):
    """One check function."""

    def __init__(self, name: str, source: str, function: str) -> None:
        says = f"check {name}: its code has no function {function!r}"
        super().__init__(name, source, function, _TOOL, says, ("initial", "final", "answer"))

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Run it; only True and False are verdicts, and only of a function that leaves alone what it is given."""
        before = orjson.dumps(arguments)
        with environment_boundary(self.spec.name, tool):
            verdict = self.function(arguments["initial"], arguments["final"], arguments["answer"])
        if _dumped(arguments) != before:
            raise EnvironmentFault("state", self.spec.name, "the check changed its arguments", tool)
        if verdict is not True and verdict is not False:
            raise EnvironmentFault("output_schema", self.spec.name, "a check must return True or False", tool)
        return ToolResult({"result": verdict})


def _dumped(arguments: JsonObject) -> bytes:
    """The arguments as JSON, or nothing if they are none any more."""
    try:
        return orjson.dumps(arguments)
    except TypeError:
        return b""


def load(payload: JsonObject) -> CheckProgram:
    """Load a check from `{"name", "source", "function"}`."""
    return CheckProgram(payload["name"], payload["source"], payload["function"])
