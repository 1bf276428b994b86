"""Check session: the prepared and explored environment that checks read."""

import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import orjson

from trajsmith.envcheck.argument_sampler import ArgumentSampler
from trajsmith.envcheck.case_runner import CaseRunner, ReplayedCase
from trajsmith.envcheck.exploration import ExplorationEffort, ExplorationLog, Explorer
from trajsmith.envcheck.facts import Fact, StateColumns, mine_facts
from trajsmith.envcheck.findings import CaseStep, Finding, StartState
from trajsmith.envcheck.parameter_columns import ParameterColumns
from trajsmith.envcheck.schema_probes import SchemaProbe, probe_all
from trajsmith.envcheck.source_capabilities import ReopenableSource, ReopenedProcesses
from trajsmith.envcheck.state_shape import find_column_choices, learn_shape
from trajsmith.envcheck.state_view import StateViewer, View
from trajsmith.envcheck.subprocess_source import make_reopenable_source
from trajsmith.environments import EnvironmentSource, Session
from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.environments.native_source import NativeSource
from trajsmith.environments.schema_patterns import SchemaValidator, compile_schema
from trajsmith.records import (
    EnvironmentFault,
    EnvironmentSpec,
    JsonObject,
    ToolSpec,
    compute_state_digest,
)

READ_BYTES = 8 << 20
"""JSON of initial states that is read to learn from; what comes after is left out."""


@dataclass
class CheckPlan:
    """Settings of a check session."""

    seed: int = 0
    seconds: float = 60.0
    """Wall-clock limit; the usual examination is over long before."""
    effort: ExplorationEffort = field(default_factory=ExplorationEffort)
    seeds: int = 12
    """Seeds whose initial states are read to learn what holds in all of them."""
    starts: int = 6
    """Initial states that are played from."""


@dataclass
class CheckSession:
    """Context that checks work with. `prepare` builds it without exploring; that is enough to judge a case."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    plan: CheckPlan
    runner: CaseRunner
    data: StateColumns
    sampler: ArgumentSampler
    starts: list[StartState]
    sampled: bool = False
    """True if not all initial states of these seeds were read, since they are large."""
    explored: ExplorationLog = field(default_factory=ExplorationLog)
    explorer: Explorer | None = None
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Check to the reason why it could not be done."""
    unconfirmed: Counter[str] = field(default_factory=Counter)
    """Suspicions that did not show again when their case was played, by check."""
    probes: list[SchemaProbe] = field(default_factory=list)
    plays: list[ReplayedCase] | None = None
    """Calls that were played again, with what came of them (see `checks.determinism`)."""
    done: set[str] = field(default_factory=set)
    """Checks that were made to the end."""
    stopped: str = ""
    """What was going on when the time was over; empty if all was done."""

    other_processes: ReopenedProcesses = field(default_factory=lambda: ReopenedProcesses(None))
    listed: dict[str, str] = field(default_factory=dict)
    """Tool to the relation whose rows it lists (see `checks.list_results`)."""
    strict: bool | None = None
    """True if writes that change nothing are refused in this environment (see `checks.declared_effects`)."""
    fitting: set[str] = field(default_factory=set)
    """Outlines of parts of states that fit the state schema."""
    _views: dict[StartState, View] = field(default_factory=dict)
    _choices: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    _validators: dict[int, tuple[JsonObject, SchemaValidator]] = field(default_factory=dict)

    @cached_property
    def facts(self) -> list[Fact]:
        """Return the facts that hold in all initial states that were read."""
        return mine_facts(self.data)

    @property
    def places(self) -> ParameterColumns:
        return self.sampler.places

    @property
    def tools(self) -> dict[str, ToolSpec]:
        return self.sampler.tools

    def choices(self, relation: str, column: str) -> frozenset[str]:
        """The choices that the state schema gives a column; empty if it takes anything."""
        place = (relation, column)
        if place not in self._choices:
            self._choices[place] = find_column_choices(self.spec.state_schema, relation, column)
        return self._choices[place]

    def view_at(self, start: StartState) -> View:
        """An initial state that was read to learn from, or played from."""
        return self._views[start]

    def argument_fault(self, step: CaseStep) -> str | None:
        """Return the violation of the input schema by the arguments of a call, or None."""
        return self._arguments.fault(step.tool, step.arguments)

    @cached_property
    def _arguments(self) -> ArgumentValidator:
        return ArgumentValidator(self.spec)

    def output_validator(self, tool: str) -> SchemaValidator:
        """A compiled validator for the results of a tool."""
        schema = self.tools[tool].output_schema or {}
        return self._validators.setdefault(id(schema), (schema, compile_schema(schema)))[1]

    def validator(self, schema: JsonObject) -> SchemaValidator:
        """A compiled validator for a part of the state schema, which may refer to the whole."""
        known = self._validators.get(id(schema))
        if known is None:
            root = self.spec.state_schema
            definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
            known = self._validators[id(schema)] = (schema, compile_schema({**schema, **definitions}))
        return known[1]

    @classmethod
    async def prepare(cls, source: EnvironmentSource, plan: CheckPlan) -> "CheckSession":
        """Read spec and initial states, and learn from them.

        Raises:
            EnvironmentFault: It does not start, or has no initial state.
        """
        began = time.monotonic()
        spec = await source.spec()
        states, starts, sampled = await _initial_states(source, plan, spec)
        shape = learn_shape([state for _, state in states], spec.state_schema)
        viewer = StateViewer(shape)
        views = {start: viewer.view(state) for start, state in states}
        data = StateColumns(list(views.values()), shape)
        sampler = ArgumentSampler(spec, data)
        runner = CaseRunner(source, spec, viewer, plan.seconds - (time.monotonic() - began))
        check_session = cls(source, spec, plan, runner, data, sampler, starts, sampled)
        check_session._views = views
        check_session.other_processes = ReopenedProcesses(_make_reopenable(source))
        return check_session

    async def close(self) -> None:
        await self.runner.close()
        self.other_processes.close()

    async def explore(self) -> None:
        self.explorer = Explorer(self.runner, self.data, self.sampler, self.plan.effort, self.plan.seed)
        self.explored = self.explorer.log
        await self.explorer.explore(self.starts)
        await self.explorer.search_further([start for start in self._views if start not in self.starts])
        self.probes = await probe_all(self.explorer)


def _make_reopenable(source: EnvironmentSource) -> ReopenableSource | None:
    if isinstance(source, ReopenableSource):
        return source
    return make_reopenable_source(source) if isinstance(source, NativeSource) else None


async def _initial_states(
    source: EnvironmentSource, plan: CheckPlan, spec: EnvironmentSpec
) -> tuple[list[tuple[StartState, JsonObject]], list[StartState], bool]:
    """Different initial states of several seeds after their start, those to play from, and whether there are more."""
    by_digest: dict[str, tuple[StartState, JsonObject]] = {}
    session = await source.open()
    size, sampled = 0, False
    for number in range(plan.seed, plan.seed + plan.seeds):
        for index, state in enumerate(await source.states(number)):
            if sampled := size > READ_BYTES:
                break
            start, digest = StartState(seed=number, index=index), compute_state_digest(state)
            if digest not in by_digest:
                by_digest[digest] = start, await _state_after_start(session, state)
                size += len(orjson.dumps(state))
        if sampled:
            break
        if number == plan.seed + 1 and len({start.seed for start, _ in by_digest.values()}) == 1:
            break  # the seed makes no difference
    await session.close()
    if not by_digest:
        raise EnvironmentFault("state", spec.name, "it gives no initial state")
    return list(by_digest.values()), _select_start_states(list(by_digest.values()), plan.starts), sampled


async def _state_after_start(session: Session, state: JsonObject) -> JsonObject:
    """A state as the environment says it; as it was given if it cannot start from it, which is a finding later."""
    try:
        await session.reset(state)
        return await session.snapshot()
    except EnvironmentFault:
        return state


def _select_start_states(states: list[tuple[StartState, JsonObject]], count: int) -> list[StartState]:
    """Smaller states first, and a larger one."""
    by_size = sorted(states, key=lambda state: len(str(state[1])))
    usual = by_size[: max(1, (len(by_size) * 2) // 3)]
    step = max(1, len(usual) // max(count - 1, 1))
    chosen = [start for start, _ in usual[::step]][: max(count - 1, 1)]
    large = by_size[(len(by_size) * 5) // 6][0]
    return [*chosen, *([large] if large not in chosen and count > 1 else [])]
