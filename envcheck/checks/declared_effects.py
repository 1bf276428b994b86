"""Declared effects against real ones."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import CallCheck, Check, Suspicion
from trajsmith.envcheck.checks.call_contract import MANY_STATES, describe_changes
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, Severity
from trajsmith.envcheck.state_view import is_counter_change
from trajsmith.grounding import is_identifier, split_name
from trajsmith.records import JsonObject, ToolSpec

WRITING = frozenset({
    "create", "add", "insert", "update", "delete", "remove", "set", "cancel", "book", "place", "register", "edit",
    "rename", "move", "enroll", "assign", "unassign", "mark", "archive", "transfer", "deposit", "withdraw", "approve",
})  # fmt: skip
"""First words of tools that say that something is changed."""
MAKING = frozenset({"create", "add", "insert", "register", "book", "place"})
"""Those of them that say that something new is there afterwards."""
ENOUGH = 4
"""Successful calls before a tool counts as one that never changes anything."""
CONVENTION = 0.9
"""Share of an environment's tools that must keep a rule before it counts as the convention."""
STRICT = 3
"""Tools that must refuse to do again what they have done."""


class ReadOnlyEffect(CallCheck):
    """A tool that is declared as reading does not change the state."""

    name: ClassVar[str] = "effect"
    about: ClassVar[str] = "a tool that declares to read only does not change the state"

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        if check_session.tools[seen.outcome.step.tool].annotations.read_only_hint and seen.outcome.refusal is None:
            yield "", f"{seen.outcome.step.tool} declares that it only reads, and changes the state", {}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        if seen.outcome.fault is not None or not seen.changed:
            return None
        return CaseEvidence(seen=describe_changes(seen), expected="the state as it was")


def is_meaningful_change(seen: ObservedCall) -> bool:
    """Return True if a call changed more than identifier counters."""
    return seen.changed and not all(is_counter_change(change) for change in seen.changes)


class WriteEffect(Check):
    """A tool that is declared as writing, or named so, changes the state."""

    name: ClassVar[str] = "writes"
    about: ClassVar[str] = "a tool that declares or says that it changes something does"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return is_named_as_write(tool) and len(check_session.explored.succeeded(tool.name)) >= ENOUGH

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            calls = check_session.explored.succeeded(tool.name)
            different = {str(seen.step.arguments) for seen in calls}
            if self.is_applicable(check_session, tool) and not any(is_meaningful_change(seen) for seen in calls):
                if len(different) < min(ENOUGH, 1 + len(tool.parameters)):
                    continue
                yield Suspicion(
                    tool.name,
                    "",
                    f"{tool.name} is a tool that writes, and none of its {len(calls)} successful calls "
                    "changed anything",
                    calls[0].case(),
                    CaseEvidence(seen="the state as it was", expected="a change"),
                    self._severity(check_session, tool),
                )

    def _severity(self, check_session: CheckSession, tool: ToolSpec) -> Severity:
        """From few initial states it may just never have been possible; less so if it says that it makes something."""
        views = len(check_session.data.views)
        declared = tool.annotations.read_only_hint is False and views >= MANY_STATES
        return "warning" if declared or (split_name(tool.name)[0] in MAKING and views > 1) else "note"


def is_named_as_write(tool: ToolSpec) -> bool:
    if tool.annotations.read_only_hint is not None:
        return not tool.annotations.read_only_hint
    return split_name(tool.name)[:1] != () and split_name(tool.name)[0] in WRITING


class SilentWrite(CallCheck):
    """A write that succeeds changes something."""

    name: ClassVar[str] = "silent_write"
    about: ClassVar[str] = "a write that is answered with success changes something"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(is_meaningful_change(seen) for seen in check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        strict = self._refuses_noop_writes(check_session)
        async for suspicion in super().look(check_session):
            calls = check_session.explored.succeeded(suspicion.tool or "")
            silent = sum(not is_meaningful_change(seen) for seen in calls)
            if 0 < silent < len(calls):
                severity: Severity = "warning" if strict else "note"
                yield Suspicion(suspicion.tool, suspicion.topic, suspicion.message, suspicion.case, severity=severity)

    def _requested_values(self, check_session: CheckSession, step: CaseStep) -> dict[str, Any]:
        """Arguments that say what is to be, beside those that name what it is about."""
        named = {
            leaf.path
            for leaf in check_session.sampler.leaves[step.tool]
            if is_identifier(leaf.name) or check_session.sampler.is_reference(step.tool, leaf)
        }
        values = {name: value for name, value in step.arguments.items() if name not in named and value is not None}
        return values or (
            {} if set(check_session.tools[step.tool].parameters) - named else dict(step.arguments) or {"": ""}
        )

    def _refuses_noop_writes(self, check_session: CheckSession) -> bool:
        """Return True if nearly all writing tools refuse calls that would change nothing."""
        if check_session.strict is None:
            check_session.strict = self._is_strict(check_session)
        return check_session.strict

    def _is_strict(self, check_session: CheckSession) -> bool:
        """Judged by calls that were made again at once: what is so already is refused, by nearly every tool."""
        refuses, allows = set(), set()
        for seen in check_session.explored.observations:
            again = bool(seen.prefix) and seen.prefix[-1] == seen.step
            if again and seen.outcome.refusal is not None:
                refuses.add(seen.tool)
            elif again and seen.ok and not is_meaningful_change(seen):
                allows.add(seen.tool)
        return len(refuses - allows) >= STRICT and len(allows) <= (1 - CONVENTION) * len(refuses | allows) + 1

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        if seen.outcome.ok and is_named_as_write(check_session.tools[seen.outcome.step.tool]):
            yield "", f"{seen.outcome.step.tool} answers with success and changes nothing", {}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        if not seen.outcome.ok or is_meaningful_change(seen):
            return None
        asked = self._requested_values(check_session, seen.outcome.step)
        was_so = all(str(value).casefold() in seen.before.text for value in asked.values())
        if not asked or (was_so and not self._refuses_noop_writes(check_session)):
            return None
        return CaseEvidence(seen="success, and the state as it was", expected="a change, or a refusal")
