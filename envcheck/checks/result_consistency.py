"""Tool results agree with the state."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import CallCheck, Check, Suspicion
from trajsmith.envcheck.checks.call_contract import MANY_STATES
from trajsmith.envcheck.checks.declared_effects import MAKING
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.facts.state_columns import is_number
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.row_links import (
    RowLink,
    find_linked_rows,
    has_row,
    iterate_objects,
    match_column,
    values_agree,
)
from trajsmith.grounding import split_name
from trajsmith.records import JsonObject, ToolSpec

ENOUGH = 4
"""Comparisons that a verdict needs."""
MOSTLY = 0.75
"""Share of agreement from which on a disagreement is a fault and not another meaning."""
PER_TOOL = 60
"""Results of each tool that are compared."""


@dataclass
class AgreementTally:
    """Counts of agreements between a result field and a column."""

    agreed: int = 0
    differed: list[Observation] = field(default_factory=list)
    values: set[str] = field(default_factory=set)

    @property
    def total(self) -> int:
        return self.agreed + len(self.differed)

    @property
    def share(self) -> float:
        return self.agreed / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A field of the objects at one path of a tool's results."""

    tool: str
    path: str
    name: str


AgreementTallies = dict[AnswerField, dict[tuple[RowLink, str], AgreementTally]]


class AnswersMatchState(Check):
    """Fields of tool results agree with the state."""

    name: ClassVar[str] = "answers"
    about: ClassVar[str] = "what a tool answers about something is what the state says of it"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return bool(check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        tallies = self._count(check_session)
        for place, ways in tallies.items():
            for (link, column), tally in self._wrong(place, ways, tallies):
                where = f"{place.path}.{place.name}"
                message = (
                    f"{place.tool} answers a {place.name} that is not the {column} of the {link.target} it speaks of"
                )
                about = {"path": place.path, "field": place.name, "column": column, "link": _dumped(link)}
                for seen in tally.differed[:3]:
                    yield Suspicion(place.tool, where, message, seen.case(about))

    def _count(self, check_session: CheckSession) -> AgreementTallies:
        tallies: AgreementTallies = defaultdict(lambda: defaultdict(AgreementTally))
        for tool in check_session.spec.tools:
            calls = [seen for seen in check_session.explored.succeeded(tool.name) if seen.drawn]
            for seen in calls[:: max(1, len(calls) // PER_TOOL)]:
                for path, name, value, link, column, expected in compare_fields(check_session, seen):
                    tally = tallies[AnswerField(tool.name, path, name)][link, column]
                    if values_agree(value, expected):
                        tally.agreed += 1
                    else:
                        tally.differed.append(seen)
                    tally.values.add(repr(value))
        return tallies

    def _wrong(
        self, place: AnswerField, ways: dict[tuple[RowLink, str], AgreementTally], tallies: AgreementTallies
    ) -> Iterator[tuple[tuple[RowLink, str], AgreementTally]]:
        """Ways in which a field disagrees with what it must say."""
        enough = {way: tally for way, tally in ways.items() if tally.total >= ENOUGH}
        if not enough or any(not tally.differed for tally in enough.values()):
            return
        way, best = max(enough.items(), key=lambda item: (item[1].share, -len(item[0][0].hop)))
        if (best.share >= MOSTLY and not way[0].hop) or (
            best.share <= 1 - MOSTLY and self._describes_same_row(place, way[0], tallies) and len(best.values) > 1
        ):
            yield way, best

    def _describes_same_row(self, place: AnswerField, link: RowLink, tallies: AgreementTallies) -> bool:
        """Return True if the other fields of these objects are those of the same row."""
        agreed = differed = 0
        for other, ways in tallies.items():
            if (other.tool, other.path) != (place.tool, place.path) or other.name in (place.name, link.name):
                continue
            for (known, _), tally in ways.items():
                if known == link and tally.total >= ENOUGH:
                    agreed += tally.share >= 0.95
                    differed += tally.share < 0.95
        return agreed >= 2 and agreed > 2 * differed

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        about = case.about
        for path, name, value, link, column, expected in compare_fields(check_session, step_results[-1]):
            same = (path, name, column) == (about["path"], about["field"], about["column"])
            if same and _dumped(link) == about["link"] and not values_agree(value, expected):
                return CaseEvidence(
                    seen=f"{path}.{name} is {shorten_value(value)}",
                    expected=f"{shorten_value(expected)}, as in the state",
                )
        return None


def compare_fields(
    check_session: CheckSession, seen: ObservedCall
) -> Iterator[tuple[str, str, Any, RowLink, str, Any]]:
    """Every field of an answer beside every value of the state that it may have to agree with."""
    for path, item in iterate_objects(seen.outcome.content):
        listed = "[*]" in path
        if listed and seen.changed:
            continue  # what a write lists may be what was before
        for linked_row in find_linked_rows(check_session.places, seen, item):
            if listed and linked_row.link.origin != "own":
                continue  # what stands in a list need not be what was asked for
            for name, value in item.items():
                if (
                    value is None
                    or isinstance(value, dict)
                    or (name == linked_row.link.name and not linked_row.link.hop)
                ):
                    continue
                column = match_column(name, linked_row.link, linked_row.row)
                if column is None or linked_row.row[column] is None or isinstance(linked_row.row[column], dict):
                    continue  # where the state has nothing, an answer may say so in its own way
                yield path, name, value, linked_row.link, column, linked_row.row[column]
        arguments = {} if listed else seen.outcome.step.arguments
        for name, value in item.items():
            if arguments.get(name) not in (None, "") and not isinstance(value, dict | list):
                yield path, name, value, RowLink("given", name, ""), name, arguments[name]


def _dumped(link: RowLink) -> list[str]:
    return [link.origin, link.name, link.relation, link.hop, link.target]


class AnsweredNamesExist(Check):
    """Identifiers in a result exist in the state."""

    name: ClassVar[str] = "answered_names"
    about: ClassVar[str] = "an identifier in an answer is that of something in the state"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return bool(check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            there: dict[tuple[str, str], int] = defaultdict(int)
            missing: dict[tuple[str, str], list[Observation]] = defaultdict(list)
            calls = [seen for seen in check_session.explored.succeeded(tool.name) if seen.drawn]
            for seen in calls[:: max(1, len(calls) // PER_TOOL)]:
                for path, name, relation, value in _names(check_session, seen):
                    if not has_row(seen, relation, value):
                        missing[path, name].append(seen)
                    else:
                        there[path, name] += 1
            for (path, name), occurrences in missing.items():
                sure = any(_created_sibling(check_session, seen, name) for seen in occurrences)
                if (len(occurrences) < MISSED and not sure) or (
                    there[path, name] and there[path, name] < len(occurrences)
                ):
                    continue  # too few, or a name that stands for something else as well
                message = f"{tool.name} answers with a {name} that is not in the state"
                made_up = occurrences[0].changed and split_name(tool.name)[0] in MAKING
                sure = sure or len(check_session.data.views) >= MANY_STATES or made_up
                severity: Severity = "warning" if sure else "note"
                for seen in occurrences[:3]:
                    about = {"path": path, "field": name}
                    yield Suspicion(tool.name, f"{path}.{name}", message, seen.case(about), severity=severity)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        for path, name, relation, value in _names(check_session, step_results[-1]):
            wanted = (path, name) == (case.about["path"], case.about["field"])
            if wanted and not has_row(step_results[-1], relation, value):
                return CaseEvidence(seen=f"{path}.{name} is {shorten_value(value)}", expected=f"a key of {relation}")
        return None


MISSED = 2
"""Names that must be missing before it is a finding."""


def _created_sibling(check_session: CheckSession, seen: Observation, name: str) -> bool:
    """Return True if a call created a row of the relation that its result names another row of."""
    return seen.changed and any(
        change.before is None and change.relation == check_session.data.names.get(name) for change in seen.changes
    )


def _names(check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, str, str]]:
    """Identifiers in an answer: path, name, the relation that they are keys of, value."""
    exact = check_session.data.names
    arguments = seen.outcome.step.arguments
    for path, item in iterate_objects(seen.outcome.content):
        for name, value in item.items():
            relation = exact.get(name)
            if (
                relation is not None
                and str(arguments.get(name)) != str(value)
                and isinstance(value, str | int)
                and not isinstance(value, bool)
                and value != ""
            ):
                yield path, name, relation, str(value)


_REMAINING = frozenset({"left", "remaining", "available", "free"})


class RemainingNotNegative(CallCheck):
    """Remaining amounts are never negative."""

    name: ClassVar[str] = "remaining"
    about: ClassVar[str] = "an answer never says that less than nothing is left, free or available"
    severity: ClassVar[Severity] = "warning"

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        for path, name, value in _remaining_amounts(seen):
            if value < 0:
                message = f"{seen.outcome.step.tool} answers with less than nothing: {name}"
                yield f"{path}.{name}", message, {"path": path, "field": name}

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        for path, name, value in _remaining_amounts(seen):
            if (path, name) == (about["path"], about["field"]) and value < 0:
                return CaseEvidence(seen=f"{name} is {shorten_value(value)}", expected="zero or more")
        return None


def _remaining_amounts(seen: ObservedCall) -> Iterator[tuple[str, str, float]]:
    for path, item in iterate_objects(seen.outcome.content) if seen.outcome.ok else ():
        for name, value in item.items():
            if is_number(value) and _REMAINING & set(split_name(name)):
                yield path, name, value
