"""The same calls from the same state give the same, whenever, wherever and beside whatever they are made."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.abilities import Gated, Looking
from envgen.doctor.case import Case, Evidence, Severity, Step
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.replays import Digests, Play, chosen, play, play_all, play_beside
from environments import EnvironmentSource
from trajectory import JsonObject

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

EXPLAINED = ("determinism", "clock", "process")
"""Checks that explain why something differs elsewhere."""
NO_PROCESS = "this kind of environment cannot be started again in another process"


async def replayed(exam: "Exam") -> list[Play]:
    """A sample of all calls, played again in several places; done once per examination."""
    if exam.plays is None:
        exam.plays = plays = chosen(exam)
        if plays:
            await play_all(exam, exam.source, plays, "here")
            await play_beside(exam, plays[::-1], "beside")
        if plays and exam.elsewhere.source is not None:
            for number, shift in ((1, -1), (2, 1)):
                await play_all(exam, exam.elsewhere.at(number, shift), plays[::-1], f"elsewhere {number}")
    return exam.plays


class Determinism(Check):
    """The same calls from the same state give the same answers and the same state."""

    name: ClassVar[str] = "determinism"
    about: ClassVar[str] = "the same calls from the same state give the same answers and the same state"

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for one in await replayed(exam):
            if not one.same:
                case = one.first_difference()
                tool = case.steps[-1].tool
                yield Suspicion(tool, "", f"{tool} gives something else when the same calls are made again", case)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        state = await exam.lab.state(case.start)
        seen = []
        for _ in range(2):
            session = await exam.source.open()
            seen.append(await play(session, state, case.steps))
            await session.close()
        return _differ(seen[0], seen[1], "the second time", "the first time")


def _differ(first: Digests, second: Digests, where: str, than: str) -> Evidence | None:
    """What differs in the last call, if all before it are the same."""
    if first[-1:] == second[-1:] or first[:-1] != second[:-1]:
        return None
    answer, _, state = first[-1].partition(" ") if first else ("", "", "")
    other, _, changed = second[-1].partition(" ") if second else ("", "", "")
    what = "another answer" if answer != other else "another state" if state != changed else "something else"
    return Evidence(seen=f"{what} {where}", expected=f"the same as {than}")


class _Elsewhere(Check):
    """Comparing with another process."""

    hash_seed: ClassVar[int] = 0
    shifts: ClassVar[tuple[int, ...]] = (0,)
    words: ClassVar[str] = ""
    where: ClassVar[str] = ""

    def skip(self, exam: "Exam") -> str:
        return "" if exam.elsewhere.source is not None else NO_PROCESS

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        told = {finding.tool for finding in exam.findings if finding.check in EXPLAINED}
        for one in await replayed(exam):
            case = one.first_difference()
            tool = case.steps[-1].tool
            if not one.same and tool not in told:
                yield Suspicion(tool, "", f"{tool} {self.words}", case, severity=self.weight(exam))

    def weight(self, exam: "Exam") -> Severity:
        return self.severity

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        state = await exam.lab.state(case.start)
        usual = await self._play(exam.elsewhere.at(0, 0), state, case)
        for shift in self.shifts:
            other = await self._play(exam.elsewhere.at(self.hash_seed, shift), state, case)
            evidence = _differ(other, usual, self.where, "otherwise")
            if evidence is not None:
                return evidence
        return None

    async def _play(self, source: EnvironmentSource, state: JsonObject, case: Case) -> Digests:
        session = await source.open()
        seen = await play(session, state, case.steps)
        await session.close()
        return seen


class Clock(_Elsewhere):
    """Nothing depends on the machine's clock or on chance: time, ids and randomness are part of the state."""

    name: ClassVar[str] = "clock"
    about: ClassVar[str] = "nothing depends on the machine's clock or on chance; both are part of the state"
    shifts: ClassVar[tuple[int, ...]] = (-1, 1)
    words: ClassVar[str] = "goes by the machine's clock or by chance (now, uuid4, random) and not by the state"
    where: ClassVar[str] = "with another clock and other chance"

    def weight(self, exam: "Exam") -> Severity:
        """Where clock and chance are virtual, plays can be repeated all the same."""
        return "warning" if isinstance(exam.source, Looking) else "error"


class Process(_Elsewhere):
    """Another process with another hash seed gives the same."""

    name: ClassVar[str] = "process"
    about: ClassVar[str] = "another process, with another hash seed, gives the same answers and states"
    hash_seed: ClassVar[int] = 7
    words: ClassVar[str] = "depends on the process that it runs in (the order of a set, an address)"
    where: ClassVar[str] = "in another process with another hash seed"


class Isolation(Check):
    """What is done in one session is not seen in another."""

    name: ClassVar[str] = "isolation"
    about: ClassVar[str] = "what is done in one session is not seen in another"
    tries: ClassVar[int] = 9

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        told = {finding.tool for finding in exam.findings if finding.check in EXPLAINED}
        plays = await replayed(exam)
        for one in plays:
            if one.same:
                continue
            case = one.first_difference()
            tool = case.steps[-1].tool
            if tool in told:
                continue
            elsewhere = [start for start in exam.starts if start != case.start][:3]
            others = [Case(start=start, steps=case.steps[-1:]) for start in elsewhere]
            others += [other.case for other in plays if other.tool == tool and other is not one][:4]
            others += [other.case for other in plays if other.tool != tool][:2]
            for other in others:
                yield Suspicion(tool, "", f"{tool} shows what was done in another session", _after(other, case))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        own = [step for step in case.steps if step.session == 0]
        alone = await self._last(exam, case, own)
        beside = await self._last(exam, case, list(case.steps))
        return _differ(beside, alone, "after other calls in another session", "without that session")

    async def _last(self, exam: "Exam", case: Case, steps: list[Step]) -> Digests:
        """Digests of session 0 in these steps; in a fresh process if there can be one."""
        source = exam.source
        if exam.elsewhere.source is not None:
            source = exam.elsewhere.at(0, 0, fresh=True)
        digests: Digests = ()
        for number in sorted({step.session for step in steps}, reverse=True):
            start = case.start if number == 0 else case.start.model_copy(update=case.about["other"])
            session = await source.open()
            own = [step for step in steps if step.session == number]
            digests = await play(session, await exam.lab.state(start), own)
        return digests

    def shrinkable(self, case: Case) -> bool:
        return False


class LeftBehind(Check):
    """Calls leave nothing behind outside of the state."""

    name: ClassVar[str] = "undeclared_state"
    about: ClassVar[str] = "calls leave nothing behind in modules, classes and closures"
    per_tool: ClassVar[bool] = False

    def skip(self, exam: "Exam") -> str:
        return "" if isinstance(exam.source, Looking) else "nobody watches the modules of this kind of environment"

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        assert isinstance(exam.source, Looking)
        looked = await exam.source.look()
        if looked is None:
            exam.skipped[self.name] = "its plays have processes of their own, and share nothing"
        elif looked[0]:
            changed = looked[0]
            told = ", ".join(changed[:5])
            evidence = Evidence(seen=f"calls changed {told}", expected="nothing outside of the state changes")
            yield Suspicion(None, "", f"calls leave something behind outside of the state: {told}", None, evidence)


class Gate(Check):
    """What was noticed about the code before it ran."""

    name: ClassVar[str] = "gate"
    about: ClassVar[str] = "the code uses nothing that keeps its plays from being repeated and kept apart"
    severity: ClassVar[Severity] = "note"
    per_tool: ClassVar[bool] = False

    def skip(self, exam: "Exam") -> str:
        return "" if isinstance(exam.source, Gated) else "the code of this kind of environment is not looked at"

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for found in exam.source.gate() if isinstance(exam.source, Gated) else ():
            where = f"line {found['line']}: {found['message']}"
            evidence = Evidence(seen=where, expected="code that keeps to its state")
            yield Suspicion(None, f"{found['rule']}:{found['line']}", where, None, evidence)


def _after(other: Case, case: Case) -> Case:
    """The calls of another case in another session, then those of this one."""
    before = [step.model_copy(update={"session": 1}) for step in other.steps]
    about = {"other": other.start.model_dump()}
    return Case(start=case.start, steps=(*before, *case.steps), about=about)
