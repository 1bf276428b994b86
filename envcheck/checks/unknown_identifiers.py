"""Calls with unknown identifiers are refused."""

import re
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.call_contract import MANY_STATES, describe_changes
from trajsmith.envcheck.checks.declared_effects import is_meaningful_change
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.schema_probes import SchemaProbe
from trajsmith.grounding import is_identifier, split_name
from trajsmith.phrasing import singularize

_SAYS_NO = re.compile(r"unknown|not found|no such|not exist|invalid|unavailable|not available|n/a", re.IGNORECASE)
_FREE = frozenset({
    "address", "body", "comment", "content", "description", "destination", "keyword", "message", "note", "query",
    "search", "subject", "text", "title",
})  # fmt: skip
"""Words in the names of parameters that take any text: a text that happens to name something is no reference."""
_ADDRESSES = frozenset({"url", "uri", "link"})
CONVENTION = 0.6
"""Share of the probes that are refused in an environment where that is the rule."""


class UnknownIdentifier(Check):
    """A call about something that does not exist is refused."""

    name: ClassVar[str] = "unknown"
    about: ClassVar[str] = "a call about something that does not exist is refused"
    severity: ClassVar[Severity] = "warning"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        probes = [probe for probe in check_session.probes if probe.aim == "unknown"]
        keyed = [probe for probe in probes if not self._searches(check_session, probe)]
        refused = sum(probe.seen.outcome.refusal is not None for probe in keyed)
        usual = len(keyed) >= 4 and refused >= CONVENTION * len(keyed) and len(check_session.data.views) >= MANY_STATES
        for probe in probes:
            if not probe.seen.ok or _is_free(probe.parameter):
                continue
            if _SAYS_NO.search(str(probe.seen.outcome.content)):
                continue
            value = probe.seen.step.arguments.get(probe.parameter)
            if _is_given(probe, value):
                continue
            nothing = is_empty_result(probe.seen.outcome.content) and not probe.seen.changed
            if nothing and self._searches(check_session, probe):
                continue
            severity = "note" if nothing and self._filters(check_session, probe) else self._severity(probe, usual)
            message = f"{probe.seen.tool} succeeds for a {probe.parameter} that does not exist"
            about = {"parameter": probe.parameter, "value": value}
            yield Suspicion(probe.seen.tool, probe.parameter, message, probe.seen.case(about), severity=severity)

    def _filters(self, check_session: CheckSession, probe: SchemaProbe) -> bool:
        """True for a search by something that may be left out: nothing found is a right answer."""
        tool = check_session.spec.tool(probe.seen.tool)
        return not probe.seen.changed and probe.parameter not in tool.required

    def _searches(self, check_session: CheckSession, probe: SchemaProbe) -> bool:
        """Return True if the parameter does not identify a row by its key."""
        leaves = check_session.sampler.leaves[probe.seen.tool]
        leaf = next(leaf for leaf in leaves if leaf.path == probe.parameter)
        return not check_session.sampler.is_reference(probe.seen.tool, leaf)

    def _severity(self, probe: SchemaProbe, usual: bool) -> Severity:
        """An answer with content, or a change, is wrong anywhere; an empty answer only where others refuse."""
        if is_meaningful_change(probe.seen) or usual:
            return "warning"
        return (
            "note" if is_bare_result(probe.seen.outcome.content) else "warning" if self._same_answer(probe) else "note"
        )

    def _same_answer(self, probe: SchemaProbe) -> bool:
        """Return True if the name made no difference although the result is not empty."""
        return bool(probe.seen.outcome.content == probe.base.outcome.content)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        step_result, value = step_results[-1], case.about["value"]
        if step_result.outcome.step.arguments.get(case.about["parameter"]) != value or str(value) in str(
            step_result.before.state
        ):
            return None
        seen = f"success: {shorten_value(step_result.outcome.content)}" + (
            f"; {describe_changes(step_result)}" if step_result.changed else ""
        )
        return CaseEvidence(seen=seen, expected=f"a refusal, as there is no {shorten_value(value)}")


def _is_given(probe: SchemaProbe, value: Any) -> bool:
    """Return True if the name is assigned by the call: to a new object, or as a new name."""
    named = not is_identifier(probe.parameter)
    return any(
        (change.before is None and change.key[-1:] == (str(value),))
        or (named and value in (change.after or {}).values())
        for change in probe.seen.changes
    )


def _is_free(parameter: str) -> bool:
    """True for texts, and for a link that is only called so: it may lead anywhere."""
    parts = {singularize(word) for word in split_name(parameter)}
    return bool(_FREE & parts) or parts <= _ADDRESSES


def is_empty_result(content: Any) -> bool:
    """Return True if a result is bare, or all its lists are empty; echoed arguments and counts may remain."""
    lists = [one for one in (content.values() if isinstance(content, dict) else [content]) if isinstance(one, list)]
    return is_bare_result(content) or (bool(lists) and all(is_bare_result(one) for one in lists))


def is_bare_result(content: Any) -> bool:
    """Return True if a result holds only names and empty lists."""
    if isinstance(content, dict):
        return all(is_bare_result(value) for value in content.values())
    return content in (None, "", [], 0, False) or (
        isinstance(content, list) and all(is_bare_result(item) for item in content)
    )
