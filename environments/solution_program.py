"""Solution programs of tasks as a program of the sandbox: Python text over a recording of tool results.

`solve(call)` is run against the results that are known so far. Where it asks for a call that is not among them, the
host makes the call and runs the function again: the code itself never reaches an environment.
"""

import contextlib
from typing import Any

import orjson

from trajsmith.environments.function_program import FunctionProgram
from trajsmith.environments.session import ToolResult
from trajsmith.records import Actor, JsonObject, environment_boundary

TOOL = "solve"
MOST_CALLS = 200
"""Calls of one program: more are a loop that never ends."""


class _Pending(BaseException):
    """The program asks for a call that nobody has made yet; no handler for `Exception` in it stops this."""


class SolutionCode(FunctionProgram):
    """One program."""

    def __init__(self, name: str, source: str) -> None:
        says = f"program {name}: its code has no function solve(call)"
        super().__init__(name, source, "solve", TOOL, says, ("recorded",))

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Run a program on a recording; the result holds the calls that it made, and its answer or its next call."""
        recorded, calls = arguments["recorded"], list[JsonObject]()
        pending: list[JsonObject] = []

        def call(name: str, /, **keywords: Any) -> Any:
            request = {"tool": name, "arguments": keywords}
            if len(calls) == len(recorded):
                pending.append(request)
                raise _Pending
            if len(calls) >= MOST_CALLS:
                raise RuntimeError(f"more than {MOST_CALLS} calls")
            calls.append(request)
            return orjson.loads(orjson.dumps(recorded[len(calls) - 1]))

        answer = None
        with environment_boundary(self.spec.name, tool), contextlib.suppress(_Pending):
            answer = self.function(call)
        return ToolResult({"calls": calls, "pending": pending[0] if pending else None, "answer": answer})


def load(payload: JsonObject) -> SolutionCode:
    """Load a program from `{"name", "source"}`."""
    return SolutionCode(payload["name"], payload["source"])
