"""Execute calls on a draft in the sandbox and show their results and state changes as readable lines."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from trajsmith.envgen.synthesis.answer_schemas import UnitTest
from trajsmith.envgen.synthesis.references import (
    UnresolvedTestReference,
    find_rows,
    get_at_path,
    meets_condition,
    resolve_object,
    resolve_references,
)
from trajsmith.environments import Session, ToolResult
from trajsmith.environments.diff import diff
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, JsonObject, JsonValue

SHOWN_CHARACTERS = 400
"""Characters of a result or of changes that a line shows."""
STATE_SIZES = {"small": 0, "medium": 1, "large": 2}
"""Place of a size among the initial states of a draft's source, which has one of each."""

SEEDS_TRIED = 10
"""Seeds that are looked at for a state that has what a test needs."""


@dataclass(frozen=True)
class ExecutedCall:
    """Executed call with its result and the states before and after it."""

    tool: str
    arguments: JsonObject
    result: ToolResult | None
    """None if the environment broke."""
    fault: str
    before: JsonObject
    after: JsonObject

    @property
    def outcome(self) -> str:
        if self.result is None:
            return f"breaks: {self.fault}"
        if self.result.error is not None:
            return f"refused ({self.result.error}): {self.result.text}"
        return f"answers {shorten_json(self.result.content)}"

    @property
    def changes(self) -> str:
        changes = diff(self.before, self.after)
        if not changes:
            return "changes nothing"
        return (
            "changes "
            f"{shorten_json([one for one in changes if not str(one['path']).startswith('/counters')] or changes)}"
        )

    def line(self) -> str:
        return f"{self.tool}({shorten_json(self.arguments)}) {self.outcome}; {self.changes}"


def shorten_json(value: Any, most: int = SHOWN_CHARACTERS) -> str:
    """Return a value as JSON, cut where it is long."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= most else text[:most] + "…"


def find_actor(spec: EnvironmentSpec, tool: str) -> Actor:
    """Return who calls a tool; the assistant for one that is not there."""
    return next((one.actor for one in spec.tools if one.name == tool), "assistant")


async def execute_call(session: Session, tool: str, arguments: JsonObject) -> ExecutedCall:
    """Execute one call; a fault of the environment is an outcome too."""
    before = await session.snapshot()
    try:
        result = await session.call(tool, arguments, find_actor(session.spec, tool))
        return ExecutedCall(tool, arguments, result, "", before, await session.snapshot())
    except EnvironmentFault as fault:
        return ExecutedCall(tool, arguments, None, f"{fault.kind}: {fault.message}", before, before)


@dataclass
class UnitTestResult:
    """Result of a test."""

    test: UnitTest
    fault: str = ""
    """What is not as the test says; empty if it passed."""
    played: list[ExecutedCall] = field(default_factory=list)
    seed: int = 0
    """The seed from which it was played."""

    @property
    def passed(self) -> bool:
        return not self.fault

    @property
    def lines(self) -> tuple[str, ...]:
        start = f"start from the {self.test.size} state of seed {self.seed}"
        return (start, *(one.line() for one in self.played))


class SessionSource(Protocol):
    """Source of sessions that tests run on: an environment source, or one that starts from another's states."""

    async def states(self, seed: int) -> list[JsonObject]:
        """Return initial states, one of each size, in the order of STATE_SIZES."""

    async def open(self) -> Session:
        """Open a new session."""


async def run_unit_tests(source: SessionSource, tests: Sequence[UnitTest]) -> list[UnitTestResult]:
    """Run every test in a fresh session."""
    session = await source.open()
    try:
        return [await _run_test(source, session, test) for test in tests]
    finally:
        await session.close()


async def _run_test(source: SessionSource, session: Session, test: UnitTest) -> UnitTestResult:
    """A test from the seed that it names; from later ones if what it needs is not in that state."""
    for seed in range(test.seed, test.seed + SEEDS_TRIED):
        verdict = UnitTestResult(test, seed=seed)
        try:
            await session.reset((await source.states(seed))[STATE_SIZES[test.size]])
            verdict.fault = await _find_test_fault(session, test, verdict.played)
        except UnresolvedTestReference as error:
            verdict.fault = f"the test cannot be played, from {SEEDS_TRIED} seeds on: {error}"
            continue
        except EnvironmentFault as fault:
            verdict.fault = f"the environment breaks: {fault}"
        break
    return verdict


async def _find_test_fault(session: Session, test: UnitTest, played: list[ExecutedCall]) -> str:
    """Return the difference from what a test expects; `played` gets its calls.

    Raises:
        Unresolved: What the test needs is not in this state.
    """
    for number, call in enumerate(test.calls):
        state = await session.snapshot()
        results = [one.result.content if one.result else None for one in played]
        played.append(await execute_call(session, call.tool, resolve_object(call.arguments, state, results)))
        if number < len(test.calls) - 1 and not _collect_results(played[-1]):
            return f"call {number} must be answered, but it {played[-1].outcome}"
    try:
        return _find_outcome_fault(test, played)
    except UnresolvedTestReference as error:
        return f"the result is not what the test takes it for: {error}"


def _collect_results(played: ExecutedCall) -> bool:
    return played.result is not None and played.result.ok


def _find_outcome_fault(test: UnitTest, played: list[ExecutedCall]) -> str:
    """Return how the last call differs from what the test expects."""
    last = played[-1]
    if last.result is None:
        return f"the last call {last.outcome}"
    if test.expect == "refused":
        return _find_refusal_fault(test, last, last.result)
    if not last.result.ok:
        return f"the last call must be answered, but it is {last.outcome}"
    if test.unchanged and last.after != last.before:
        return f"the last call must change nothing, but it {last.changes}"
    results: list[JsonValue] = [one.result.content if one.result else None for one in played]
    return _find_result_fault(test, last, results) or _find_rows_fault(test, last, results)


def _find_refusal_fault(test: UnitTest, last: ExecutedCall, result: ToolResult) -> str:
    if result.ok:
        return f"the last call must be refused, but it {last.outcome} and {last.changes}"
    if last.after != last.before:
        return f"the last call is refused, and yet it {last.changes}"
    if test.rule and result.error != "refused":
        return f"rule {test.rule} must be what refuses the last call, but its arguments do: {result.text}"
    if test.rule and "not found" in result.text.lower():
        return f"rule {test.rule} must be what refuses the last call, but what it is about is not there: {result.text}"
    if test.says.lower() not in result.text.lower():
        return f"the refusal must say {test.says!r}, but it says: {result.text}"
    return ""


def _find_result_fault(test: UnitTest, last: ExecutedCall, results: list[JsonValue]) -> str:
    for path, expected in test.result.items():
        wanted = resolve_references(expected, last.before, results)
        value = get_at_path(results[-1], path)
        if not meets_condition(value, wanted):
            return f"{path} of the result must be {shorten_json(wanted)}, but it is {shorten_json(value)}"
    return ""


def _find_rows_fault(test: UnitTest, last: ExecutedCall, results: list[JsonValue]) -> str:
    for change in test.changes:
        where = resolve_object(change.where, last.before, results)
        before = len(list(find_rows(last.before, change.table, where)))
        after = len(list(find_rows(last.after, change.table, where)))
        if after - before != change.by:
            return (
                f"rows of {change.table} with {shorten_json(where)} must become {change.by:+d}, "
                f"but there were {before} and are {after}"
            )
    return ""
