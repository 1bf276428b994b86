"""Runs cases in sessions of one environment, with checkpoints and a time budget."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from trajsmith.envcheck.findings import CaseStep, CheckCase, StartState
from trajsmith.envcheck.state_view import StateRowChange, StateViewer, View
from trajsmith.environments import EnvironmentSource, Session, ToolResult
from trajsmith.grounding import Rewindable, make_rewindable
from trajsmith.records import EnvironmentFault, EnvironmentSpec, InputError, JsonObject

_REASONS = ("error", "message", "reason", "detail", "details", "error_message")
_KEYS_OF_ERROR = 4
"""Keys that an answer about an error has at most; a record with more may have a status of that name."""

TIMED = 12
"""Calls of each tool that are timed."""


class CheckTimeExceeded(Exception):
    """Raised when the time for this check session is over; findings so far count."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Outcome of one call: a result, or a fault of the environment."""

    step: CaseStep
    result: ToolResult | None
    fault: EnvironmentFault | None

    @property
    def ok(self) -> bool:
        return self.result is not None and self.refusal is None

    @property
    def content(self) -> Any:
        return self.result.content if self.result is not None else None

    @property
    def refusal(self) -> str | None:
        """The reason of a refusal; None if the call succeeded or broke."""
        return None if self.result is None else extract_refusal(self.result)

    @property
    def schema_refusal(self) -> bool:
        """Return True if the call was refused because its arguments violate the schema."""
        return self.result is not None and self.result.error == "invalid_arguments"

    @property
    def digest(self) -> str:
        """Equal for equal outcomes."""
        if self.fault is not None:
            return f"fault:{self.fault.kind}"
        return f"{self.result.error}:{self.result.hash}" if self.result is not None else ""


def extract_refusal(result: ToolResult) -> str | None:
    """Return the reason of a refusal, also of one that the environment returns as a success."""
    content = result.content
    if result.error is not None:
        return str(content["error"]) if isinstance(content, dict) and "error" in content else result.text
    if not isinstance(content, dict):
        return None
    inner = content.get("result") if set(content) == {"result"} else content
    if not isinstance(inner, dict):
        return None
    by_status = inner.get("status") in ("error", "failed") and len(inner) <= _KEYS_OF_ERROR
    failed = inner.get("success") is False or inner.get("ok") is False or by_status
    error_value = inner.get("error")
    if failed or (error_value and len(inner) <= 3 and isinstance(error_value, str | dict)):
        return next((str(inner[name]) for name in _REASONS if inner.get(name)), "")
    return None


@dataclass
class StepResult:
    """Result of one executed step of a case."""

    outcome: CallOutcome
    before: View
    after: View

    @cached_property
    def changes(self) -> list[StateRowChange]:
        return self.before.changes(self.after)

    @property
    def changed(self) -> bool:
        return not self.before.equals(self.after)


class ObservedCall(Protocol):
    """A call with the states around it: one of the exploration, or one that was played again."""

    @property
    def outcome(self) -> CallOutcome: ...

    @property
    def before(self) -> View: ...

    @property
    def after(self) -> View: ...

    @property
    def changes(self) -> list[StateRowChange]: ...

    @property
    def changed(self) -> bool: ...


Digests = tuple[str, ...]
"""Of each call: its answer and the state after it."""


@dataclass
class ReplayedCase:
    """One case with the digests of its calls in each place where it was replayed."""

    tool: str
    case: CheckCase
    seen: dict[str, Digests] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        return len(set(self.seen.values())) <= 1

    def first_difference(self) -> CheckCase:
        """The case up to the call that gave something else somewhere."""
        length = 0
        for digests in zip(*self.seen.values(), strict=False):
            length += 1
            if len(set(digests)) > 1:
                break
        return self.case.model_copy(update={"steps": self.case.steps[: max(length, 1)]})


StateCheckpoint = tuple[Any, "View | None"]
"""A point to go back to; opaque."""


class CaseRunner:
    """Runs cases on one environment, in one main session."""

    def __init__(self, source: EnvironmentSource, spec: EnvironmentSpec, viewer: StateViewer, seconds: float) -> None:
        self.source = source
        self.spec = spec
        self.viewer = viewer
        self.calls = 0
        self.by_tool: dict[str, list[float]] = defaultdict(list)
        """Processor seconds of the first calls of each tool, in this process."""
        self._ends = time.monotonic() + seconds
        self._states: dict[int, list[JsonObject]] = {}
        self._main: Rewindable | None = None
        self._marks: dict[StartState, Any] = {}
        self._view: View | None = None

    async def states(self, seed: int) -> list[JsonObject]:
        if seed not in self._states:
            self._states[seed] = await self.source.states(seed)
        return self._states[seed]

    async def state(self, start: StartState) -> JsonObject:
        """An initial state.

        Raises:
            InputError: There is none with this number.
        """
        states = await self.states(start.seed)
        if not 0 <= start.index < len(states):
            raise InputError(f"environment {self.spec.name} has no initial state {start.index} of seed {start.seed}")
        return states[start.index]

    async def session(self) -> Rewindable:
        if self._main is None:
            self._main = make_rewindable(await self.source.open())
        return self._main

    async def open_new_session(self) -> None:
        """Replace the main session by a new one."""
        if self._main is not None:
            await self._main.close()
        self._main, self._marks = None, {}

    async def reset_to(self, start: StartState) -> View:
        """Put the main session at an initial state."""
        self._spend()
        session = await self.session()
        mark = self._marks.get(start)
        if mark is not None:
            await session.rollback(mark)
        else:
            await session.reset(await self.state(start))
            self._marks[start] = await session.checkpoint()
        self._view = None
        return await self.view()

    async def call(self, step: CaseStep) -> CallOutcome:
        """One call in the main session."""
        self._spend()
        self.calls += 1
        self._view = None
        times = self.by_tool[step.tool]
        if len(times) >= TIMED:
            return await execute_step(await self.session(), step)
        started = time.thread_time()
        outcome = await execute_step(await self.session(), step)
        times.append(time.thread_time() - started)
        return outcome

    async def view(self) -> View:
        """The state of the main session."""
        if self._view is None:
            self._view = self.viewer.view(await (await self.session()).snapshot())
        return self._view

    async def mark(self) -> StateCheckpoint:
        return await (await self.session()).checkpoint(), self._view

    async def restore(self, mark: StateCheckpoint) -> None:
        """Undo what was done since a mark."""
        point, view = mark
        await (await self.session()).rollback(point)
        self._view = view

    async def run(self, case: CheckCase) -> list[StepResult]:
        """Run a case from its initial state. A fault ends it; the last result holds the fault."""
        before = await self.reset_to(case.start)
        step_results: list[StepResult] = []
        for step in case.steps:
            if step.do == "reload":
                await self.reload()
                before = await self.view()
                continue
            outcome = await self.call(step)
            after = before if outcome.fault is not None else await self.view()
            step_results.append(StepResult(outcome, before, after))
            before = after
            if outcome.fault is not None:
                await self.reset_to(case.start)
                break
        return step_results

    async def reload(self) -> None:
        """Save the state and go on from it in a new session."""
        old = await self.session()
        state = await old.snapshot()
        self._main = make_rewindable(await self.source.open())
        await self._main.reset(state)
        await old.close()
        self._view = None

    async def close(self) -> None:
        if self._main is not None:
            await self._main.close()

    def _spend(self) -> None:
        if time.monotonic() > self._ends:
            raise CheckTimeExceeded


async def execute_step(session: Session, step: CaseStep) -> CallOutcome:
    """One call; a fault of the environment is an outcome too."""
    try:
        result = await session.call(step.tool, step.arguments, step.actor)
    except EnvironmentFault as fault:
        return CallOutcome(step, None, fault)
    return CallOutcome(step, result, None)
