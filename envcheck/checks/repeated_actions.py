"""Repeated and reversed actions."""

import random
from collections.abc import AsyncIterator
from typing import ClassVar

from trajsmith.envcheck.argument_sampler import ArgumentContext
from trajsmith.envcheck.case_runner import StepResult
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.call_contract import describe_changes
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import format_row_name, shorten_value
from trajsmith.envcheck.facts.state_columns import is_number
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase, Severity
from trajsmith.envcheck.state_shape import Key
from trajsmith.envcheck.state_view import is_counter_change
from trajsmith.grounding import split_name
from trajsmith.records import ToolSpec, derive_seed

AWAY = frozenset({"cancel", "delete", "remove", "revoke", "withdraw", "unsubscribe", "terminate", "void", "discard"})
PER_TOOL = 4
PAIRS = 3
TRIES = 4


def is_ending_tool(tool: ToolSpec) -> bool:
    """Return True if a tool ends something, by its name."""
    first = split_name(tool.name)[:1]
    return tool.annotations.destructive_hint is True or (bool(first) and first[0] in AWAY)


class EndedTwice(Check):
    """Ended objects cannot be ended again."""

    name: ClassVar[str] = "twice"
    about: ClassVar[str] = "what was cancelled, deleted or used up cannot be so again"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return is_ending_tool(tool) and any(seen.changed for seen in check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            if not self.is_applicable(check_session, tool):
                continue
            changing = [seen for seen in check_session.explored.succeeded(tool.name) if seen.changed]
            for seen in sorted(changing, key=lambda one: len(one.prefix))[:PER_TOOL]:
                case = CheckCase(start=seen.start, steps=(*seen.prefix, seen.step, seen.step))
                if await self.judge(check_session, case) is not None:
                    message = f"{tool.name} succeeds a second time on what it has ended, and changes the state again"
                    yield Suspicion(tool.name, "", message, case)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        if len(case.steps) < 2 or case.steps[-1] != case.steps[-2]:
            return None
        step_results = await check_session.runner.run(case)
        if len(step_results) != len(case.steps) or not step_results[-2].outcome.ok or not step_results[-2].changed:
            return None
        if not step_results[-1].outcome.ok or not step_results[-1].changed:
            return None
        return CaseEvidence(seen=f"the second time, {describe_changes(step_results[-1])}", expected="a refusal")


Moves = dict[tuple[str, Key, str], float]
"""Numbers of rows that were there before, and by how much they moved."""


class UndoRestores(Check):
    """Taking back what was just made gives back what it took."""

    name: ClassVar[str] = "undo"
    about: ClassVar[str] = "ending what was just made gives back what making it took, and no more"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return is_ending_tool(tool) and any(seen.changed for seen in check_session.explored.succeeded(tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for ender in check_session.spec.tools:
            if not is_ending_tool(ender):
                continue
            for maker in check_session.spec.tools:
                for suspicion in await self._pair(check_session, maker, ender):
                    yield suspicion

    async def _pair(self, check_session: CheckSession, maker: ToolSpec, ender: ToolSpec) -> list[Suspicion]:
        """Return suspicions for changes that creating and ending one object leaves behind."""
        suspicions: list[Suspicion] = []
        done = 0
        for seen in check_session.explored.succeeded(maker.name):
            if done >= PAIRS:
                break
            for name, key in _created_names(check_session, seen, ender):
                case = await self._ended(check_session, seen, ender, name, key)
                if case is None:
                    continue
                done += 1
                step_results = await check_session.runner.run(case)
                for column, difference, severity in _unbalanced(step_results):
                    message = f"{ender.name} after {maker.name}: {difference}"
                    about = {"column": list(column)}
                    suspicions.append(
                        Suspicion(
                            ender.name,
                            f"{maker.name}:{'.'.join(column)}",
                            message,
                            _with_about(case, about),
                            severity=severity,
                        )
                    )
                break
        return suspicions

    async def _ended(
        self, check_session: CheckSession, seen: Observation, ender: ToolSpec, name: str, key: str
    ) -> CheckCase | None:
        """A case that makes something and ends it at once."""
        rng = random.Random(derive_seed(check_session.plan.seed, "undo", seen.tool, ender.name))
        for _ in range(TRIES):
            scene = ArgumentContext(seen.after, check_session.data)
            arguments = {**check_session.sampler.draw(ender.name, scene, rng, share=0.0), name: key}
            step = CaseStep(tool=ender.name, arguments=arguments, actor=ender.actor)
            case = CheckCase(start=seen.start, steps=(*seen.prefix, seen.step, step))
            step_results = await check_session.runner.run(case)
            if len(step_results) == len(case.steps) and step_results[-1].outcome.ok and step_results[-1].changed:
                return case
        return None

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if (
            len(step_results) != len(case.steps)
            or len(step_results) < 2
            or not all(step_result.outcome.ok for step_result in step_results[-2:])
        ):
            return None
        for column, difference, _ in _unbalanced(step_results):
            if list(column) == case.about["column"]:
                return CaseEvidence(seen=difference, expected="ending it gives back what making it took")
        return None

    def is_shrinkable(self, case: CheckCase) -> bool:
        return len(case.steps) > 2


def _with_about(case: CheckCase, about: dict[str, list[str]]) -> CheckCase:
    return case.model_copy(update={"about": about})


def _created_names(check_session: CheckSession, seen: Observation, ender: ToolSpec) -> list[tuple[str, str]]:
    """Parameters of a tool that take the name of what a call has made, with that name."""
    new = (
        [(change.relation, change.key[-1]) for change in seen.changes if change.before is None] if seen.changed else []
    )
    return [
        (name, key)
        for name in ender.required
        for relation, key in new
        if check_session.places.entity(name) == relation and seen.tool != ender.name
    ]


def _moves(step_result: StepResult, known: set[tuple[str, Key]]) -> Moves:
    return {
        (change.relation, change.key, column): round(new - old, 4)
        for change in step_result.changes
        if change.before is not None and change.after is not None and (change.relation, change.key) in known
        if not is_counter_change(change)
        for column, (old, new) in change.fields.items()
        if is_number(old) and is_number(new)
    }


def _unbalanced(step_results: list[StepResult]) -> list[tuple[tuple[str, str], str, Severity]]:
    """Numbers that making moved and ending did not, or the other way round: relation and column, what was seen."""
    creation, removal = step_results[-2], step_results[-1]
    known = {(relation, key) for relation, rows in creation.before.relations.items() for key in rows}
    taken, returned = _moves(creation, known), _moves(removal, known)
    differences: list[tuple[tuple[str, str], str, Severity]] = []
    for place in dict.fromkeys([*taken, *returned]):
        relation, key, column = place
        first, second = taken.get(place, 0.0), returned.get(place, 0.0)
        where = f"{column} of {format_row_name(relation, key)}"
        whole = float(first).is_integer() and float(second).is_integer()
        if first and second:
            if whole and abs(first + second) == 1:
                difference = f"{where} moves by {shorten_value(first)} and back by {shorten_value(second)}"
                differences.append(((relation, column), difference, "warning"))
        elif second:
            differences.append(
                (
                    (relation, column),
                    f"{where} moves by {shorten_value(second)}, and making it had not moved it",
                    "warning",
                )
            )
        else:
            difference = f"{where} moved by {shorten_value(first)} when it was made, and stays so"
            differences.append(((relation, column), difference, "warning" if whole else "note"))
    return differences
