"""Explored calls replayed: in other orders, interleaved, and in other processes."""

import random
from collections import defaultdict
from collections.abc import Sequence

from trajsmith.envcheck.case_runner import Digests, ReplayedCase, execute_step
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.findings import CaseStep, CheckCase
from trajsmith.environments import EnvironmentSource, Session
from trajsmith.records import EnvironmentFault, JsonObject, derive_seed

OK, REFUSED = 5, 2
"""Calls of each tool that are played again."""
OTHERS = 2
"""Other initial states from which one call of each tool is made as well."""
LONGEST = 6


async def play_steps(session: Session, state: JsonObject, steps: Sequence[CaseStep]) -> Digests:
    """Play steps in a session; a fault ends it."""
    await session.reset(dict(state))
    digests: list[str] = []
    for step in steps:
        outcome = await execute_step(session, step)
        if outcome.fault is not None:
            return (*digests, f"{outcome.digest} ")
        digests.append(f"{outcome.digest} {await session.state_hash()}")
    return tuple(digests)


def choose_cases(check_session: CheckSession) -> list[ReplayedCase]:
    """A few calls of each tool, from different initial states, those with a short way to them first."""
    rng = random.Random(derive_seed(check_session.plan.seed, "replays"))
    plays: list[ReplayedCase] = []
    for tool, seen in sorted(check_session.explored.by_tool.items()):
        short = [one for one in seen if len(one.prefix) < LONGEST and one.outcome.fault is None]
        for wanted, count in ((True, OK), (False, REFUSED)):
            picked = _spread([one for one in short if one.ok is wanted], count, rng)
            plays += [ReplayedCase(tool, one.case()) for one in picked]
            plays += [ReplayedCase(tool, case) for case in _same_call_elsewhere(check_session, picked)]
    return plays


def _same_call_elsewhere(check_session: CheckSession, picked: list[Observation]) -> list[CheckCase]:
    """One of these calls from other initial states: what is kept of one play shows best in the same call of another."""
    first = next((one for one in picked if not one.prefix and one.ok), None)
    others = [start for start in check_session.starts if first is not None and start != first.start]
    return [CheckCase(start=start, steps=(first.step,)) for start in others[:OTHERS] if first is not None]


def _spread(seen: list[Observation], count: int, rng: random.Random) -> list[Observation]:
    by_start: dict[object, list[Observation]] = defaultdict(list)
    for one in rng.sample(seen, len(seen)):
        by_start[one.start].append(one)
    picked: list[Observation] = []
    while len(picked) < count and any(by_start.values()):
        for group in by_start.values():
            if group and len(picked) < count:
                picked.append(group.pop())
    return picked


async def play_all(
    check_session: CheckSession, source: EnvironmentSource, plays: Sequence[ReplayedCase], where: str
) -> None:
    """Play cases one after another, each in a session of its own."""
    for one in plays:
        session = await source.open()
        try:
            one.seen[where] = await play_steps(
                session, await check_session.runner.state(one.case.start), one.case.steps
            )
        except EnvironmentFault as fault:
            one.seen[where] = (f"fault:{fault.kind} ",)
        await session.close()


async def play_interleaved(check_session: CheckSession, plays: Sequence[ReplayedCase], where: str) -> None:
    """Play two cases at a time, call by call in turn."""
    for first, second in zip(plays[::2], [*plays[1::2], plays[0]], strict=False):
        pair = (first, second)
        sessions = [await check_session.source.open(), await check_session.source.open()]
        digests: list[list[str]] = [[], []]
        for session, one in zip(sessions, pair, strict=True):
            await session.reset(await check_session.runner.state(one.case.start))
        for number in range(max(len(one.case.steps) for one in pair)):
            for session, one, seen in zip(sessions, pair, digests, strict=True):
                if number < len(one.case.steps) and len(seen) == number:
                    outcome = await execute_step(session, one.case.steps[number])
                    if outcome.fault is None:
                        seen.append(f"{outcome.digest} {await session.state_hash()}")
        for session, one, seen in zip(sessions, pair, digests, strict=True):
            broke = len(seen) < len(one.case.steps)
            one.seen[where] = (
                (*seen, one.seen["here"][-1]) if broke and "fault" in one.seen["here"][-1] else tuple(seen)
            )
            await session.close()
