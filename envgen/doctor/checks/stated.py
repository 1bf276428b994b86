"""Numbers in words: what policy, descriptions and refusals state is what the code does, and they state the same."""

import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.case import Case, Evidence, Severity, Start, Step
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.boundaries import form
from envgen.doctor.explore import Observation
from envgen.doctor.facts.fact import short
from envgen.doctor.lab import Shot
from envgen.doctor.maker import Scene
from envgen.doctor.numbers import counted, limits
from envgen.doctor.probes import beyond, sizes_list
from envgen.doctor.view import View
from grounding.names import singular, words
from trajectory import JsonObject, ToolSpec, derive_seed

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

MOST = 16
"""Largest number of things that is tried out."""
STARTS = 3
OWNERS = 3
"""Rows, of each initial state, that it is tried out on."""
SAME = 3
"""Refusals of one form that must state a number before it counts as fixed."""
_BARE = re.compile(r"(?<![\w.])\d+(?![\w.]*\d)")
_SENTENCE = re.compile(r"(?<=[.;])\s+|\n\s*\n|\n(?=\s*\d+\.)")


@dataclass(frozen=True)
class Rule:
    """So many rows of a relation at most, per row of another relation or in all."""

    number: int
    relation: str
    owner: str
    """Column that points to the row that may have so many; empty for all."""
    text: str


class StatedLimits(Check):
    """Of what is limited in words, there are never more."""

    name: ClassVar[str] = "stated_limits"
    about: ClassVar[str] = "where policy or refusals say how many there can be, there are so many and no more"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(_made(seen) for seen in exam.explored.succeeded(tool.name)[:5])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            relations = {_made(seen) for seen in exam.explored.succeeded(tool.name)} - {""}
            for relation in relations:
                for rule in dict.fromkeys(_rules(exam, tool, relation)):
                    suspicion = await self._push(exam, tool, rule)
                    if suspicion is not None:
                        yield suspicion

    async def _push(self, exam: "Exam", tool: ToolSpec, rule: Rule) -> Suspicion | None:
        """Make as many as possible for one owner, and look at when the refusals begin."""
        parameter = _parameter(exam, tool, rule)
        if rule.owner and not parameter:
            return None
        starts: dict[Start, Observation] = {}
        for seen in exam.explored.succeeded(tool.name):
            if not seen.prefix and _made(seen) == rule.relation:
                starts.setdefault(seen.start, seen)
        tried = [(seen, owner) for seen in list(starts.values())[:STARTS] for owner in _owners(exam, seen, rule)]
        for seen, owner in tried:
            steps, refusal = await self._fill(exam, tool, rule, {parameter: owner} if parameter else {}, seen)
            what = "more" if len(steps) > rule.number else "less" if refusal else ""
            if what:
                about = {"relation": rule.relation, "owner": rule.owner, "parameter": parameter, "number": rule.number}
                made = (*steps, refusal) if what == "less" and refusal else steps
                case = Case(start=seen.start, steps=tuple(made), about={**about, "what": what})
                told = "makes more than is said" if what == "more" else "refuses before as many are there as is said"
                return Suspicion(tool.name, f"{rule.relation}:{what}", f"{tool.name} {told}: {rule.text}", case)
        return None

    async def _fill(
        self, exam: "Exam", tool: ToolSpec, rule: Rule, fixed: JsonObject, seen: Observation
    ) -> tuple[list[Step], Step | None]:
        """Calls that made something for one owner, and a refusal that states the limit although it is not reached."""
        rng = random.Random(derive_seed(exam.plan.seed, "fill", tool.name, rule.relation))
        view = await exam.lab.begin(seen.start)
        scene, made = Scene(view, exam.data), list[Step]()
        arguments = dict(seen.step.arguments)
        for _ in range(4 * rule.number + 12):
            step = Step(tool=tool.name, arguments={**arguments, **fixed}, actor=tool.actor)
            outcome = await exam.lab.call(step)
            if outcome.ok:
                made.append(step)
                if len(made) > rule.number:
                    break
            elif outcome.refusal and _states(outcome.refusal, rule):
                there = _count(await exam.lab.view(), rule, next(iter(fixed.values()), None))
                return made, step if there < rule.number else None
            arguments = exam.maker.draw(tool.name, scene, rng)
        return made, None

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        about = case.about
        rule = Rule(about["number"], about["relation"], about["owner"], "")
        owners = {str(step.arguments.get(about["parameter"])) for step in case.steps} if about["parameter"] else {""}
        if len(shots) != len(case.steps) or len(owners) != 1:
            return None
        if about["what"] == "more":
            done = sum(shot.outcome.ok and bool(_made(shot) == rule.relation) for shot in shots)
            return Evidence(seen=f"{done} were made", expected=f"at most {rule.number}") if done > rule.number else None
        refusal = shots[-1].outcome.refusal
        there = _count(shots[-1].after, rule, case.steps[-1].arguments.get(about["parameter"]))
        if refusal is None or not _states(refusal, rule) or there >= rule.number:
            return None
        return Evidence(seen=f"with {there} it says {short(refusal)}", expected=f"room for {rule.number}")


def _made(seen: Observation | Shot) -> str:
    """The relation of the one row that a call has made; empty if there is not exactly one."""
    if not seen.outcome.ok or not seen.changed:
        return ""
    rows = [(change.relation, change.key) for change in seen.changes if change.before is None]
    inner = {place for place in rows if (place[0].rpartition(".")[0], place[1][:-1]) in rows}
    new = [relation for relation, _ in dict.fromkeys(rows) if not any(relation == place[0] for place in inner)]
    return new[0] if len(new) == 1 else ""


def _rules(exam: "Exam", tool: ToolSpec, relation: str) -> Iterator[Rule]:
    """Limits on the number of rows of a relation, in all texts that speak of it."""
    noun = singular(words(relation.rsplit(".", 1)[-1])[-1]) if words(relation) else ""
    reasons = [seen.outcome.refusal or "" for seen in exam.explored.by_tool[tool.name]]
    for text in dict.fromkeys([*_SENTENCE.split(exam.spec.policy), *_SENTENCE.split(tool.description), *reasons]):
        for limit in limits(text):
            whole = float(limit.number).is_integer() and 1 <= limit.number <= MOST
            if whole and limit.side == "upper" and noun and noun in limit.rest[:3]:
                owner = _owner(exam, tool, relation, text)
                if owner is not None:
                    yield Rule(int(limit.number), relation, owner, " ".join(text.split())[:120])


def _owner(exam: "Exam", tool: ToolSpec, relation: str, text: str) -> str | None:
    """The column of the rows that a limit is for; None if it could be several."""
    columns = [
        reference
        for reference in exam.data.references
        if reference.relation == relation
        and not reference.listed
        and any(exam.places.entity(name) == reference.target for name in tool.parameters)
    ]
    if len(columns) == 1:
        return columns[0].column
    said = set(words(text))
    named = [one for one in columns if singular(words(one.target)[-1]) in said]
    if len(named) == 1:
        return named[0].column
    return "" if not columns else None


def _parameter(exam: "Exam", tool: ToolSpec, rule: Rule) -> str:
    target = exam.data.reference(rule.relation, rule.owner)
    return next((name for name in tool.parameters if target and exam.places.entity(name) == target.target), "")


def _owners(exam: "Exam", seen: Observation, rule: Rule) -> list[str]:
    """Those who own fewest to begin with."""
    if not rule.owner:
        return [""]
    reference = exam.data.reference(rule.relation, rule.owner)
    names = [key[-1] for key in seen.before.rows(reference.target)] if reference else []
    return sorted(names, key=lambda name: _count(seen.before, rule, name))[:OWNERS]


def _count(view: View, rule: Rule, owner: object) -> int:
    rows = view.rows(rule.relation).values()
    return sum(not rule.owner or str(row.get(rule.owner)) == str(owner) for row in rows)


def _states(refusal: str, rule: Rule) -> bool:
    """True if a refusal states this very limit."""
    noun = singular(words(rule.relation.rsplit(".", 1)[-1])[-1])
    return any(limit.number == rule.number and noun in limit.rest[:3] for limit in limits(refusal))


_CONDITION = re.compile(r"\b(when|if|unless|only for)\b", re.IGNORECASE)
"""Words by which a description says that a limit holds at times only."""


class ParameterLimits(Check):
    """A limit in the description of a parameter holds."""

    name: ClassVar[str] = "parameter_limits"
    about: ClassVar[str] = "a limit that the description of a parameter states holds"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(probe.aim == "beyond" and probe.seen.tool == tool.name for probe in exam.probes)

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for probe in exam.probes:
            if probe.aim == "beyond" and probe.seen.ok and not _asks_how_many(probe.parameter):
                message = f"{probe.seen.tool} takes a {probe.parameter} beyond the limit that its description states"
                about = {"parameter": probe.parameter}
                leaf = next((one for one in exam.maker.leaves[probe.seen.tool] if one.path == probe.parameter), None)
                severity: Severity = "note" if leaf and _CONDITION.search(leaf.description) else "warning"
                yield Suspicion(probe.seen.tool, probe.parameter, message, probe.seen.case(about), severity=severity)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        step, name = case.steps[-1], case.about["parameter"]
        leaf = next((one for one in exam.maker.leaves[step.tool] if one.path == name), None)
        value = step.arguments.get(name)
        if leaf is None or value not in list(beyond(leaf, value)):
            return None
        return Evidence(seen=f"success with {short(value)}", expected=f"a refusal: {short(leaf.description)}")


def _asks_how_many(parameter: str) -> bool:
    """True for sizes of lists: too large a number is often taken as the largest possible one."""
    return sizes_list(parameter) or bool({"count", "number", "many"} & set(words(parameter)))


class SameNumbers(Check):
    """Refusals state the numbers that policy and descriptions state."""

    name: ClassVar[str] = "stated_numbers"
    about: ClassVar[str] = "refusals state the same numbers as the policy and the descriptions"
    severity: ClassVar[Severity] = "warning"

    def skip(self, exam: "Exam") -> str:
        return "" if exam.spec.policy.strip() else "there is no policy"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(seen.outcome.refusal for seen in exam.explored.by_tool[tool.name])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        said: dict[str, set[float]] = defaultdict(set)
        bare = {float(text) for text in _BARE.findall(exam.spec.policy)}
        for text in (exam.spec.policy, *(tool.description for tool in exam.spec.tools)):
            for number, noun in counted(text):
                said[noun].add(number)
        for tool in exam.spec.tools:
            for seen, number, noun in _fixed(exam.explored.by_tool[tool.name]):
                known = said.get(noun, set())
                if number not in bare | known and known & {number - 1, number + 1}:
                    message = (
                        f"{tool.name} refuses with {number:g} {noun}, where policy or description say another number"
                    )
                    about = {"number": number, "noun": noun, "said": sorted(known)}
                    yield Suspicion(tool.name, f"{number:g} {noun}", message, seen.case(about))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        refusal = shots[-1].outcome.refusal if shots and shots[-1].outcome.step == case.steps[-1] else None
        if refusal is None or (case.about["number"], case.about["noun"]) not in counted(refusal):
            return None
        told = " or ".join(f"{number:g}" for number in case.about["said"])
        return Evidence(seen=short(refusal), expected=f"{told} {case.about['noun']}, as policy and descriptions say")


def _fixed(made: list[Observation]) -> Iterator[tuple[Observation, float, str]]:
    """Numbers that all refusals of one form state alike, and what they count."""
    forms: dict[str, list[Observation]] = defaultdict(list)
    for seen in made:
        if seen.outcome.refusal and not seen.outcome.schema_refusal:
            forms[form(seen.outcome.refusal)].append(seen)
    for found in forms.values():
        if len(found) < SAME:
            continue
        stated = [set(counted(seen.outcome.refusal or "")) for seen in found]
        for number, noun in sorted(set.intersection(*stated)):
            yield found[0], number, noun


__all__ = ["SameNumbers", "StatedLimits"]
