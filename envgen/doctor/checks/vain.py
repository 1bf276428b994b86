"""Nothing is given in vain: texts are kept or answered, and every parameter makes a difference."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import MANY_STATES
from envgen.doctor.checks.unknown import is_bare
from envgen.doctor.checks.watching import Seen
from envgen.doctor.explore import Observation
from envgen.doctor.facts.fact import short
from grounding.names import is_identifier, words
from trajectory import ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

ENOUGH = 3
"""Texts that must be lost, and half the pairs of calls that must be alike."""
LOOKED_AT = 40
"""Calls of each tool whose texts are looked for."""
_SECRET = frozenset({"password", "secret", "token", "pin", "passphrase", "code", "key"})


class Lost(Check):
    """What a caller writes is kept or answered."""

    name: ClassVar[str] = "lost_text"
    about: ClassVar[str] = "a text that is new to the state is kept or answered by the tool that takes it"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(seen.changed for seen in exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            kept: set[str] = set()
            lost: dict[str, dict[str, Observation]] = defaultdict(dict)
            made = exam.explored.succeeded(tool.name)
            for seen in made[:: max(1, len(made) // LOOKED_AT)]:
                for name, value, there in _texts(exam, seen):
                    if there:
                        kept.add(name)
                    else:
                        lost[name].setdefault(value, seen)
            for name, found in lost.items():
                if name not in kept and len(found) >= ENOUGH:
                    message = f"{tool.name} takes a {name}, and it is nowhere afterwards"
                    severity: Severity = "warning" if len(exam.data.views) >= MANY_STATES else "note"
                    for seen in list(found.values())[:3]:
                        yield Suspicion(tool.name, name, message, seen.case({"argument": name}), severity=severity)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        for name, value, there in _texts(exam, shots[-1]):
            if name == case.about["argument"] and not there:
                expected = f"{short(value)} in the state or in the answer"
                return Evidence(seen="neither the state nor the answer has it", expected=expected)
        return None


def _texts(exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, bool]]:
    """Free texts among the arguments of a write that the state did not have, and whether they are there afterwards."""
    if not seen.changed:
        return
    step = seen.outcome.step
    for leaf in exam.maker.leaves[step.tool]:
        value = step.arguments.get(leaf.path)
        free = (
            leaf.types == frozenset({"string"}) and not leaf.is_choice and not {"format", "pattern"} & set(leaf.schema)
        )
        if not free or not isinstance(value, str) or len(value.strip()) < 4 or _SECRET & set(words(leaf.name)):
            continue
        text = plain(value)
        known = is_identifier(leaf.name) or exam.maker.names_something(step.tool, leaf)
        if not known and value.strip().casefold() not in seen.before.text:
            after = plain(str([change.after for change in seen.changes]) + str(seen.outcome.content))
            yield leaf.path, value, text in after


def plain(text: str) -> str:
    """A text without case, spaces and quotation marks."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


class Inert(Check):
    """Every parameter makes a difference."""

    name: ClassVar[str] = "inert"
    about: ClassVar[str] = "every parameter makes a difference for some call"
    severity: ClassVar[Severity] = "note"

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            for name in tool.parameters:
                pairs = _pairs(exam.explored.succeeded(tool.name), name)
                starts = {one.start for one, _ in pairs}
                few = len(pairs) < 2 * ENOUGH or len(starts) < min(2, len(exam.starts))
                if not few and not any(_different(one, other) for one, other in pairs):
                    one, other = pairs[0]
                    message = f"{tool.name} does the same whatever is given for {name}"
                    evidence = Evidence(
                        seen=f"{len(pairs)} pairs of calls that differ only in {name} gave the same; "
                        f"for example {short(one.step.arguments)} and {short(other.step.arguments)}",
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
    """True if a call did or answered something; empty answers are all alike."""
    return seen.changed or not is_bare(seen.outcome.content)


def _different(one: Observation, other: Observation) -> bool:
    return one.outcome.digest != other.outcome.digest or not one.after.equals(other.after)
