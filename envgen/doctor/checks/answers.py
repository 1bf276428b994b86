"""What a tool answers about something is what the state says of it."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import MANY_STATES
from envgen.doctor.checks.effects import MAKING
from envgen.doctor.checks.watching import CallCheck, Seen
from envgen.doctor.explore import Observation
from envgen.doctor.facts.data import is_number
from envgen.doctor.facts.fact import short
from envgen.doctor.links import Link, agree, column_for, is_there, linked, objects
from grounding.names import words
from trajectory import JsonObject, ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

ENOUGH = 4
"""Comparisons that a verdict needs."""
MOSTLY = 0.75
"""Share of agreement from which on a disagreement is a fault and not another meaning."""
PER_TOOL = 60
"""Results of each tool that are compared."""


@dataclass
class Tally:
    """How often a field of an answer agreed with a column."""

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
class Place:
    """A field of the objects at one path of a tool's results."""

    tool: str
    path: str
    name: str


Tallies = dict[Place, dict[tuple[Link, str], Tally]]


class Answers(Check):
    """What a tool answers about something is what the state says of it."""

    name: ClassVar[str] = "answers"
    about: ClassVar[str] = "what a tool answers about something is what the state says of it"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return bool(exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        tallies = self._count(exam)
        for place, ways in tallies.items():
            for (link, column), tally in self._wrong(place, ways, tallies):
                where = f"{place.path}.{place.name}"
                message = (
                    f"{place.tool} answers a {place.name} that is not the {column} of the {link.target} it speaks of"
                )
                about = {"path": place.path, "field": place.name, "column": column, "link": _dumped(link)}
                for seen in tally.differed[:3]:
                    yield Suspicion(place.tool, where, message, seen.case(about))

    def _count(self, exam: "Exam") -> Tallies:
        tallies: Tallies = defaultdict(lambda: defaultdict(Tally))
        for tool in exam.spec.tools:
            made = [seen for seen in exam.explored.succeeded(tool.name) if seen.drawn]
            for seen in made[:: max(1, len(made) // PER_TOOL)]:
                for path, name, value, link, column, expected in comparisons(exam, seen):
                    tally = tallies[Place(tool.name, path, name)][link, column]
                    if agree(value, expected):
                        tally.agreed += 1
                    else:
                        tally.differed.append(seen)
                    tally.values.add(repr(value))
        return tallies

    def _wrong(
        self, place: Place, ways: dict[tuple[Link, str], Tally], tallies: Tallies
    ) -> Iterator[tuple[tuple[Link, str], Tally]]:
        """Ways in which a field disagrees with what it must say."""
        enough = {way: tally for way, tally in ways.items() if tally.total >= ENOUGH}
        if not enough or any(not tally.differed for tally in enough.values()):
            return
        way, best = max(enough.items(), key=lambda item: (item[1].share, -len(item[0][0].hop)))
        if (best.share >= MOSTLY and not way[0].hop) or (
            best.share <= 1 - MOSTLY and self._speaks_of(place, way[0], tallies) and len(best.values) > 1
        ):
            yield way, best

    def _speaks_of(self, place: Place, link: Link, tallies: Tallies) -> bool:
        """True if the other fields of these objects are those of the same row."""
        agreed = differed = 0
        for other, ways in tallies.items():
            if (other.tool, other.path) != (place.tool, place.path) or other.name in (place.name, link.name):
                continue
            for (known, _), tally in ways.items():
                if known == link and tally.total >= ENOUGH:
                    agreed += tally.share >= 0.95
                    differed += tally.share < 0.95
        return agreed >= 2 and agreed > 2 * differed

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        about = case.about
        for path, name, value, link, column, expected in comparisons(exam, shots[-1]):
            same = (path, name, column) == (about["path"], about["field"], about["column"])
            if same and _dumped(link) == about["link"] and not agree(value, expected):
                return Evidence(seen=f"{path}.{name} is {short(value)}", expected=f"{short(expected)}, as in the state")
        return None


def comparisons(exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, Any, Link, str, Any]]:
    """Every field of an answer beside every value of the state that it may have to agree with."""
    for path, item in objects(seen.outcome.content):
        listed = "[*]" in path
        if listed and seen.changed:
            continue  # what a write lists may be what was before
        for found in linked(exam.places, seen, item):
            if listed and found.link.origin != "own":
                continue  # what stands in a list need not be what was asked for
            for name, value in item.items():
                if value is None or isinstance(value, dict) or (name == found.link.name and not found.link.hop):
                    continue
                column = column_for(name, found.link, found.row)
                if column is None or found.row[column] is None or isinstance(found.row[column], dict):
                    continue  # where the state has nothing, an answer may say so in its own way
                yield path, name, value, found.link, column, found.row[column]
        arguments = {} if listed else seen.outcome.step.arguments
        for name, value in item.items():
            if arguments.get(name) not in (None, "") and not isinstance(value, dict | list):
                yield path, name, value, Link("given", name, ""), name, arguments[name]


def _dumped(link: Link) -> list[str]:
    return [link.origin, link.name, link.relation, link.hop, link.target]


class AnsweredNames(Check):
    """What an answer names is there."""

    name: ClassVar[str] = "answered_names"
    about: ClassVar[str] = "an identifier in an answer is that of something in the state"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return bool(exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            there: dict[tuple[str, str], int] = defaultdict(int)
            missing: dict[tuple[str, str], list[Observation]] = defaultdict(list)
            made = [seen for seen in exam.explored.succeeded(tool.name) if seen.drawn]
            for seen in made[:: max(1, len(made) // PER_TOOL)]:
                for path, name, relation, value in _names(exam, seen):
                    if not is_there(seen, relation, value):
                        missing[path, name].append(seen)
                    else:
                        there[path, name] += 1
            for (path, name), found in missing.items():
                sure = any(_made_another(exam, seen, name) for seen in found)
                if (len(found) < MISSED and not sure) or (there[path, name] and there[path, name] < len(found)):
                    continue  # too few, or a name that stands for something else as well
                message = f"{tool.name} answers with a {name} that is not in the state"
                made_up = found[0].changed and words(tool.name)[0] in MAKING
                sure = sure or len(exam.data.views) >= MANY_STATES or made_up
                severity: Severity = "warning" if sure else "note"
                for seen in found[:3]:
                    about = {"path": path, "field": name}
                    yield Suspicion(tool.name, f"{path}.{name}", message, seen.case(about), severity=severity)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        for path, name, relation, value in _names(exam, shots[-1]):
            wanted = (path, name) == (case.about["path"], case.about["field"])
            if wanted and not is_there(shots[-1], relation, value):
                return Evidence(seen=f"{path}.{name} is {short(value)}", expected=f"a key of {relation}")
        return None


MISSED = 2
"""Names that must be missing before it is a finding."""


def _made_another(exam: "Exam", seen: Observation, name: str) -> bool:
    """True if a call has made a row of the very relation that its answer names another row of."""
    return seen.changed and any(
        change.before is None and change.relation == exam.data.names.get(name) for change in seen.changes
    )


def _names(exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, str, str]]:
    """Identifiers in an answer: path, name, the relation that they are keys of, value."""
    exact = exam.data.names
    arguments = seen.outcome.step.arguments
    for path, item in objects(seen.outcome.content):
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


class Remaining(CallCheck):
    """What is left is never less than nothing."""

    name: ClassVar[str] = "remaining"
    about: ClassVar[str] = "an answer never says that less than nothing is left, free or available"
    severity: ClassVar[Severity] = "warning"

    def topics(self, exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, JsonObject]]:
        for path, name, value in _left(seen):
            if value < 0:
                message = f"{seen.outcome.step.tool} answers with less than nothing: {name}"
                yield f"{path}.{name}", message, {"path": path, "field": name}

    def see(self, exam: "Exam", seen: Seen, about: JsonObject) -> Evidence | None:
        for path, name, value in _left(seen):
            if (path, name) == (about["path"], about["field"]) and value < 0:
                return Evidence(seen=f"{name} is {short(value)}", expected="zero or more")
        return None


def _left(seen: Seen) -> Iterator[tuple[str, str, float]]:
    for path, item in objects(seen.outcome.content) if seen.outcome.ok else ():
        for name, value in item.items():
            if is_number(value) and _REMAINING & set(words(name)):
                yield path, name, value
