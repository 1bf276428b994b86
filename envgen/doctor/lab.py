"""Where cases are played: sessions of one environment, going back in them, and the budget."""

import time
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from envgen.doctor.case import Case, Start, Step
from envgen.doctor.view import Change, View, Viewer
from environments import EnvironmentSource, Session, ToolResult
from grounding.rewind import Rewindable, rewindable
from trajectory import EnvironmentFault, EnvironmentSpec, InputError, JsonObject

_REASONS = ("error", "message", "reason", "detail", "details", "error_message")


TIMED = 12
"""Calls of each tool that are timed."""


class OutOfBudget(Exception):
    """The time for this examination is over; what was found so far counts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: a result, or a fault of the environment."""

    step: Step
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
        return None if self.result is None else refusal_text(self.result)

    @property
    def schema_refusal(self) -> bool:
        """True if the call was refused for the shape of its arguments."""
        return self.result is not None and self.result.error == "invalid_arguments"

    @property
    def digest(self) -> str:
        """Equal for equal outcomes."""
        if self.fault is not None:
            return f"fault:{self.fault.kind}"
        return f"{self.result.error}:{self.result.hash}" if self.result is not None else ""


def refusal_text(result: ToolResult) -> str | None:
    """The reason of a refusal, also of one that the environment answers as if it were a success."""
    content = result.content
    if result.error is not None:
        return str(content["error"]) if isinstance(content, dict) and "error" in content else result.text
    if not isinstance(content, dict):
        return None
    inner = content.get("result") if set(content) == {"result"} else content
    if not isinstance(inner, dict):
        return None
    failed = inner.get("success") is False or inner.get("ok") is False or inner.get("status") in ("error", "failed")
    told = inner.get("error")
    if failed or (told and len(inner) <= 3 and isinstance(told, str | dict)):
        return next((str(inner[name]) for name in _REASONS if inner.get(name)), "")
    return None


@dataclass
class Shot:
    """One step of a case that was played."""

    outcome: Outcome
    before: View
    after: View

    @cached_property
    def changes(self) -> list[Change]:
        return self.before.changes(self.after)

    @property
    def changed(self) -> bool:
        return not self.before.equals(self.after)


Mark = tuple[Any, "View | None"]
"""A point to go back to; opaque."""


class Lab:
    """Plays cases on one environment, in one main session."""

    def __init__(self, source: EnvironmentSource, spec: EnvironmentSpec, viewer: Viewer, seconds: float) -> None:
        self.source = source
        self.spec = spec
        self.viewer = viewer
        self.calls = 0
        self.by_tool: dict[str, list[float]] = defaultdict(list)
        """Processor seconds of the first calls of each tool, in this process."""
        self._ends = time.monotonic() + seconds
        self._states: dict[int, list[JsonObject]] = {}
        self._main: Rewindable | None = None
        self._marks: dict[Start, Any] = {}
        self._view: View | None = None

    async def states(self, seed: int) -> list[JsonObject]:
        if seed not in self._states:
            self._states[seed] = await self.source.states(seed)
        return self._states[seed]

    async def state(self, start: Start) -> JsonObject:
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
            self._main = rewindable(await self.source.open())
        return self._main

    async def renew(self) -> None:
        """Put a new session in the place of the main one."""
        if self._main is not None:
            await self._main.close()
        self._main, self._marks = None, {}

    async def begin(self, start: Start) -> View:
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

    async def call(self, step: Step) -> Outcome:
        """One call in the main session."""
        self._spend()
        self.calls += 1
        self._view = None
        times = self.by_tool[step.tool]
        if len(times) >= TIMED:
            return await call(await self.session(), step)
        started = time.thread_time()
        outcome = await call(await self.session(), step)
        times.append(time.thread_time() - started)
        return outcome

    async def view(self) -> View:
        """The state of the main session."""
        if self._view is None:
            self._view = self.viewer.view(await (await self.session()).snapshot())
        return self._view

    async def mark(self) -> Mark:
        return await (await self.session()).checkpoint(), self._view

    async def back(self, mark: Mark) -> None:
        """Undo what was done since a mark."""
        point, view = mark
        await (await self.session()).rollback(point)
        self._view = view

    async def run(self, case: Case) -> list[Shot]:
        """Play a case from its initial state. A fault ends it; the shot that shows the fault is the last one."""
        before = await self.begin(case.start)
        shots: list[Shot] = []
        for step in case.steps:
            if step.do == "reload":
                await self.reload()
                before = await self.view()
                continue
            outcome = await self.call(step)
            after = before if outcome.fault is not None else await self.view()
            shots.append(Shot(outcome, before, after))
            before = after
            if outcome.fault is not None:
                await self.begin(case.start)
                break
        return shots

    async def reload(self) -> None:
        """Save the state and go on from it in a new session."""
        old = await self.session()
        state = await old.snapshot()
        self._main = rewindable(await self.source.open())
        await self._main.reset(state)
        await old.close()
        self._view = None

    async def close(self) -> None:
        if self._main is not None:
            await self._main.close()

    def _spend(self) -> None:
        if time.monotonic() > self._ends:
            raise OutOfBudget


async def call(session: Session, step: Step) -> Outcome:
    """One call; a fault of the environment is an outcome too."""
    try:
        result = await session.call(step.tool, step.arguments, step.actor)
    except EnvironmentFault as fault:
        return Outcome(step, None, fault)
    return Outcome(step, result, None)
