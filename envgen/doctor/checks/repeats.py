"""Doing things twice, and taking them back."""

import random
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.case import Case, Evidence, Severity, Step
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.calls import told_changes
from envgen.doctor.explore import Observation
from envgen.doctor.facts.data import is_number
from envgen.doctor.facts.fact import row_name, short
from envgen.doctor.lab import Shot
from envgen.doctor.maker import Scene
from envgen.doctor.shape import Key
from envgen.doctor.view import counts_only
from grounding.names import words
from trajectory import ToolSpec, derive_seed

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

AWAY = frozenset({"cancel", "delete", "remove", "revoke", "withdraw", "unsubscribe", "terminate", "void", "discard"})
PER_TOOL = 4
PAIRS = 3
TRIES = 4


def ends_something(tool: ToolSpec) -> bool:
    """True if a tool says that something is over afterwards."""
    first = words(tool.name)[:1]
    return tool.annotations.destructive_hint is True or (bool(first) and first[0] in AWAY)


class Twice(Check):
    """What is over cannot be ended again."""

    name: ClassVar[str] = "twice"
    about: ClassVar[str] = "what was cancelled, deleted or used up cannot be so again"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return ends_something(tool) and any(seen.changed for seen in exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            if not self.applies(exam, tool):
                continue
            changing = [seen for seen in exam.explored.succeeded(tool.name) if seen.changed]
            for seen in sorted(changing, key=lambda one: len(one.prefix))[:PER_TOOL]:
                case = Case(start=seen.start, steps=(*seen.prefix, seen.step, seen.step))
                if await self.judge(exam, case) is not None:
                    message = f"{tool.name} succeeds a second time on what it has ended, and changes the state again"
                    yield Suspicion(tool.name, "", message, case)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        if len(case.steps) < 2 or case.steps[-1] != case.steps[-2]:
            return None
        shots = await exam.lab.run(case)
        if len(shots) != len(case.steps) or not shots[-2].outcome.ok or not shots[-2].changed:
            return None
        if not shots[-1].outcome.ok or not shots[-1].changed:
            return None
        return Evidence(seen=f"the second time, {told_changes(shots[-1])}", expected="a refusal")


Moves = dict[tuple[str, Key, str], float]
"""Numbers of rows that were there before, and by how much they moved."""


class Undo(Check):
    """Taking back what was just made gives back what it took."""

    name: ClassVar[str] = "undo"
    about: ClassVar[str] = "ending what was just made gives back what making it took, and no more"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return ends_something(tool) and any(seen.changed for seen in exam.explored.succeeded(tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for ender in exam.spec.tools:
            if not ends_something(ender):
                continue
            for maker in exam.spec.tools:
                for suspicion in await self._pair(exam, maker, ender):
                    yield suspicion

    async def _pair(self, exam: "Exam", maker: ToolSpec, ender: ToolSpec) -> list[Suspicion]:
        """What making and ending the same thing leaves behind."""
        found: list[Suspicion] = []
        done = 0
        for seen in exam.explored.succeeded(maker.name):
            if done >= PAIRS:
                break
            for name, key in _made(exam, seen, ender):
                case = await self._ended(exam, seen, ender, name, key)
                if case is None:
                    continue
                done += 1
                shots = await exam.lab.run(case)
                for column, what, severity in _unbalanced(shots):
                    message = f"{ender.name} after {maker.name}: {what}"
                    about = {"column": list(column)}
                    found.append(
                        Suspicion(
                            ender.name,
                            f"{maker.name}:{'.'.join(column)}",
                            message,
                            _about(case, about),
                            severity=severity,
                        )
                    )
                break
        return found

    async def _ended(self, exam: "Exam", seen: Observation, ender: ToolSpec, name: str, key: str) -> Case | None:
        """A case that makes something and ends it at once."""
        rng = random.Random(derive_seed(exam.plan.seed, "undo", seen.tool, ender.name))
        for _ in range(TRIES):
            scene = Scene(seen.after, exam.data)
            arguments = {**exam.maker.draw(ender.name, scene, rng, share=0.0), name: key}
            step = Step(tool=ender.name, arguments=arguments, actor=ender.actor)
            case = Case(start=seen.start, steps=(*seen.prefix, seen.step, step))
            shots = await exam.lab.run(case)
            if len(shots) == len(case.steps) and shots[-1].outcome.ok and shots[-1].changed:
                return case
        return None

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if len(shots) != len(case.steps) or len(shots) < 2 or not all(shot.outcome.ok for shot in shots[-2:]):
            return None
        for column, what, _ in _unbalanced(shots):
            if list(column) == case.about["column"]:
                return Evidence(seen=what, expected="ending it gives back what making it took")
        return None

    def shrinkable(self, case: Case) -> bool:
        return len(case.steps) > 2


def _about(case: Case, about: dict[str, list[str]]) -> Case:
    return case.model_copy(update={"about": about})


def _made(exam: "Exam", seen: Observation, ender: ToolSpec) -> list[tuple[str, str]]:
    """Parameters of a tool that take the name of what a call has made, with that name."""
    new = (
        [(change.relation, change.key[-1]) for change in seen.changes if change.before is None] if seen.changed else []
    )
    return [
        (name, key)
        for name in ender.required
        for relation, key in new
        if exam.places.entity(name) == relation and seen.tool != ender.name
    ]


def _moves(shot: Shot, known: set[tuple[str, Key]]) -> Moves:
    return {
        (change.relation, change.key, column): round(new - old, 4)
        for change in shot.changes
        if change.before is not None and change.after is not None and (change.relation, change.key) in known
        if not counts_only(change)
        for column, (old, new) in change.fields.items()
        if is_number(old) and is_number(new)
    }


def _unbalanced(shots: list[Shot]) -> list[tuple[tuple[str, str], str, Severity]]:
    """Numbers that making moved and ending did not, or the other way round: relation and column, what was seen."""
    made, ended = shots[-2], shots[-1]
    known = {(relation, key) for relation, rows in made.before.relations.items() for key in rows}
    taken, given = _moves(made, known), _moves(ended, known)
    found: list[tuple[tuple[str, str], str, Severity]] = []
    for place in dict.fromkeys([*taken, *given]):
        relation, key, column = place
        first, second = taken.get(place, 0.0), given.get(place, 0.0)
        where = f"{column} of {row_name(relation, key)}"
        whole = float(first).is_integer() and float(second).is_integer()
        if first and second:
            if whole and abs(first + second) == 1:
                what = f"{where} moves by {short(first)} and back by {short(second)}"
                found.append(((relation, column), what, "warning"))
        elif second:
            found.append(
                ((relation, column), f"{where} moves by {short(second)}, and making it had not moved it", "warning")
            )
        else:
            what = f"{where} moved by {short(first)} when it was made, and stays so"
            found.append(((relation, column), what, "warning" if whole else "note"))
    return found
