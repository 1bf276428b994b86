"""Save and restore: the saved state is complete."""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from trajsmith.envcheck.case_runner import StepResult
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.checks.determinism import EXPLAINED
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase
from trajsmith.envcheck.schema_probes import is_list_size
from trajsmith.records import EnvironmentFault, compute_state_digest

PER_TOOL = 3
"""Writes of each tool after which it is saved and loaded."""
READS = 2
"""Successful calls of each other tool that are made before and after."""
RELOAD = CaseStep(do="reload")
NO_RESTORE = "this kind of environment cannot go back to a saved state"


class RestoredState(Check):
    """After saving and loading, the same calls give the same."""

    name: ClassVar[str] = "save_load"
    about: ClassVar[str] = "after the state was saved and loaded, calls give what they give without that"

    def skip_reason(self, check_session: CheckSession) -> str:
        return "" if check_session.spec.can_restore else NO_RESTORE

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            changing = [seen for seen in check_session.explored.succeeded(tool.name) if seen.changed]
            changing.sort(key=lambda seen: len(seen.prefix))
            for seen in _various(changing, PER_TOOL):
                suspect = await self._difference(check_session, seen)
                if suspect is not None:
                    yield suspect

    async def _difference(self, check_session: CheckSession, seen: Observation) -> Suspicion | None:
        """The first call after a write that gives something else if the state was saved and loaded before it."""
        reads = _reads(check_session, seen)
        first = (*seen.prefix, *reads, seen.step)
        later = (*reads, *_about_new(check_session, seen), seen.step)
        plain = await check_session.runner.run(CheckCase(start=seen.start, steps=(*first, *later)))
        try:
            loaded = await check_session.runner.run(CheckCase(start=seen.start, steps=(*first, RELOAD, *later)))
        except EnvironmentFault:
            return None  # a state that cannot be loaded at all is for `round_trip`
        unsteady = {finding.tool for finding in check_session.findings if finding.check in EXPLAINED}
        for index in range(len(first), min(len(plain), len(loaded))):
            if later[index - len(first)].tool in unsteady:
                break  # what it does depends on more than the state, and is told already
            if not _alike(plain[index], loaded[index]):
                steps = (*first, RELOAD, *later[: index - len(first) + 1])
                tool = later[index - len(first)].tool
                message = f"after {seen.tool}, saving and loading changes what {tool} does"
                return Suspicion(tool, "", message, CheckCase(start=seen.start, steps=steps))
        return None

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        if RELOAD not in case.steps or case.steps[-1] == RELOAD:
            return None
        calls = tuple(step for step in case.steps if step != RELOAD)
        plain = await self._fresh(check_session, case.model_copy(update={"steps": calls}))
        loaded = await self._fresh(check_session, case)
        if not plain or not loaded or len(plain) != len(loaded) or _alike(plain[-1], loaded[-1]):
            return None
        again = await self._fresh(check_session, case.model_copy(update={"steps": calls}))
        if not again or not _alike(plain[-1], again[-1]):
            return None  # it is different every time; that is for another check
        early = await self._fresh(check_session, case.model_copy(update={"steps": (RELOAD, *calls)}))
        if not early or _alike(early[-1], loaded[-1]):
            return None  # no call left it behind: a stored state has lost the order of its objects, as JSON has none
        return CaseEvidence(seen=_describe_result(loaded[-1]), expected=_describe_result(plain[-1]))

    async def _fresh(self, check_session: CheckSession, case: CheckCase) -> list[StepResult]:
        """Play a case in a new session, which nothing was done in before."""
        await check_session.runner.open_new_session()
        return await check_session.runner.run(case)


def _various(seen: list[Observation], count: int) -> list[Observation]:
    """The first few with different arguments, from different initial states."""
    picked: dict[object, Observation] = {}
    for one in seen:
        picked.setdefault(one.start, one)
    return [*picked.values(), *(one for one in seen if one not in picked.values())][:count]


def _reads(check_session: CheckSession, seen: Observation) -> tuple[CaseStep, ...]:
    """Calls that succeed and change nothing, at the same initial state: of each tool a few, about the same first."""
    about = _about(check_session, seen)
    reads: list[CaseStep] = []
    for tool in check_session.spec.tools:
        calm = [
            one for one in check_session.explored.succeeded(tool.name) if not one.changed and one.start == seen.start
        ]
        calm.sort(key=lambda one: -_mentions(one, about))
        reads += list({str(one.step.arguments): one.step for one in calm}.values())[:READS]
    return tuple(reads)


def _about(check_session: CheckSession, seen: Observation) -> set[str]:
    """Names of what a write is about: its arguments, the rows that it changed, and what these point to."""
    names = {str(value) for value in seen.step.arguments.values()}
    for change in seen.changes:
        names.add(change.key[-1] if change.key else "")
        row = change.after if change.after is not None else change.before or {}
        names |= {str(row[name]) for name in row if check_session.data.reference(change.relation, name) is not None}
    return names - {"", "None"}


def _mentions(one: Observation, names: set[str]) -> int:
    """Return how strongly a call refers to these names; its arguments count most."""
    arguments = {str(value) for value in one.step.arguments.values()}
    answer = str(one.outcome.content)
    return 3 * len(arguments & names) + sum(name in answer for name in names)


def _about_new(check_session: CheckSession, seen: Observation) -> tuple[CaseStep, ...]:
    """Calls that name what this call has made, taken from later in the same play."""
    new = {change.key[-1] for change in seen.changes if change.before is None}
    later_calls: dict[str, CaseStep] = {}
    for one in check_session.explored.observations:
        follows = one.start == seen.start and seen.step in one.prefix and one.ok
        if follows and not new.isdisjoint(str(value) for value in one.step.arguments.values()):
            later_calls.setdefault(one.tool, one.step)
    return tuple(later_calls.values())


def _alike(first: StepResult, second: StepResult) -> bool:
    if not first.after.equals(second.after):
        return False
    if first.outcome.digest == second.outcome.digest:
        return True
    if any(is_list_size(name) for name in first.outcome.step.arguments):
        return bool(_lengths(first.outcome.content) == _lengths(second.outcome.content))  # others may come first
    return first.outcome.ok and second.outcome.ok and _mixed(first.outcome.content) == _mixed(second.outcome.content)


def _mixed(content: Any) -> Any:
    """An answer without the order of its lists: JSON objects have none, so an answer cannot keep theirs."""
    if isinstance(content, dict):
        return {name: _mixed(value) for name, value in content.items() if name not in ("index", "position")}
    if isinstance(content, list):
        return sorted((_mixed(value) for value in content), key=str)
    return content


def _lengths(content: Any) -> Any:
    """Return the lengths of the lists in a result."""
    if isinstance(content, dict):
        return {name: _lengths(value) for name, value in content.items()}
    return len(content) if isinstance(content, list) else None


def _describe_result(step_result: StepResult) -> str:
    content = step_result.outcome.content if step_result.outcome.fault is None else str(step_result.outcome.fault)
    return f"{shorten_value(content)}, state {compute_state_digest(step_result.after.state)[:8]}"


class StateRoundTrip(Check):
    """A saved state can be loaded, and saves to the same."""

    name: ClassVar[str] = "round_trip"
    about: ClassVar[str] = "a saved state can be loaded, and saved again it is the same"

    def skip_reason(self, check_session: CheckSession) -> str:
        return "" if check_session.spec.can_restore else NO_RESTORE

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        already_reported = {finding.tool for finding in check_session.findings if finding.check == "state_schema"}
        for tool in check_session.spec.tools:
            changing = [seen for seen in check_session.explored.succeeded(tool.name) if seen.changed]
            if tool.name in already_reported:
                continue  # what is no state cannot be loaded
            for seen in changing[:: max(1, len(changing) // 8)]:
                case = seen.case()
                if await self._fault(check_session, seen.after.state) is not None:
                    yield Suspicion(
                        tool.name, "", f"the state that {tool.name} leaves is not the same after loading", case
                    )

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if (
            not step_results
            or not step_results[-1].outcome.ok
            or await self._fault(check_session, step_results[-1].before.state) is not None
        ):
            return None
        return await self._fault(check_session, step_results[-1].after.state)

    async def _fault(self, check_session: CheckSession, state: dict[str, object]) -> CaseEvidence | None:
        session = await check_session.source.open()
        try:
            await session.reset(state)
            after = await session.snapshot()
        except EnvironmentFault as fault:
            return CaseEvidence(seen=f"loading fails: {fault}"[:300], expected="the same state")
        finally:
            await session.close()
        if after == state:
            return None
        names = [name for name in {**state, **after} if state.get(name) != after.get(name)]
        return CaseEvidence(seen=f"{', '.join(names)} differ after loading", expected="the same state")
