"""Solution programs of tasks, run in a worker; see `trajsmith.environments.solution_program`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from trajsmith.environments.sandbox.host import WorkerHost
from trajsmith.environments.sandbox.link import SandboxLink
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.session import ToolResult
from trajsmith.records import EnvironmentFault, JsonObject, JsonValue


class _SolutionCall(msgspec.Struct, forbid_unknown_fields=True):
    tool: str
    arguments: dict[str, Any]


class _SolutionRun(msgspec.Struct, forbid_unknown_fields=True):
    """Run of a program as a worker must describe it; it may say anything."""

    calls: list[_SolutionCall]
    pending: _SolutionCall | None
    answer: Any


LIMITS = SandboxSettings(call_seconds=1.0, wall_seconds=10.0, memory_mb=512)
MakeCall = Callable[[str, JsonObject], Awaitable[ToolResult]]


class SolutionSandbox:
    """Runs the Python text of one solution program in a worker of its own.

    Args:
        source: Python text that defines `solve(call)`.
        settings: Limits and mode.
    """

    def __init__(self, source: str, settings: SandboxSettings = LIMITS) -> None:
        self._host = WorkerHost("solution", "solution", {"name": "solution", "source": source}, settings)

    async def replay(self, results: Sequence[JsonValue]) -> tuple[list[JsonObject], JsonValue]:
        """Run a program on the results of a run and return its calls and its answer.

        Raises:
            EnvironmentFault: It crashed, took too long, or asked for another number of calls.
            InputError: Its text is no Python, or has no function `solve`.
        """
        content = await self._run(results)
        if content["pending"] is not None or len(content["calls"]) != len(results):
            raise EnvironmentFault("protocol", self._host.name, "the program makes another number of calls", "solve")
        return content["calls"], content["answer"]

    async def run(self, make_call: MakeCall, limit: int = 50) -> tuple[list[JsonObject], JsonValue]:
        """Run a program whose calls are made one by one, each when the program asks for it.

        Args:
            make_call: Makes a call in the environment.
            limit: Calls at most.

        Raises:
            EnvironmentFault: It crashed, took too long, was refused a call, or made too many of them.
        """
        results: list[JsonValue] = []
        while True:
            content = await self._run(results)
            pending = content["pending"]
            if pending is None:
                return content["calls"], content["answer"]
            if len(results) >= limit:
                raise EnvironmentFault("protocol", self._host.name, f"more than {limit} calls", "solve")
            result = await make_call(pending["tool"], pending["arguments"])
            if not result.ok:
                raise EnvironmentFault("protocol", self._host.name, f"{pending['tool']}: {result.text[:120]}", "solve")
            results.append(result.content)

    async def _run(self, results: Sequence[JsonValue]) -> dict[str, Any]:
        link = SandboxLink(self._host)
        try:
            await link.start(b"{}", ())
            arguments: JsonObject = {"recorded": list(results)}
            result = await link.call("solve", arguments, "assistant", 0)
        finally:
            await link.close()
        try:
            msgspec.convert(result.content if result.ok else None, _SolutionRun)
        except msgspec.ValidationError as error:
            raise EnvironmentFault(
                "protocol", self._host.name, f"the program gave no result: {error}", "solve"
            ) from error
        content: dict[str, Any] = result.content
        return content

    def close(self) -> None:
        """End the worker."""
        self._host.close()
