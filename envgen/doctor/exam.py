"""One examination: get ready, explore, let every check look, confirm and shrink what they find."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from jsonschema import Draft202012Validator

from envgen.doctor.abilities import Reopening
from envgen.doctor.case import Case, Evidence, Finding, Severity, Start, Step, finding_id
from envgen.doctor.checks.arguments import column_choices
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.invariants import validator_of
from envgen.doctor.explore import Effort, Explored, Explorer
from envgen.doctor.facts import Data, Fact, mine
from envgen.doctor.lab import Lab, OutOfBudget
from envgen.doctor.maker import Maker
from envgen.doctor.native import elsewhere
from envgen.doctor.places import Places
from envgen.doctor.probes import Probe, probe_all
from envgen.doctor.replays import Elsewhere, Play
from envgen.doctor.shape import learn_shape
from envgen.doctor.shrink import shrink
from envgen.doctor.view import View, Viewer
from environments import EnvironmentSource, Session
from environments.arguments import ArgumentChecks
from environments.native_source import NativeSource
from trajectory import EnvironmentFault, EnvironmentSpec, InputError, JsonObject, ToolSpec, state_digest


@dataclass
class Plan:
    """How an examination goes."""

    seed: int = 0
    seconds: float = 60.0
    """Wall-clock limit; the usual examination is over long before."""
    effort: Effort = field(default_factory=Effort)
    seeds: int = 12
    """Seeds whose initial states are read to learn what holds in all of them."""
    starts: int = 6
    """Initial states that are played from."""


@dataclass
class Exam:
    """What checks work with. `prepare` makes it without exploring; that is enough to judge a case."""

    source: EnvironmentSource
    spec: EnvironmentSpec
    plan: Plan
    lab: Lab
    data: Data
    maker: Maker
    starts: list[Start]
    explored: Explored = field(default_factory=Explored)
    explorer: Explorer | None = None
    findings: list[Finding] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Check to the reason why it could not be done."""
    unconfirmed: Counter[str] = field(default_factory=Counter)
    """Suspicions that did not show again when their case was played, by check."""
    probes: list[Probe] = field(default_factory=list)
    plays: list[Play] | None = None
    """Calls that were played again, with what came of them (see `checks.again`)."""
    done: set[str] = field(default_factory=set)
    """Checks that were made to the end."""
    stopped: str = ""
    """What was going on when the time was over; empty if all was done."""

    elsewhere: Elsewhere = field(default_factory=lambda: Elsewhere(None))
    listed: dict[str, str] = field(default_factory=dict)
    """Tool to the relation whose rows it lists (see `checks.lists`)."""
    strict: bool | None = None
    """True if writes that change nothing are refused in this environment (see `checks.effects`)."""
    fitting: set[str] = field(default_factory=set)
    """Outlines of parts of states that fit the state schema."""
    _views: dict[Start, View] = field(default_factory=dict)
    _choices: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    _validators: dict[int, tuple[JsonObject, Draft202012Validator]] = field(default_factory=dict)

    @cached_property
    def facts(self) -> list[Fact]:
        """What holds in all initial states that were read."""
        return mine(self.data)

    @property
    def places(self) -> Places:
        return self.maker.places

    @property
    def tools(self) -> dict[str, ToolSpec]:
        return self.maker.tools

    def choices(self, relation: str, column: str) -> frozenset[str]:
        """The choices that the state schema gives a column; empty if it takes anything."""
        place = (relation, column)
        if place not in self._choices:
            self._choices[place] = column_choices(self.spec.state_schema, relation, column)
        return self._choices[place]

    def view_at(self, start: Start) -> View:
        """An initial state that was read to learn from, or played from."""
        return self._views[start]

    def argument_fault(self, step: Step) -> str | None:
        """What the input schema says against the arguments of a call."""
        return self._arguments.fault(step.tool, step.arguments)

    @cached_property
    def _arguments(self) -> ArgumentChecks:
        return ArgumentChecks(self.spec)

    def output_validator(self, tool: str) -> Draft202012Validator:
        """A compiled validator for the results of a tool."""
        schema = self.tools[tool].output_schema or {}
        return self._validators.setdefault(id(schema), (schema, Draft202012Validator(schema)))[1]

    def validator(self, schema: JsonObject) -> Draft202012Validator:
        """A compiled validator for a part of the state schema."""
        known = self._validators.get(id(schema))
        if known is None:
            known = self._validators[id(schema)] = (schema, validator_of(schema, self.spec.state_schema))
        return known[1]

    @classmethod
    async def prepare(cls, source: EnvironmentSource, plan: Plan) -> "Exam":
        """Read spec and initial states, and learn from them.

        Raises:
            EnvironmentFault: It does not start, or has no initial state.
        """
        spec = await source.spec()
        states, starts = await _initial_states(source, plan, spec)
        shape = learn_shape([state for _, state in states], spec.state_schema)
        viewer = Viewer(shape)
        views = {start: viewer.view(state) for start, state in states}
        data = Data(list(views.values()), shape)
        lab = Lab(source, spec, viewer, plan.seconds)
        exam = cls(source, spec, plan, lab, data, Maker(spec, data), starts)
        exam._views = views
        exam.elsewhere = Elsewhere(_reopening(source))
        return exam

    async def close(self) -> None:
        await self.lab.close()
        self.elsewhere.close()

    async def explore(self) -> None:
        self.explorer = Explorer(self.lab, self.data, self.maker, self.plan.effort, self.plan.seed)
        self.explored = self.explorer.found
        await self.explorer.explore(self.starts)
        self.probes = await probe_all(self.explorer)

    async def run(self, checks: Sequence[Check]) -> None:
        """Explore and check; what a time limit leaves undone is said in `stopped`."""
        doing = "exploring"
        try:
            await self.explore()
            for check in checks:
                doing = check.name
                reason = check.skip(self)
                if reason:
                    self.skipped[check.name] = reason
                else:
                    await self.confirm(check, [suspicion async for suspicion in check.look(self)])
                    self.done.add(check.name)
        except OutOfBudget:
            self.stopped = doing

    async def confirm(self, check: Check, suspicions: Sequence[Suspicion]) -> None:
        """Turn suspicions into findings, one per topic, by playing their cases."""
        topics: dict[tuple[str | None, str], list[Suspicion]] = defaultdict(list)
        for suspicion in suspicions:
            topics[suspicion.tool, suspicion.topic].append(suspicion)
        for (tool, topic), found in topics.items():
            found.sort(key=lambda one: len(one.case.steps) if one.case else 0)
            for suspicion in found[: check.tries]:
                finding = await self._finding(check, suspicion)
                if finding is not None:
                    self.findings.append(finding)
                    break
            else:
                self.unconfirmed[f"{check.name}: {tool or self.spec.name}: {topic}"] += 1

    async def _finding(self, check: Check, suspicion: Suspicion) -> Finding | None:
        case, evidence = suspicion.case, suspicion.evidence
        if case is not None and evidence is None:
            evidence = await self.judge(check, case)
            if evidence is None:
                return None
            if check.shrinkable(case):
                tools = {tool.name: tool for tool in self.spec.tools}
                case, evidence = await shrink(case, evidence, lambda smaller: self.judge(check, smaller), tools)
        if evidence is None:
            return None
        severity: Severity = suspicion.severity or check.severity
        return Finding(
            id=finding_id(check.name, suspicion.tool, suspicion.topic),
            check=check.name,
            severity=severity,
            tool=suspicion.tool,
            message=suspicion.message,
            case=case,
            seen=evidence.seen,
            expected=evidence.expected,
        )

    async def judge(self, check: Check, case: Case) -> Evidence | None:
        """A check's judgement of a case; a case that cannot be played shows nothing."""
        try:
            return await check.judge(self, case)
        except EnvironmentFault:
            return None


def _reopening(source: EnvironmentSource) -> Reopening | None:
    if isinstance(source, Reopening):
        return source
    return elsewhere(source) if isinstance(source, NativeSource) else None


async def _initial_states(
    source: EnvironmentSource, plan: Plan, spec: EnvironmentSpec
) -> tuple[list[tuple[Start, JsonObject]], list[Start]]:
    """Different initial states of several seeds, as they are after the start, and those to play from."""
    found: dict[str, tuple[Start, JsonObject]] = {}
    session = await source.open()
    for number in range(plan.seed, plan.seed + plan.seeds):
        for index, state in enumerate(await source.states(number)):
            start = Start(seed=number, index=index)
            found.setdefault(state_digest(state), (start, await _started(session, state)))
        if number == plan.seed + 1 and len({start.seed for start, _ in found.values()}) == 1:
            break  # the seed makes no difference
    await session.close()
    if not found:
        raise EnvironmentFault("state", spec.name, "it gives no initial state")
    return list(found.values()), _to_play(list(found.values()), plan.starts)


async def _started(session: Session, state: JsonObject) -> JsonObject:
    """A state as the environment says it; as it was given if it cannot start from it, which is a finding later."""
    try:
        await session.reset(state)
        return await session.snapshot()
    except EnvironmentFault:
        return state


def _to_play(states: list[tuple[Start, JsonObject]], count: int) -> list[Start]:
    """Smaller states first, and a larger one."""
    by_size = sorted(states, key=lambda found: len(str(found[1])))
    usual = by_size[: max(1, (len(by_size) * 2) // 3)]
    step = max(1, len(usual) // max(count - 1, 1))
    chosen = [start for start, _ in usual[::step]][: max(count - 1, 1)]
    large = by_size[(len(by_size) * 5) // 6][0]
    return [*chosen, *([large] if large not in chosen and count > 1 else [])]


__all__ = ["Exam", "InputError", "Plan"]
