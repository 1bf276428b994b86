"""Playing calls on a draft in the sandbox: what each answered and what it changed, as lines that people can read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from envgen.synthesis.parts import UnitTest
from envgen.synthesis.references import Unresolved, at_path, fits, resolved, resolved_object, rows_where
from environments import Session, ToolResult
from environments.diff import diff
from trajectory import EnvironmentFault, JsonObject, JsonValue

SHOWN = 400
"""Characters of a result or of changes that a line shows."""
SIZES = {"small": 0, "medium": 1, "large": 2}
"""Place of a size among the initial states of a draft's source, which has one of each."""

SEEDS = 10
"""Seeds that are looked at for a state that has what a test needs."""


@dataclass(frozen=True)
class Played:
    """One call that was made."""

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
        return f"answers {short(self.result.content)}"

    @property
    def changes(self) -> str:
        found = diff(self.before, self.after)
        if not found:
            return "changes nothing"
        return f"changes {short([one for one in found if not str(one['path']).startswith('/counters')] or found)}"

    def line(self) -> str:
        return f"{self.tool}({short(self.arguments)}) {self.outcome}; {self.changes}"


def short(value: Any, most: int = SHOWN) -> str:
    """A value as JSON, cut where it is long."""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= most else text[:most] + "…"


async def play(session: Session, tool: str, arguments: JsonObject) -> Played:
    """Make one call; a fault of the environment is an outcome too."""
    before = await session.snapshot()
    try:
        result = await session.call(tool, arguments)
        return Played(tool, arguments, result, "", before, await session.snapshot())
    except EnvironmentFault as fault:
        return Played(tool, arguments, None, f"{fault.kind}: {fault.message}", before, before)


@dataclass
class Verdict:
    """What a test came to."""

    test: UnitTest
    fault: str = ""
    """What is not as the test says; empty if it passed."""
    played: list[Played] = field(default_factory=list)
    seed: int = 0
    """The seed from which it was played."""

    @property
    def passed(self) -> bool:
        return not self.fault

    @property
    def lines(self) -> tuple[str, ...]:
        start = f"start from the {self.test.size} state of seed {self.seed}"
        return (start, *(one.line() for one in self.played))


class Stage(Protocol):
    """What tests are played on: any source of environments, or the sessions of one from the states of another."""

    async def states(self, seed: int) -> list[JsonObject]:
        """Initial states, one of each size, in the order of SIZES."""

    async def open(self) -> Session:
        """A new session."""


async def run_tests(source: Stage, tests: Sequence[UnitTest]) -> list[Verdict]:
    """Play every test in a session that starts anew."""
    session = await source.open()
    try:
        return [await _run(source, session, test) for test in tests]
    finally:
        await session.close()


async def _run(source: Stage, session: Session, test: UnitTest) -> Verdict:
    """A test from the seed that it names; from later ones if what it needs is not in that state."""
    for seed in range(test.seed, test.seed + SEEDS):
        verdict = Verdict(test, seed=seed)
        try:
            await session.reset((await source.states(seed))[SIZES[test.size]])
            verdict.fault = await _played(session, test, verdict.played)
        except Unresolved as error:
            verdict.fault = f"the test cannot be played, from {SEEDS} seeds on: {error}"
            continue
        except EnvironmentFault as fault:
            verdict.fault = f"the environment breaks: {fault}"
        break
    return verdict


async def _played(session: Session, test: UnitTest, played: list[Played]) -> str:
    """What is not as a test says; `played` gets its calls.

    Raises:
        Unresolved: What the test needs is not in this state.
    """
    for number, call in enumerate(test.calls):
        state = await session.snapshot()
        results = [one.result.content if one.result else None for one in played]
        played.append(await play(session, call.tool, resolved_object(call.arguments, state, results)))
        if number < len(test.calls) - 1 and not _answered(played[-1]):
            return f"call {number} must be answered, but it {played[-1].outcome}"
    try:
        return _wrong(test, played)
    except Unresolved as error:
        return f"the result is not what the test takes it for: {error}"


def _answered(played: Played) -> bool:
    return played.result is not None and played.result.ok


def _wrong(test: UnitTest, played: list[Played]) -> str:
    """What the last call did otherwise than the test says."""
    last = played[-1]
    if last.result is None:
        return f"the last call {last.outcome}"
    if test.expect == "refused":
        return _wrong_refusal(test, last, last.result)
    if not last.result.ok:
        return f"the last call must be answered, but it is {last.outcome}"
    if test.unchanged and last.after != last.before:
        return f"the last call must change nothing, but it {last.changes}"
    results: list[JsonValue] = [one.result.content if one.result else None for one in played]
    return _wrong_result(test, last, results) or _wrong_rows(test, last, results)


def _wrong_refusal(test: UnitTest, last: Played, result: ToolResult) -> str:
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


def _wrong_result(test: UnitTest, last: Played, results: list[JsonValue]) -> str:
    for path, told in test.result.items():
        wanted = resolved(told, last.before, results)
        value = at_path(results[-1], path)
        if not fits(value, wanted):
            return f"{path} of the result must be {short(wanted)}, but it is {short(value)}"
    return ""


def _wrong_rows(test: UnitTest, last: Played, results: list[JsonValue]) -> str:
    for change in test.changes:
        where = resolved_object(change.where, last.before, results)
        before = len(list(rows_where(last.before, change.table, where)))
        after = len(list(rows_where(last.after, change.table, where)))
        if after - before != change.by:
            return (
                f"rows of {change.table} with {short(where)} must become {change.by:+d}, "
                f"but there were {before} and are {after}"
            )
    return ""
