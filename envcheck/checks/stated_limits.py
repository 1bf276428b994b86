"""Stated limits: numbers in policy, descriptions and refusals match the code and each other."""

import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import ClassVar

from trajsmith.envcheck.argument_sampler import ArgumentContext
from trajsmith.envcheck.case_runner import StepResult
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.boundaries import normalize_refusal
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase, Severity, StartState
from trajsmith.envcheck.schema_probes import is_list_size, values_beyond_limits
from trajsmith.envcheck.state_view import View
from trajsmith.envcheck.stated_numbers import find_counted_numbers, find_upper_limits
from trajsmith.grounding import split_name
from trajsmith.phrasing import singularize
from trajsmith.records import JsonObject, ToolSpec, derive_seed

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
class StatedRule:
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

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(_created_relation(seen) for seen in check_session.explored.succeeded(tool.name)[:5])

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            relations = {_created_relation(seen) for seen in check_session.explored.succeeded(tool.name)} - {""}
            for relation in relations:
                for rule in dict.fromkeys(_rules(check_session, tool, relation)):
                    suspicion = await self._push(check_session, tool, rule)
                    if suspicion is not None:
                        yield suspicion

    async def _push(self, check_session: CheckSession, tool: ToolSpec, rule: StatedRule) -> Suspicion | None:
        """Make as many as possible for one owner, and look at when the refusals begin."""
        parameter = _parameter(check_session, tool, rule)
        if rule.owner and not parameter:
            return None
        starts: dict[StartState, Observation] = {}
        for seen in check_session.explored.succeeded(tool.name):
            if not seen.prefix and _created_relation(seen) == rule.relation:
                starts.setdefault(seen.start, seen)
        tried = [
            (seen, owner) for seen in list(starts.values())[:STARTS] for owner in _owners(check_session, seen, rule)
        ]
        for seen, owner in tried:
            steps, refusal = await self._fill(check_session, tool, rule, {parameter: owner} if parameter else {}, seen)
            direction = "more" if len(steps) > rule.number else "less" if refusal else ""
            if direction:
                about = {"relation": rule.relation, "owner": rule.owner, "parameter": parameter, "number": rule.number}
                case_steps = (*steps, refusal) if direction == "less" and refusal else steps
                case = CheckCase(start=seen.start, steps=tuple(case_steps), about={**about, "what": direction})
                violation = (
                    "makes more than is said" if direction == "more" else "refuses before as many are there as is said"
                )
                return Suspicion(
                    tool.name, f"{rule.relation}:{direction}", f"{tool.name} {violation}: {rule.text}", case
                )
        return None

    async def _fill(
        self, check_session: CheckSession, tool: ToolSpec, rule: StatedRule, fixed: JsonObject, seen: Observation
    ) -> tuple[list[CaseStep], CaseStep | None]:
        """Calls that made something for one owner, and a refusal that states the limit although it is not reached."""
        rng = random.Random(derive_seed(check_session.plan.seed, "fill", tool.name, rule.relation))
        view = await check_session.runner.reset_to(seen.start)
        scene, accepted_steps = ArgumentContext(view, check_session.data), list[CaseStep]()
        arguments = dict(seen.step.arguments)
        for _ in range(4 * rule.number + 12):
            step = CaseStep(tool=tool.name, arguments={**arguments, **fixed}, actor=tool.actor)
            outcome = await check_session.runner.call(step)
            if outcome.ok:
                accepted_steps.append(step)
                if len(accepted_steps) > rule.number:
                    break
            elif outcome.refusal and _states_rule(outcome.refusal, rule):
                there = _count(await check_session.runner.view(), rule, next(iter(fixed.values()), None))
                return accepted_steps, step if there < rule.number else None
            arguments = check_session.sampler.draw(tool.name, scene, rng)
        return accepted_steps, None

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        about = case.about
        rule = StatedRule(about["number"], about["relation"], about["owner"], "")
        owners = {str(step.arguments.get(about["parameter"])) for step in case.steps} if about["parameter"] else {""}
        if len(step_results) != len(case.steps) or len(owners) != 1:
            return None
        if about["what"] == "more":
            done = sum(
                step_result.outcome.ok and bool(_created_relation(step_result) == rule.relation)
                for step_result in step_results
            )
            return (
                CaseEvidence(seen=f"{done} were made", expected=f"at most {rule.number}")
                if done > rule.number
                else None
            )
        refusal = step_results[-1].outcome.refusal
        there = _count(step_results[-1].after, rule, case.steps[-1].arguments.get(about["parameter"]))
        if refusal is None or not _states_rule(refusal, rule) or there >= rule.number:
            return None
        return CaseEvidence(seen=f"with {there} it says {shorten_value(refusal)}", expected=f"room for {rule.number}")


def _created_relation(seen: Observation | StepResult) -> str:
    """The relation of the one row that a call has made; empty if there is not exactly one."""
    if not seen.outcome.ok or not seen.changed:
        return ""
    rows = [(change.relation, change.key) for change in seen.changes if change.before is None]
    inner = {place for place in rows if (place[0].rpartition(".")[0], place[1][:-1]) in rows}
    new = [relation for relation, _ in dict.fromkeys(rows) if not any(relation == place[0] for place in inner)]
    return new[0] if len(new) == 1 else ""


def _rules(check_session: CheckSession, tool: ToolSpec, relation: str) -> Iterator[StatedRule]:
    """Limits on the number of rows of a relation, in all texts that speak of it."""
    noun = singularize(split_name(relation.rsplit(".", 1)[-1])[-1]) if split_name(relation) else ""
    own, others = _list_names(check_session, relation)
    reasons = [seen.outcome.refusal or "" for seen in check_session.explored.by_tool[tool.name]]
    for text in dict.fromkeys(
        [*_SENTENCE.split(check_session.spec.policy), *_SENTENCE.split(tool.description), *reasons]
    ):
        for limit in find_upper_limits(text):
            whole = float(limit.number).is_integer() and 1 <= limit.number <= MOST
            counted = f"{' '.join(limit.rest)} "
            meant = max((name for name in (own, *others) if counted.startswith(f"{name} ")), key=len, default=own)
            if meant != own:
                continue
            if whole and limit.side == "upper" and noun and noun in limit.rest[:3]:
                owner = _owner(check_session, tool, relation, text)
                if owner is not None:
                    yield StatedRule(int(limit.number), relation, owner, " ".join(text.split())[:120])


def _list_names(check_session: CheckSession, relation: str) -> tuple[str, list[str]]:
    """Return how texts call rows of a relation, and those of the others: "pipeline", "pipeline run" beside it."""
    relations = {name for view in check_session.data.views for name in view.relations} - {relation}
    own, *others = (
        " ".join(map(singularize, split_name(name.rsplit(".", 1)[-1]))) for name in (relation, *sorted(relations))
    )
    return own, others


def _owner(check_session: CheckSession, tool: ToolSpec, relation: str, text: str) -> str | None:
    """The column of the rows that a limit is for; None if it could be several."""
    columns = [
        reference
        for reference in check_session.data.references
        if reference.relation == relation
        and not reference.listed
        and any(check_session.places.entity(name) == reference.target for name in tool.parameters)
    ]
    if len(columns) == 1:
        return columns[0].column
    text_words = set(split_name(text))
    named = [one for one in columns if singularize(split_name(one.target)[-1]) in text_words]
    if len(named) == 1:
        return named[0].column
    return "" if not columns else None


def _parameter(check_session: CheckSession, tool: ToolSpec, rule: StatedRule) -> str:
    target = check_session.data.reference(rule.relation, rule.owner)
    return next((name for name in tool.parameters if target and check_session.places.entity(name) == target.target), "")


def _owners(check_session: CheckSession, seen: Observation, rule: StatedRule) -> list[str]:
    """Those who own fewest to begin with."""
    if not rule.owner:
        return [""]
    reference = check_session.data.reference(rule.relation, rule.owner)
    names = [key[-1] for key in seen.before.rows(reference.target)] if reference else []
    return sorted(names, key=lambda name: _count(seen.before, rule, name))[:OWNERS]


def _count(view: View, rule: StatedRule, owner: object) -> int:
    rows = view.rows(rule.relation).values()
    return sum(not rule.owner or str(row.get(rule.owner)) == str(owner) for row in rows)


def _states_rule(refusal: str, rule: StatedRule) -> bool:
    """Return True if a refusal states this limit."""
    noun = singularize(split_name(rule.relation.rsplit(".", 1)[-1])[-1])
    return any(limit.number == rule.number and noun in limit.rest[:3] for limit in find_upper_limits(refusal))


_CONDITION = re.compile(r"\b(when|if|unless|only for)\b", re.IGNORECASE)
"""Words by which a description says that a limit holds at times only."""


class ParameterLimits(Check):
    """A limit in the description of a parameter holds."""

    name: ClassVar[str] = "parameter_limits"
    about: ClassVar[str] = "a limit that the description of a parameter states holds"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(probe.aim == "beyond" and probe.seen.tool == tool.name for probe in check_session.probes)

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for probe in check_session.probes:
            if probe.aim == "beyond" and probe.seen.ok and not _asks_how_many(probe.parameter):
                message = f"{probe.seen.tool} takes a {probe.parameter} beyond the limit that its description states"
                about = {"parameter": probe.parameter}
                leaf = next(
                    (one for one in check_session.sampler.leaves[probe.seen.tool] if one.path == probe.parameter), None
                )
                severity: Severity = "note" if leaf and _CONDITION.search(leaf.description) else "warning"
                yield Suspicion(probe.seen.tool, probe.parameter, message, probe.seen.case(about), severity=severity)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        step, name = case.steps[-1], case.about["parameter"]
        leaf = next((one for one in check_session.sampler.leaves[step.tool] if one.path == name), None)
        value = step.arguments.get(name)
        if leaf is None or value not in list(values_beyond_limits(leaf, value)):
            return None
        return CaseEvidence(
            seen=f"success with {shorten_value(value)}", expected=f"a refusal: {shorten_value(leaf.description)}"
        )


def _asks_how_many(parameter: str) -> bool:
    """True for sizes of lists: too large a number is often taken as the largest possible one."""
    return is_list_size(parameter) or bool({"count", "number", "many"} & set(split_name(parameter)))


class SameNumbers(Check):
    """Refusals state the numbers that policy and descriptions state."""

    name: ClassVar[str] = "stated_numbers"
    about: ClassVar[str] = "refusals state the same numbers as the policy and the descriptions"
    severity: ClassVar[Severity] = "warning"

    def skip_reason(self, check_session: CheckSession) -> str:
        return "" if check_session.spec.policy.strip() else "there is no policy"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(seen.outcome.refusal for seen in check_session.explored.by_tool[tool.name])

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        stated_numbers: dict[str, set[float]] = defaultdict(set)
        bare = {float(text) for text in _BARE.findall(check_session.spec.policy)}
        for text in (check_session.spec.policy, *(tool.description for tool in check_session.spec.tools)):
            for number, noun in find_counted_numbers(text):
                stated_numbers[noun].add(number)
        for tool in check_session.spec.tools:
            for seen, number, noun in _fixed(check_session.explored.by_tool[tool.name]):
                known = stated_numbers.get(noun, set())
                if number not in bare | known and known & {number - 1, number + 1}:
                    message = (
                        f"{tool.name} refuses with {number:g} {noun}, where policy or description say another number"
                    )
                    about = {"number": number, "noun": noun, "said": sorted(known)}
                    yield Suspicion(tool.name, f"{number:g} {noun}", message, seen.case(about))

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        refusal = (
            step_results[-1].outcome.refusal
            if step_results and step_results[-1].outcome.step == case.steps[-1]
            else None
        )
        if refusal is None or (case.about["number"], case.about["noun"]) not in find_counted_numbers(refusal):
            return None
        expected_text = " or ".join(f"{number:g}" for number in case.about["said"])
        return CaseEvidence(
            seen=shorten_value(refusal),
            expected=f"{expected_text} {case.about['noun']}, as policy and descriptions say",
        )


def _fixed(refusals: list[Observation]) -> Iterator[tuple[Observation, float, str]]:
    """Numbers that all refusals of one form state alike, and what they count."""
    forms: dict[str, list[Observation]] = defaultdict(list)
    for seen in refusals:
        if seen.outcome.refusal and not seen.outcome.schema_refusal:
            forms[normalize_refusal(seen.outcome.refusal)].append(seen)
    for refusal_numbers in forms.values():
        if len(refusal_numbers) < SAME:
            continue
        stated = [set(find_counted_numbers(seen.outcome.refusal or "")) for seen in refusal_numbers]
        for number, noun in sorted(set.intersection(*stated)):
            yield refusal_numbers[0], number, noun


__all__ = ["SameNumbers", "StatedLimits"]
