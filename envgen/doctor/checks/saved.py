"""Saving and loading: the state is all that there is."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Case, Evidence, Step
from envgen.doctor.checks.again import EXPLAINED
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.explore import Observation
from envgen.doctor.facts.fact import short
from envgen.doctor.lab import Shot
from envgen.doctor.probes import sizes_list
from trajectory import EnvironmentFault, state_digest

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

PER_TOOL = 3
"""Writes of each tool after which it is saved and loaded."""
READS = 2
"""Successful calls of each other tool that are made before and after."""
RELOAD = Step(do="reload")
NO_RESTORE = "this kind of environment cannot go back to a saved state"


class Saved(Check):
    """After saving and loading, the same calls give the same."""

    name: ClassVar[str] = "save_load"
    about: ClassVar[str] = "after the state was saved and loaded, calls give what they give without that"

    def skip(self, exam: "Exam") -> str:
        return "" if exam.spec.can_restore else NO_RESTORE

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            changing = [seen for seen in exam.explored.succeeded(tool.name) if seen.changed]
            changing.sort(key=lambda seen: len(seen.prefix))
            for seen in _various(changing, PER_TOOL):
                found = await self._difference(exam, seen)
                if found is not None:
                    yield found

    async def _difference(self, exam: "Exam", seen: Observation) -> Suspicion | None:
        """The first call after a write that gives something else if the state was saved and loaded before it."""
        reads = _reads(exam, seen)
        first = (*seen.prefix, *reads, seen.step)
        later = (*reads, *_about_new(exam, seen), seen.step)
        plain = await exam.lab.run(Case(start=seen.start, steps=(*first, *later)))
        try:
            loaded = await exam.lab.run(Case(start=seen.start, steps=(*first, RELOAD, *later)))
        except EnvironmentFault:
            return None  # a state that cannot be loaded at all is for `round_trip`
        unsteady = {finding.tool for finding in exam.findings if finding.check in EXPLAINED}
        for index in range(len(first), min(len(plain), len(loaded))):
            if later[index - len(first)].tool in unsteady:
                break  # what it does depends on more than the state, and is told already
            if not _alike(plain[index], loaded[index]):
                steps = (*first, RELOAD, *later[: index - len(first) + 1])
                tool = later[index - len(first)].tool
                message = f"after {seen.tool}, saving and loading changes what {tool} does"
                return Suspicion(tool, "", message, Case(start=seen.start, steps=steps))
        return None

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        if RELOAD not in case.steps or case.steps[-1] == RELOAD:
            return None
        calls = tuple(step for step in case.steps if step != RELOAD)
        plain = await self._fresh(exam, case.model_copy(update={"steps": calls}))
        loaded = await self._fresh(exam, case)
        if not plain or not loaded or len(plain) != len(loaded) or _alike(plain[-1], loaded[-1]):
            return None
        again = await self._fresh(exam, case.model_copy(update={"steps": calls}))
        if not again or not _alike(plain[-1], again[-1]):
            return None  # it is different every time; that is for another check
        early = await self._fresh(exam, case.model_copy(update={"steps": (RELOAD, *calls)}))
        if not early or _alike(early[-1], loaded[-1]):
            return None  # no call left it behind: a stored state has lost the order of its objects, as JSON has none
        return Evidence(seen=_told(loaded[-1]), expected=_told(plain[-1]))

    async def _fresh(self, exam: "Exam", case: Case) -> list[Shot]:
        """Play a case in a new session, which nothing was done in before."""
        await exam.lab.renew()
        return await exam.lab.run(case)


def _various(seen: list[Observation], count: int) -> list[Observation]:
    """The first few with different arguments, from different initial states."""
    found: dict[object, Observation] = {}
    for one in seen:
        found.setdefault(one.start, one)
    return [*found.values(), *(one for one in seen if one not in found.values())][:count]


def _reads(exam: "Exam", seen: Observation) -> tuple[Step, ...]:
    """Calls that succeed and change nothing, at the same initial state: of each tool a few, about the same first."""
    about = _about(exam, seen)
    found: list[Step] = []
    for tool in exam.spec.tools:
        calm = [one for one in exam.explored.succeeded(tool.name) if not one.changed and one.start == seen.start]
        calm.sort(key=lambda one: -_mentions(one, about))
        found += list({str(one.step.arguments): one.step for one in calm}.values())[:READS]
    return tuple(found)


def _about(exam: "Exam", seen: Observation) -> set[str]:
    """Names of what a write is about: its arguments, the rows that it changed, and what these point to."""
    names = {str(value) for value in seen.step.arguments.values()}
    for change in seen.changes:
        names.add(change.key[-1] if change.key else "")
        row = change.after if change.after is not None else change.before or {}
        names |= {str(row[name]) for name in row if exam.data.reference(change.relation, name) is not None}
    return names - {"", "None"}


def _mentions(one: Observation, names: set[str]) -> int:
    """How much a call has to do with these names: those that it is given count most."""
    given = {str(value) for value in one.step.arguments.values()}
    answer = str(one.outcome.content)
    return 3 * len(given & names) + sum(name in answer for name in names)


def _about_new(exam: "Exam", seen: Observation) -> tuple[Step, ...]:
    """Calls that name what this call has made, taken from later in the same play."""
    new = {change.key[-1] for change in seen.changes if change.before is None}
    found: dict[str, Step] = {}
    for one in exam.explored.observations:
        follows = one.start == seen.start and seen.step in one.prefix and one.ok
        if follows and not new.isdisjoint(str(value) for value in one.step.arguments.values()):
            found.setdefault(one.tool, one.step)
    return tuple(found.values())


def _alike(first: Shot, second: Shot) -> bool:
    if not first.after.equals(second.after):
        return False
    if first.outcome.digest == second.outcome.digest:
        return True
    if any(sizes_list(name) for name in first.outcome.step.arguments):
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
    """How long the lists of an answer are."""
    if isinstance(content, dict):
        return {name: _lengths(value) for name, value in content.items()}
    return len(content) if isinstance(content, list) else None


def _told(shot: Shot) -> str:
    content = shot.outcome.content if shot.outcome.fault is None else str(shot.outcome.fault)
    return f"{short(content)}, state {state_digest(shot.after.state)[:8]}"


class RoundTrip(Check):
    """A saved state can be loaded, and saves to the same."""

    name: ClassVar[str] = "round_trip"
    about: ClassVar[str] = "a saved state can be loaded, and saved again it is the same"

    def skip(self, exam: "Exam") -> str:
        return "" if exam.spec.can_restore else NO_RESTORE

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        told = {finding.tool for finding in exam.findings if finding.check == "state_schema"}
        for tool in exam.spec.tools:
            changing = [seen for seen in exam.explored.succeeded(tool.name) if seen.changed]
            if tool.name in told:
                continue  # what is no state cannot be loaded
            for seen in changing[:: max(1, len(changing) // 8)]:
                case = seen.case()
                if await self._fault(exam, seen.after.state) is not None:
                    yield Suspicion(
                        tool.name, "", f"the state that {tool.name} leaves is not the same after loading", case
                    )

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or await self._fault(exam, shots[-1].before.state) is not None:
            return None
        return await self._fault(exam, shots[-1].after.state)

    async def _fault(self, exam: "Exam", state: dict[str, object]) -> Evidence | None:
        session = await exam.source.open()
        try:
            await session.reset(state)
            after = await session.snapshot()
        except EnvironmentFault as fault:
            return Evidence(seen=f"loading fails: {fault}"[:300], expected="the same state")
        finally:
            await session.close()
        if after == state:
            return None
        names = [name for name in {**state, **after} if state.get(name) != after.get(name)]
        return Evidence(seen=f"{', '.join(names)} differ after loading", expected="the same state")
