"""Execution of programs that a model wrote, call by call, and the proof that they look at what the calls return."""

from collections.abc import Sequence
from typing import Any

import orjson

from trajsmith.environments import Session, ToolResult
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.solutions import LIMITS, SolutionSandbox
from trajsmith.grounding import iterate_leaves
from trajsmith.querygen.programs.execution import ProgramRun
from trajsmith.querygen.programs.source_text import list_literals
from trajsmith.querygen.programs.value_sources import UnknownValue, find_sources
from trajsmith.records import (
    EnvironmentFault,
    EnvironmentSpec,
    FromOutput,
    GoldCall,
    InputError,
    JsonObject,
    JsonValue,
    RecordDropped,
    canonical_json,
    truncate_text,
)

ProgramLimits = SandboxSettings
"""Limits of the sandbox in which programs run."""
MOST_RESULT_LENGTH = 300
"""Characters shown of one result."""


def open_sandbox(source: str, limits: ProgramLimits | None = None) -> SolutionSandbox:
    """Open a sandbox for the text of a program."""
    return SolutionSandbox(source, limits or LIMITS)


class SourceRunner:
    """Runs program texts call by call from one initial state, and keeps the calls with the sources of their arguments.

    Args:
        spec: The environment.
        session: A session of it.
        state: The initial state.
        limits: Limits of the sandbox; None takes the usual ones.
        most: Calls at most.
    """

    def __init__(
        self, spec: EnvironmentSpec, session: Session, state: JsonObject, limits: ProgramLimits | None, most: int
    ) -> None:
        self.tools = {tool.name: tool for tool in spec.tools if tool.actor == "assistant"}
        self.session = session
        self.state = state
        self.limits = limits
        self.most = most
        self.calls: list[GoldCall] = []
        """Calls of the last run."""

    async def run(self, source: str, facts: dict[str, JsonValue] | None = None) -> ProgramRun:
        """Run a program.

        Args:
            source: Its text.
            facts: Keys of what the user says to the values; None asks for no sources, as mutants need none.

        Raises:
            RecordDropped: It fails; the reason says how.
            EnvironmentFault: The environment broke.
        """
        self.calls = []
        await self.session.reset(self.state)
        literals = list_literals(source)

        async def make_call(name: str, arguments: JsonObject) -> ToolResult:
            return await self._call(name, arguments, facts, literals)

        sandbox = open_sandbox(source, self.limits)
        try:
            _, answer = await sandbox.run(make_call, self.most + 1)
        except InputError as error:
            raise RecordDropped("program_no_function", str(error)) from error
        except EnvironmentFault as fault:
            if fault.environment != "solution":
                raise
            endless = fault.kind in ("timeout", "limit")
            raise RecordDropped("program_never_ends" if endless else "program_crashed", fault.message[:300]) from fault
        finally:
            sandbox.close()
        return ProgramRun(calls=self.calls, groups=group_calls(self.calls), answer=answer)

    async def _call(
        self, name: str, arguments: JsonObject, facts: dict[str, JsonValue] | None, literals: Sequence[Any]
    ) -> ToolResult:
        tool = self.tools.get(name)
        if tool is None:
            raise RecordDropped("program_unknown_tool", f"there is no tool {name!r}")
        if len(self.calls) >= self.most:
            raise RecordDropped("program_too_many_calls", f"it makes more than {self.most} calls")
        provenance = {}
        if facts is not None:
            try:
                provenance = find_sources(tool, arguments, self.calls, facts, literals)
            except UnknownValue as unknown:
                raise RecordDropped("program_unknown_value", str(unknown)) from unknown
        before = await self.session.state_hash()
        result = await self.session.call(name, arguments)
        if not result.ok:
            raise RecordDropped("program_refused_call", f"{name} is refused: {result.text[:200]}")
        changed = await self.session.state_hash() != before
        if facts is not None and tool.declares_write and not changed:
            raise RecordDropped("program_idle_write", f"{name} changes nothing with {arguments}")
        effect: Any = "write" if changed else "read"
        self.calls.append(
            GoldCall(tool=name, arguments=arguments, provenance=provenance, effect=effect, result=result.content)
        )
        return result


def group_calls(calls: Sequence[GoldCall]) -> list[int]:
    """Return the group of each call: reads in a row that take nothing from each other commute."""
    groups = list[int]()
    start = 0
    for number, call in enumerate(calls):
        sources = [source.call for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)]
        joins = number > 0 and call.effect == "read" == calls[number - 1].effect and all(n < start for n in sources)
        start = start if joins else number
        groups.append(start)
    return groups


def render_calls(calls: Sequence[GoldCall]) -> str:
    lines = [
        f"{call.tool}({orjson.dumps(call.arguments).decode()}) -> "
        + truncate_text(orjson.dumps(call.result).decode(), MOST_RESULT_LENGTH)
        for call in calls
    ]
    return "\n".join(lines) or "none"


async def prove_dependence(source: str, run: ProgramRun, limits: ProgramLimits | None) -> None:
    """Prove that the text does the same on the recorded results, and something else on others.

    Raises:
        RecordDropped: It does not.
    """
    sandbox, results = open_sandbox(source, limits), [call.result for call in run.calls]
    expected: list[JsonObject] = [{"tool": call.tool, "arguments": call.arguments} for call in run.calls]
    try:
        try:
            again = await sandbox.replay(results)
        except EnvironmentFault as fault:
            raise RecordDropped("program_not_repeatable", fault.message[:200]) from fault
        if again != (expected, run.answer):
            raise RecordDropped("program_not_repeatable", "the same results lead to other calls or another answer")
        for number in reversed(range(len(results))):
            for other in (change_result(results[number]), change_result(results[number], shorten=True)):
                if other != results[number] and await _differs(sandbox, run, number, other):
                    return
    finally:
        sandbox.close()
    raise RecordDropped("program_ignores_results", "with other results it changes the same and answers the same")


async def _differs(sandbox: SolutionSandbox, run: ProgramRun, number: int, other: JsonValue) -> bool:
    """Return True if with another result of one call a program changes something else, or answers something else.

    What the gold run did not call has no result: a program that asks for it is followed no further.
    """
    results: dict[bytes, JsonValue] = {}
    for place, call in enumerate(run.calls):
        results[canonical_json([call.tool, call.arguments])] = other if place == number else call.result
    tools = {call.tool for call in run.calls if call.effect == "write"}
    wanted = [(call.tool, call.arguments) for call in run.calls if call.tool in tools]
    written: list[tuple[str, JsonObject]] = []

    async def make_call(name: str, arguments: JsonObject) -> ToolResult:
        if name in tools:
            written.append((name, arguments))
        key = canonical_json([name, arguments])
        return ToolResult(results[key]) if key in results else ToolResult.refusal("refused", "not recorded")

    try:
        _, answer = await sandbox.run(make_call, 2 * len(run.calls))
    except EnvironmentFault:
        return written != wanted[: len(written)]
    return (written, answer) != (wanted, run.answer)


def change_result(node: JsonValue, shorten: bool = False) -> JsonValue:
    """Return a result with other numbers and texts, or with lists one shorter."""
    if isinstance(node, dict):
        return {key: change_result(inner, shorten) for key, inner in node.items()}
    if isinstance(node, list):
        return [change_result(inner, shorten) for inner in (node[1:] if shorten else node)]
    if isinstance(node, bool) or node is None or shorten:
        return node
    return node * 3 + 1 if isinstance(node, int | float) else f"other {node}"
