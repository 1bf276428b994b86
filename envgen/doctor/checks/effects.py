"""Declared effects against real ones."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Evidence, Severity, Step
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import MANY_STATES, told_changes
from envgen.doctor.checks.watching import CallCheck, Seen
from envgen.doctor.view import counts_only
from grounding.names import is_identifier, words
from trajectory import JsonObject, ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

WRITING = frozenset({
    "create", "add", "insert", "update", "delete", "remove", "set", "cancel", "book", "place", "register", "edit",
    "rename", "move", "enroll", "assign", "unassign", "mark", "archive", "transfer", "deposit", "withdraw", "approve",
})  # fmt: skip
"""First words of tools that say that something is changed."""
MAKING = frozenset({"create", "add", "insert", "register", "book", "place"})
"""Those of them that say that something new is there afterwards."""
ENOUGH = 4
"""Successful calls before a tool counts as one that never changes anything."""
HOUSE = 0.9
"""Share of an environment's tools that must keep a rule before it counts as the rule of the house."""
STRICT = 3
"""Tools that must refuse to do again what they have done."""


class Effect(CallCheck):
    """A tool that is declared as reading does not change the state."""

    name: ClassVar[str] = "effect"
    about: ClassVar[str] = "a tool that declares to read only does not change the state"

    def topics(self, exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, JsonObject]]:
        if exam.tools[seen.outcome.step.tool].annotations.read_only_hint and seen.outcome.refusal is None:
            yield "", f"{seen.outcome.step.tool} declares that it only reads, and changes the state", {}

    def see(self, exam: "Exam", seen: Seen, about: JsonObject) -> Evidence | None:
        if seen.outcome.fault is not None or not seen.changed:
            return None
        return Evidence(seen=told_changes(seen), expected="the state as it was")


def matters(seen: Seen) -> bool:
    """True if a call changed more than the counters that identifiers come from."""
    return seen.changed and not all(counts_only(change) for change in seen.changes)


class Writes(Check):
    """A tool that is declared as writing, or named so, changes the state."""

    name: ClassVar[str] = "writes"
    about: ClassVar[str] = "a tool that declares or says that it changes something does"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return says_write(tool) and len(exam.explored.succeeded(tool.name)) >= ENOUGH

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            made = exam.explored.succeeded(tool.name)
            different = {str(seen.step.arguments) for seen in made}
            if self.applies(exam, tool) and not any(matters(seen) for seen in made):
                if len(different) < min(ENOUGH, 1 + len(tool.parameters)):
                    continue
                yield Suspicion(
                    tool.name,
                    "",
                    f"{tool.name} is a tool that writes, and none of its {len(made)} successful calls changed anything",
                    made[0].case(),
                    Evidence(seen="the state as it was", expected="a change"),
                    self._severity(exam, tool),
                )

    def _severity(self, exam: "Exam", tool: ToolSpec) -> Severity:
        """From few initial states it may just never have been possible; less so if it says that it makes something."""
        views = len(exam.data.views)
        declared = tool.annotations.read_only_hint is False and views >= MANY_STATES
        return "warning" if declared or (words(tool.name)[0] in MAKING and views > 1) else "note"


def says_write(tool: ToolSpec) -> bool:
    if tool.annotations.read_only_hint is not None:
        return not tool.annotations.read_only_hint
    return words(tool.name)[:1] != () and words(tool.name)[0] in WRITING


class SilentWrite(CallCheck):
    """A write that succeeds changes something."""

    name: ClassVar[str] = "silent_write"
    about: ClassVar[str] = "a write that is answered with success changes something"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(matters(seen) for seen in exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        strict = self._house_rule(exam)
        async for suspicion in super().look(exam):
            made = exam.explored.succeeded(suspicion.tool or "")
            silent = sum(not matters(seen) for seen in made)
            if 0 < silent < len(made):
                severity: Severity = "warning" if strict else "note"
                yield Suspicion(suspicion.tool, suspicion.topic, suspicion.message, suspicion.case, severity=severity)

    def _asked(self, exam: "Exam", step: Step) -> dict[str, Any]:
        """Arguments that say what is to be, beside those that name what it is about."""
        named = {
            leaf.path
            for leaf in exam.maker.leaves[step.tool]
            if is_identifier(leaf.name) or exam.maker.names_something(step.tool, leaf)
        }
        given = {name: value for name, value in step.arguments.items() if name not in named and value is not None}
        return given or ({} if set(exam.tools[step.tool].parameters) - named else dict(step.arguments) or {"": ""})

    def _house_rule(self, exam: "Exam") -> bool:
        """True if nearly all writing tools of the environment refuse what would change nothing."""
        if exam.strict is None:
            exam.strict = self._is_strict(exam)
        return exam.strict

    def _is_strict(self, exam: "Exam") -> bool:
        """Judged by calls that were made again at once: what is so already is refused, by nearly every tool."""
        refuses, allows = set(), set()
        for seen in exam.explored.observations:
            again = bool(seen.prefix) and seen.prefix[-1] == seen.step
            if again and seen.outcome.refusal is not None:
                refuses.add(seen.tool)
            elif again and seen.ok and not matters(seen):
                allows.add(seen.tool)
        return len(refuses - allows) >= STRICT and len(allows) <= (1 - HOUSE) * len(refuses | allows) + 1

    def topics(self, exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, JsonObject]]:
        if seen.outcome.ok and says_write(exam.tools[seen.outcome.step.tool]):
            yield "", f"{seen.outcome.step.tool} answers with success and changes nothing", {}

    def see(self, exam: "Exam", seen: Seen, about: JsonObject) -> Evidence | None:
        if not seen.outcome.ok or matters(seen):
            return None
        asked = self._asked(exam, seen.outcome.step)
        was_so = all(str(value).casefold() in seen.before.text for value in asked.values())
        if not asked or (was_so and not self._house_rule(exam)):
            return None
        return Evidence(seen="success, and the state as it was", expected="a change, or a refusal")
