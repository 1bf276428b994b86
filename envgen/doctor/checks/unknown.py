"""What does not exist is refused."""

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import MANY_STATES, told_changes
from envgen.doctor.checks.effects import matters
from envgen.doctor.facts.fact import short
from envgen.doctor.probes import Probe
from grounding.names import is_identifier, singular, words

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

_SAYS_NO = re.compile(r"unknown|not found|no such|not exist|invalid|unavailable|not available|n/a", re.IGNORECASE)
_FREE = frozenset({
    "address", "body", "comment", "content", "description", "destination", "keyword", "message", "note", "query",
    "search", "subject", "text", "title",
})  # fmt: skip
"""Words in the names of parameters that take any text: a text that happens to name something is no reference."""
_ADDRESSES = frozenset({"url", "uri", "link"})
HOUSE = 0.6
"""Share of the probes that are refused in an environment where that is the rule."""


class Unknown(Check):
    """A call about something that does not exist is refused."""

    name: ClassVar[str] = "unknown"
    about: ClassVar[str] = "a call about something that does not exist is refused"
    severity: ClassVar[Severity] = "warning"

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        probes = [probe for probe in exam.probes if probe.aim == "unknown"]
        keyed = [probe for probe in probes if not self._searches(exam, probe)]
        refused = sum(probe.seen.outcome.refusal is not None for probe in keyed)
        house = len(keyed) >= 4 and refused >= HOUSE * len(keyed) and len(exam.data.views) >= MANY_STATES
        for probe in probes:
            if not probe.seen.ok or _is_free(probe.parameter):
                continue
            if _SAYS_NO.search(str(probe.seen.outcome.content)):
                continue
            value = probe.seen.step.arguments.get(probe.parameter)
            if _is_given(probe, value):
                continue
            nothing = finds_nothing(probe.seen.outcome.content) and not probe.seen.changed
            if nothing and self._searches(exam, probe):
                continue
            severity = "note" if nothing and self._filters(exam, probe) else self._severity(probe, house)
            message = f"{probe.seen.tool} succeeds for a {probe.parameter} that does not exist"
            about = {"parameter": probe.parameter, "value": value}
            yield Suspicion(probe.seen.tool, probe.parameter, message, probe.seen.case(about), severity=severity)

    def _filters(self, exam: "Exam", probe: Probe) -> bool:
        """True for a search by something that may be left out: nothing found is a right answer."""
        tool = exam.spec.tool(probe.seen.tool)
        return not probe.seen.changed and probe.parameter not in tool.required

    def _searches(self, exam: "Exam", probe: Probe) -> bool:
        """True if the parameter does not name a row by its key."""
        leaves = exam.maker.leaves[probe.seen.tool]
        leaf = next(leaf for leaf in leaves if leaf.path == probe.parameter)
        return not exam.maker.names_something(probe.seen.tool, leaf)

    def _severity(self, probe: Probe, house: bool) -> Severity:
        """An answer with content, or a change, is wrong anywhere; an empty answer only where others refuse."""
        if matters(probe.seen) or house:
            return "warning"
        return "note" if is_bare(probe.seen.outcome.content) else "warning" if self._same_answer(probe) else "note"

    def _same_answer(self, probe: Probe) -> bool:
        """True if the name made no difference although the answer is about something."""
        return bool(probe.seen.outcome.content == probe.base.outcome.content)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        shot, value = shots[-1], case.about["value"]
        if shot.outcome.step.arguments.get(case.about["parameter"]) != value or str(value) in str(shot.before.state):
            return None
        seen = f"success: {short(shot.outcome.content)}" + (f"; {told_changes(shot)}" if shot.changed else "")
        return Evidence(seen=seen, expected=f"a refusal, as there is no {short(value)}")


def _is_given(probe: Probe, value: Any) -> bool:
    """True if a call gives the name to something: to what it makes, or as a new name."""
    named = not is_identifier(probe.parameter)
    return any(
        (change.before is None and change.key[-1:] == (str(value),))
        or (named and value in (change.after or {}).values())
        for change in probe.seen.changes
    )


def _is_free(parameter: str) -> bool:
    """True for texts, and for a link that is only called so: it may lead anywhere."""
    parts = {singular(word) for word in words(parameter)}
    return bool(_FREE & parts) or parts <= _ADDRESSES


def finds_nothing(content: Any) -> bool:
    """True if a result is bare, or all its lists are empty: what was asked and how much may stand beside them."""
    lists = [one for one in (content.values() if isinstance(content, dict) else [content]) if isinstance(one, list)]
    return is_bare(content) or (bool(lists) and all(is_bare(one) for one in lists))


def is_bare(content: Any) -> bool:
    """True if a result holds nothing but names and empty lists."""
    if isinstance(content, dict):
        return all(is_bare(value) for value in content.values())
    return content in (None, "", [], 0, False) or (isinstance(content, list) and all(is_bare(item) for item in content))
