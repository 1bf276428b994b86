"""Determinism: the same calls from the same state give the same results in every process and order."""

from collections.abc import AsyncIterator
from typing import ClassVar

from trajsmith.envcheck.case_runner import Digests, ReplayedCase
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.determinism_replays import choose_cases, play_all, play_interleaved, play_steps
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase, Severity
from trajsmith.envcheck.source_capabilities import LeakReportingSource, StaticallyCheckedSource
from trajsmith.environments import EnvironmentSource
from trajsmith.records import JsonObject

EXPLAINED = ("determinism", "clock", "process")
"""Checks that explain why something differs elsewhere."""
NO_PROCESS = "this kind of environment cannot be started again in another process"


async def replay_sample(check_session: CheckSession) -> list[ReplayedCase]:
    """A sample of all calls, played again in several places; done once per examination."""
    if check_session.plays is None:
        check_session.plays = plays = choose_cases(check_session)
        if plays:
            await play_all(check_session, check_session.source, plays, "here")
            await play_interleaved(check_session, plays[::-1], "beside")
        if plays and check_session.other_processes.source is not None:
            for number, shift in ((1, -1), (2, 1)):
                await play_all(
                    check_session, check_session.other_processes.at(number, shift), plays[::-1], f"elsewhere {number}"
                )
    return check_session.plays


class Determinism(Check):
    """The same calls from the same state give the same answers and the same state."""

    name: ClassVar[str] = "determinism"
    about: ClassVar[str] = "the same calls from the same state give the same answers and the same state"

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for one in await replay_sample(check_session):
            if not one.same:
                case = one.first_difference()
                tool = case.steps[-1].tool
                yield Suspicion(tool, "", f"{tool} gives something else when the same calls are made again", case)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        state = await check_session.runner.state(case.start)
        seen = []
        for _ in range(2):
            session = await check_session.source.open()
            seen.append(await play_steps(session, state, case.steps))
            await session.close()
        return _describe_difference(seen[0], seen[1], "the second time", "the first time")


def _describe_difference(first: Digests, second: Digests, where: str, than: str) -> CaseEvidence | None:
    """Return the difference in the last call, if all calls before it are equal."""
    if first[-1:] == second[-1:] or first[:-1] != second[:-1]:
        return None
    answer, _, state = first[-1].partition(" ") if first else ("", "", "")
    other, _, changed = second[-1].partition(" ") if second else ("", "", "")
    difference = "another answer" if answer != other else "another state" if state != changed else "something else"
    return CaseEvidence(seen=f"{difference} {where}", expected=f"the same as {than}")


class _OtherProcessCheck(Check):
    """Base of checks that compare with another process."""

    hash_seed: ClassVar[int] = 0
    shifts: ClassVar[tuple[int, ...]] = (0,)
    words: ClassVar[str] = ""
    where: ClassVar[str] = ""

    def skip_reason(self, check_session: CheckSession) -> str:
        return "" if check_session.other_processes.source is not None else NO_PROCESS

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        already_reported = {finding.tool for finding in check_session.findings if finding.check in EXPLAINED}
        for one in await replay_sample(check_session):
            case = one.first_difference()
            tool = case.steps[-1].tool
            if not one.same and tool not in already_reported:
                yield Suspicion(tool, "", f"{tool} {self.words}", case, severity=self.weight(check_session))

    def weight(self, check_session: CheckSession) -> Severity:
        return self.severity

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        state = await check_session.runner.state(case.start)
        usual = await self._play(check_session.other_processes.at(0, 0), state, case)
        for shift in self.shifts:
            other = await self._play(check_session.other_processes.at(self.hash_seed, shift), state, case)
            evidence = _describe_difference(other, usual, self.where, "otherwise")
            if evidence is not None:
                return evidence
        return None

    async def _play(self, source: EnvironmentSource, state: JsonObject, case: CheckCase) -> Digests:
        session = await source.open()
        seen = await play_steps(session, state, case.steps)
        await session.close()
        return seen


class ClockIndependence(_OtherProcessCheck):
    """Nothing depends on the machine's clock or on chance: time, ids and randomness are part of the state."""

    name: ClassVar[str] = "clock"
    about: ClassVar[str] = "nothing depends on the machine's clock or on chance; both are part of the state"
    shifts: ClassVar[tuple[int, ...]] = (-1, 1)
    words: ClassVar[str] = "goes by the machine's clock or by chance (now, uuid4, random) and not by the state"
    where: ClassVar[str] = "with another clock and other chance"

    def weight(self, check_session: CheckSession) -> Severity:
        """Return a higher weight where clock and randomness are virtual, since calls can be repeated there."""
        return "warning" if isinstance(check_session.source, LeakReportingSource) else "error"


class ProcessIndependence(_OtherProcessCheck):
    """Another process with another hash seed gives the same."""

    name: ClassVar[str] = "process"
    about: ClassVar[str] = "another process, with another hash seed, gives the same answers and states"
    hash_seed: ClassVar[int] = 7
    words: ClassVar[str] = "depends on the process that it runs in (the order of a set, an address)"
    where: ClassVar[str] = "in another process with another hash seed"


class SessionIsolation(Check):
    """Actions in one session have no effect in another one."""

    name: ClassVar[str] = "isolation"
    about: ClassVar[str] = "what is done in one session is not seen in another"
    tries: ClassVar[int] = 9

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        already_reported = {finding.tool for finding in check_session.findings if finding.check in EXPLAINED}
        plays = await replay_sample(check_session)
        for one in plays:
            if one.same:
                continue
            case = one.first_difference()
            tool = case.steps[-1].tool
            if tool in already_reported:
                continue
            elsewhere = [start for start in check_session.starts if start != case.start][:3]
            others = [CheckCase(start=start, steps=case.steps[-1:]) for start in elsewhere]
            others += [other.case for other in plays if other.tool == tool and other is not one][:4]
            others += [other.case for other in plays if other.tool != tool][:2]
            for other in others:
                yield Suspicion(
                    tool, "", f"{tool} shows what was done in another session", _case_after_other(other, case)
                )

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        own = [step for step in case.steps if step.session == 0]
        alone = await self._last(check_session, case, own)
        beside = await self._last(check_session, case, list(case.steps))
        return _describe_difference(beside, alone, "after other calls in another session", "without that session")

    async def _last(self, check_session: CheckSession, case: CheckCase, steps: list[CaseStep]) -> Digests:
        """Digests of session 0 in these steps; in a fresh process if there can be one."""
        source = check_session.source
        if check_session.other_processes.source is not None:
            source = check_session.other_processes.at(0, 0, fresh=True)
        digests: Digests = ()
        for number in sorted({step.session for step in steps}, reverse=True):
            start = case.start if number == 0 else case.start.model_copy(update=case.about["other"])
            session = await source.open()
            own = [step for step in steps if step.session == number]
            digests = await play_steps(session, await check_session.runner.state(start), own)
        return digests

    def is_shrinkable(self, case: CheckCase) -> bool:
        return False


class NoSideEffects(Check):
    """Calls leave nothing behind outside of the state."""

    name: ClassVar[str] = "undeclared_state"
    about: ClassVar[str] = "calls leave nothing behind in modules, classes and closures"
    per_tool: ClassVar[bool] = False

    def skip_reason(self, check_session: CheckSession) -> str:
        return (
            ""
            if isinstance(check_session.source, LeakReportingSource)
            else "the modules of this kind of environment are not watched"
        )

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        assert isinstance(check_session.source, LeakReportingSource)
        looked = await check_session.source.look()
        if looked is None:
            check_session.skipped[self.name] = "its plays have processes of their own, and share nothing"
        elif looked[0]:
            changed = looked[0]
            changed_paths = ", ".join(changed[:5])
            evidence = CaseEvidence(
                seen=f"calls changed {changed_paths}", expected="nothing outside of the state changes"
            )
            yield Suspicion(
                None, "", f"calls leave something behind outside of the state: {changed_paths}", None, evidence
            )


class StaticGate(Check):
    """Findings of the static gate about the code."""

    name: ClassVar[str] = "gate"
    about: ClassVar[str] = "the code uses nothing that keeps its plays from being repeated and kept apart"
    severity: ClassVar[Severity] = "note"
    per_tool: ClassVar[bool] = False

    def skip_reason(self, check_session: CheckSession) -> str:
        return (
            ""
            if isinstance(check_session.source, StaticallyCheckedSource)
            else "the code of this kind of environment is not looked at"
        )

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for gate_finding in (
            check_session.source.gate() if isinstance(check_session.source, StaticallyCheckedSource) else ()
        ):
            where = f"line {gate_finding['line']}: {gate_finding['message']}"
            evidence = CaseEvidence(seen=where, expected="code that keeps to its state")
            yield Suspicion(None, f"{gate_finding['rule']}:{gate_finding['line']}", where, None, evidence)


def _case_after_other(other: CheckCase, case: CheckCase) -> CheckCase:
    """The calls of another case in another session, then those of this one."""
    before = [step.model_copy(update={"session": 1}) for step in other.steps]
    about = {"other": other.start.model_dump()}
    return CheckCase(start=case.start, steps=(*before, *case.steps), about=about)
