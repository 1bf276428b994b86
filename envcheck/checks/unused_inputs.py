"""Unused inputs: texts are stored or returned, and every parameter makes a difference."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.call_contract import MANY_STATES
from trajsmith.envcheck.checks.unknown_identifiers import is_bare_result
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.grounding import is_identifier, split_name
from trajsmith.records import ToolSpec

ENOUGH = 3
"""Texts that must be lost, and half the pairs of calls that must be alike."""
LOOKED_AT = 40
"""Calls of each tool whose texts are looked for."""
_SECRET = frozenset({"password", "secret", "token", "pin", "passphrase", "code", "key"})


class LostText(Check):
    """Texts that a caller writes are stored or returned."""

    name: ClassVar[str] = "lost_text"
    about: ClassVar[str] = "a text that is new to the state is kept or answered by the tool that takes it"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(seen.changed for seen in check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            kept_names: set[str] = set()
            lost: dict[str, dict[str, Observation]] = defaultdict(dict)
            calls = check_session.explored.succeeded(tool.name)
            for seen in calls[:: max(1, len(calls) // LOOKED_AT)]:
                for name, value, there in _texts(check_session, seen):
                    if there:
                        kept_names.add(name)
                    else:
                        lost[name].setdefault(value, seen)
            for name, losses in lost.items():
                if name not in kept_names and len(losses) >= ENOUGH:
                    message = f"{tool.name} takes a {name}, and it is nowhere afterwards"
                    severity: Severity = "warning" if len(check_session.data.views) >= MANY_STATES else "note"
                    for seen in list(losses.values())[:3]:
                        yield Suspicion(tool.name, name, message, seen.case({"argument": name}), severity=severity)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        for name, value, there in _texts(check_session, step_results[-1]):
            if name == case.about["argument"] and not there:
                expected = f"{shorten_value(value)} in the state or in the answer"
                return CaseEvidence(seen="neither the state nor the answer has it", expected=expected)
        return None


def _texts(check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, bool]]:
    """Free texts among the arguments of a write that the state did not have, and whether they are there afterwards."""
    if not seen.changed:
        return
    step = seen.outcome.step
    for leaf in check_session.sampler.leaves[step.tool]:
        value = step.arguments.get(leaf.path)
        free = (
            leaf.types == frozenset({"string"}) and not leaf.is_choice and not {"format", "pattern"} & set(leaf.schema)
        )
        if not free or not isinstance(value, str) or len(value.strip()) < 4 or _SECRET & set(split_name(leaf.name)):
            continue
        text = normalize_text(value)
        known = is_identifier(leaf.name) or check_session.sampler.is_reference(step.tool, leaf)
        if not known and value.strip().casefold() not in seen.before.text:
            after = normalize_text(str([change.after for change in seen.changes]) + str(seen.outcome.content))
            yield leaf.path, value, text in after


def normalize_text(text: str) -> str:
    """A text without case, spaces and quotation marks."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


class InertParameter(Check):
    """Every parameter makes a difference."""

    name: ClassVar[str] = "inert"
    about: ClassVar[str] = "every parameter makes a difference for some call"
    severity: ClassVar[Severity] = "note"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            for name in tool.parameters:
                pairs = _pairs(check_session.explored.succeeded(tool.name), name)
                starts = {one.start for one, _ in pairs}
                few = len(pairs) < 2 * ENOUGH or len(starts) < min(2, len(check_session.starts))
                if not few and not any(_different(one, other) for one, other in pairs):
                    one, other = pairs[0]
                    message = f"{tool.name} does the same whatever is given for {name}"
                    evidence = CaseEvidence(
                        seen=f"{len(pairs)} pairs of calls that differ only in {name} gave the same; "
                        f"for example {shorten_value(one.step.arguments)} and {shorten_value(other.step.arguments)}",
                        expected="a difference for some of them",
                    )
                    yield Suspicion(tool.name, name, message, one.case(), evidence)


def _pairs(seen: list[Observation], name: str) -> list[tuple[Observation, Observation]]:
    """Calls from the same state that differ in one argument only."""
    groups: dict[str, dict[str, Observation]] = defaultdict(dict)
    for one in seen:
        rest = {key: value for key, value in one.step.arguments.items() if key != name}
        key = f"{one.start} {one.prefix} {sorted(rest.items(), key=str)}"
        groups[key].setdefault(repr(one.step.arguments.get(name)), one)
    telling = [
        [one for one in group.values() if name in one.step.arguments and _says_much(one)] for group in groups.values()
    ]
    return [pair for group in telling for pair in pairwise(group)]


def _says_much(seen: Observation) -> bool:
    """Return True if a call changed or returned something; empty results are all alike."""
    return seen.changed or not is_bare_result(seen.outcome.content)


def _different(one: Observation, other: Observation) -> bool:
    return one.outcome.digest != other.outcome.digest or not one.after.equals(other.after)
