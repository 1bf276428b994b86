"""Conformance of a copy: a few calls with their results and states, recorded once and made again elsewhere."""

import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version as get_version
from typing import Annotated, Literal

from pydantic import Field

from trajsmith.envcheck.check_session import CheckPlan, CheckSession
from trajsmith.envcheck.exploration import ExplorationEffort, Explorer, Observation
from trajsmith.envcheck.findings import CaseStep, StartState
from trajsmith.environments import EnvironmentSource, RefusalKind
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    FrozenModel,
    InputError,
    JsonObject,
    JsonValue,
    to_one_line,
)

SEED = 0
"""Seed of the initial states that calls are recorded from."""
STATES: dict[Literal["small", "medium", "large"], int] = {"small": 1, "medium": 1}
"""Initial states that calls are recorded from."""
MOST_CALLS = 24
"""Calls of one episode."""
REFUSALS = 4
"""Calls of one episode that are refused, at most."""
LONGEST_RESULT = 4_000
"""Characters of a result that is stored; of a longer one only the hash is."""
EFFORT = ExplorationEffort(first=12, enough=1, hard=30, again=0, walks=1, length=8, tries=3, rare=1, detours=3)


class ConformanceCall(FrozenModel):
    """One call and its outcome."""

    tool: str
    arguments: JsonObject = {}
    actor: Actor = "assistant"
    error: RefusalKind | None = None
    result: JsonValue = None
    """Result; left out if it is long."""
    digest: str
    """Hash of the result."""
    state: str
    """Hash of the state after the call."""


class ConformanceEpisode(FrozenModel):
    """Calls from one initial state, one after another."""

    start: StartState
    state: str
    """Hash of the initial state."""
    calls: Annotated[tuple[ConformanceCall, ...], Field(max_length=100)]


class ConformanceRecord(FrozenModel):
    """Recorded behaviour of one environment, with what it says of itself."""

    name: str
    domain: str
    description: str
    tools: tuple[str, ...]
    user_tools: int
    code: str
    """Hash of the code that was recorded."""
    trajsmith: str
    python: str
    episodes: Annotated[tuple[ConformanceEpisode, ...], Field(min_length=1, max_length=10)]

    @property
    def calls(self) -> int:
        return sum(len(episode.calls) for episode in self.episodes)


async def record_conformance(source: EnvironmentSource, code: str) -> ConformanceRecord:
    """Record calls of every tool that a short exploration finds, and some refusals.

    Args:
        source: The environment, opened with the initial states of `STATES`.
        code: Hash of its code.

    Raises:
        InputError: It breaks, or the same calls give something else a second time.
    """
    try:
        spec, chosen = await _choose_calls(source)
        episodes = [await _record_episode(source, start, steps) for start, steps in chosen]
        again = [await _record_episode(source, start, steps) for start, steps in chosen]
    except EnvironmentFault as fault:
        raise InputError(f"{source.name} cannot be recorded: it breaks: {to_one_line(fault, 200)}") from fault
    for first, second in zip(episodes, again, strict=True):
        difference = _compare_episodes(first, second)
        if difference:
            raise InputError(f"{source.name} cannot be recorded: it is not deterministic: {difference}")
    return ConformanceRecord(
        name=spec.name, domain=spec.domain, description=spec.description.split("\n")[0],
        tools=tuple(tool.name for tool in spec.tools), user_tools=sum(tool.actor == "user" for tool in spec.tools),
        code=code, trajsmith=get_version("trajsmith"), python=_get_python(), episodes=tuple(episodes),
    )  # fmt: skip


async def replay_conformance(source: EnvironmentSource, record: ConformanceRecord) -> list[str]:
    """Make the recorded calls again and return what differs; empty if the environment behaves the same."""
    try:
        spec = await source.spec()
        if spec.name != record.name:
            return [f"it is named {to_one_line(spec.name, 80)}"]
        tools = [tool.name for tool in spec.tools]
        if tools != list(record.tools):
            missing = sorted(set(record.tools) ^ set(tools))
            return [f"it has other tools: {to_one_line(', '.join(missing) or 'another order', 200)}"]
        differences = []
        for episode in record.episodes:
            steps = [CaseStep(tool=call.tool, arguments=call.arguments, actor=call.actor) for call in episode.calls]
            difference = _compare_episodes(episode, await _record_episode(source, episode.start, steps))
            differences += [difference] if difference else []
    except EnvironmentFault as fault:
        return [f"it breaks: {to_one_line(fault, 200)}"]
    if differences and record.python != _get_python():
        differences.append(f"it was recorded with Python {record.python}, and this is {_get_python()}")
    return differences


async def _choose_calls(source: EnvironmentSource) -> tuple[EnvironmentSpec, list[tuple[StartState, list[CaseStep]]]]:
    """Explore for a moment, and choose calls from each initial state: tools that no other episode has come first."""
    session = await CheckSession.prepare(
        source, CheckPlan(seed=SEED, seeds=1, starts=sum(STATES.values()), effort=EFFORT)
    )
    try:
        explorer = Explorer(session.runner, session.data, session.sampler, EFFORT, SEED)
        log = await explorer.explore(session.starts)
    finally:
        await session.close()
    used, chosen = set[str](), []
    for start in session.starts:
        seen = [one for one in log.observations if one.start == start and one.outcome.fault is None]
        successes = _take_first(one for one in seen if one.ok)
        successes.sort(key=lambda one: (one.tool in used, len(one.prefix)))
        refusals = _take_first(one for one in seen if not one.ok and one.outcome.result and one.outcome.result.error)
        steps = list[CaseStep]()
        for one in [*successes, *refusals[:REFUSALS]]:
            if len(steps) + len(one.prefix) + 1 <= MOST_CALLS:
                steps += [*one.prefix, one.step]
                used.add(one.tool)
        chosen.append((start, steps))
    return session.spec, chosen


def _take_first(observations: Iterable[Observation]) -> list[Observation]:
    """Return of each tool the call with the fewest calls before it, in the order in which tools appear."""
    first: dict[str, Observation] = {}
    for one in observations:
        if one.tool not in first or len(one.prefix) < len(first[one.tool].prefix):
            first[one.tool] = one
    return list(first.values())


async def _record_episode(
    source: EnvironmentSource, start: StartState, steps: Sequence[CaseStep]
) -> ConformanceEpisode:
    states = await source.states(start.seed)
    if start.index >= len(states):
        raise EnvironmentFault("state", source.name, f"it has no initial state {start.index} of seed {start.seed}")
    session = await source.open()
    try:
        await session.reset(states[start.index])
        first, calls = await session.state_hash(), list[ConformanceCall]()
        for step in steps:
            result = await session.call(step.tool, step.arguments, step.actor)
            calls.append(
                ConformanceCall(
                    tool=step.tool, arguments=step.arguments, actor=step.actor, error=result.error,
                    result=result.content if len(result.text) <= LONGEST_RESULT else None, digest=result.hash,
                    state=await session.state_hash(),
                )
            )  # fmt: skip
        return ConformanceEpisode(start=start, state=first, calls=tuple(calls))
    finally:
        await session.close()


def _compare_episodes(recorded: ConformanceEpisode, actual: ConformanceEpisode) -> str:
    """Return the first difference in words; empty if there is none."""
    if recorded.state != actual.state:
        return f"its initial state {recorded.start.index} is another one"
    for number, (before, after) in enumerate(zip(recorded.calls, actual.calls, strict=True), 1):
        where = f"call {number}, {before.tool},"
        if (before.error, before.digest) != (after.error, after.digest):
            expected = before.result if before.result is not None else f"a result with the hash {before.digest}"
            return to_one_line(f"{where} gives {after.result}, and {expected} was recorded", 300)
        if before.state != after.state:
            return f"{where} leads to another state than the recorded one"
    return ""


def _get_python() -> str:
    return ".".join(platform.python_version_tuple()[:2])
