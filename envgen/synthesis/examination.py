"""Examine a draft by execution: loading, seed states, tests, rules, environment checker."""

from pathlib import Path

from trajsmith.envcheck import CheckPlan, CloseableSource, EnvironmentReport, check_environment
from trajsmith.envgen.synthesis.complaints import (
    build_checker_complaints,
    build_rule_complaints,
    build_test_complaints,
)
from trajsmith.envgen.synthesis.execution import STATE_SIZES, run_unit_tests
from trajsmith.envgen.synthesis.records import Complaint, ComplaintKind, Design, EnvironmentDraft, Examination
from trajsmith.envgen.synthesis.settings import SynthesisSettings
from trajsmith.envgen.synthesis.static_checks import find_closed_access, find_nondeterminism
from trajsmith.environments import EnvironmentSource
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import EnvironmentFault, EnvironmentSpec, InputError, JsonObject, storage_boundary

_CLOSED = ("the sandbox does not allow", "is not there in the sandbox", "SIGSYS", "signal 31")
"""What is said when running code reaches for what the sandbox closes."""


class DraftRunner:
    """Runner that executes drafts, always in the sandbox.

    Args:
        folder: Drafts are written below it, one folder each.
    """

    def __init__(self, folder: Path, settings: SynthesisSettings, sandbox: SandboxSettings) -> None:
        self.folder = folder
        self.settings = settings
        self.sandbox = sandbox

    @property
    def measure(self) -> JsonObject:
        """Return the settings that an examination depends on beside the draft."""
        names = {"check_score", "check_seconds", "check_starts"}
        sandbox = self.sandbox.model_dump(mode="json")
        return {"settings": self.settings.model_dump(mode="json", include=names), "sandbox": sandbox}

    def open(self, design: Design, draft: EnvironmentDraft) -> EnvironmentSource:
        """Open the draft as a source with one initial state of each size."""
        path = self.folder / f"{design.proposal.name}_{draft.number}" / f"{design.proposal.name}.py"
        with storage_boundary(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(draft.code, encoding="utf-8")
        sizes = {"small": 1, "medium": 1, "large": 1}
        return open_source(
            EnvironmentSettings.model_validate({"python": str(path), "sandbox": self.sandbox, "states": sizes})
        )

    async def starts(self, design: Design, draft: EnvironmentDraft) -> tuple[EnvironmentSpec, JsonObject] | Complaint:
        """Return its spec and a medium state, or the reason why it does not start."""
        closed = find_closed_access(draft.code)
        if closed:
            return _build_reach_complaint("; ".join(closed[:5]))
        source = self.open(design, draft)
        try:
            return await source.spec(), (await source.states(1))[STATE_SIZES["medium"]]
        except (EnvironmentFault, InputError) as fault:
            return build_load_complaint(fault, "does not start")
        finally:
            close_source(source)

    async def examine(self, design: Design, draft: EnvironmentDraft) -> Examination:
        """Check a draft in every way that running it allows."""
        started = await self.starts(design, draft)
        if isinstance(started, Complaint):
            return _build_examination(design, draft, False, [started])
        source = self.open(design, draft)
        try:
            return await self._examine_draft(source, design, draft, started[0])
        except EnvironmentFault as fault:  # it started a moment ago
            return _build_examination(design, draft, False, [build_load_complaint(fault, "does not always work")])
        finally:
            close_source(source)

    async def _examine_draft(
        self, source: EnvironmentSource, design: Design, draft: EnvironmentDraft, spec: EnvironmentSpec
    ) -> Examination:
        complaints = [
            _build_complaint("C", number, "chance", problem) for number, problem in enumerate(_find_chances(draft), 1)
        ]
        complaints += _find_unplanned(design, spec)
        complaints += await _check_seed_states(source)
        verdicts = await run_unit_tests(source, draft.tests)
        complaints += build_test_complaints([verdict for verdict in verdicts if not verdict.test.rule])
        rules = build_rule_complaints(design.requirements.rules, verdicts)
        report: EnvironmentReport | None = None
        if not any(
            complaint.kind == "seeds" or _is_sandbox_complaint(complaint) for complaint in (*complaints, *rules)
        ):
            report = await check_environment(source, self._plan())
            complaints += await _build_score_complaints(source, report, self.settings)
        closed = [one for one in (*complaints, *rules) if _is_sandbox_complaint(one)]
        if closed:
            return _build_examination(design, draft, True, [_build_reach_complaint(one.what) for one in closed])
        passed = sum(verdict.passed for verdict in verdicts)
        bound = len(design.requirements.rules) - len(rules)
        score = None if report is None else report.score
        return _build_examination(design, draft, True, [*complaints, *rules], passed, bound, score)

    def _plan(self) -> CheckPlan:
        starts = self.settings.check_starts
        return CheckPlan(seconds=self.settings.check_seconds, starts=starts, seeds=2 * starts)


async def _build_score_complaints(
    source: EnvironmentSource, report: EnvironmentReport, settings: SynthesisSettings
) -> list[Complaint]:
    """Why the environment checker's score does not do; nothing if it does."""
    if report.score is None:
        return [
            _build_complaint(
                "D",
                1,
                "checker",
                "the time of the environment checker ended before its first check: its tools are too slow",
            )
        ]
    if report.score >= settings.check_score:
        return []
    summary = f"the environment checker gives {report.score:.2f}, less than {settings.check_score:g}"
    return await build_checker_complaints(source, report) or [_build_complaint("D", 1, "checker", summary)]


def _build_examination(
    design: Design, draft: EnvironmentDraft, loads: bool, complaints: list[Complaint], passed: int = 0, bound: int = 0,
    checker_score: float | None = None,
) -> Examination:  # fmt: skip
    tests, rules = len(draft.tests), len(design.requirements.rules)
    parts = [float(loads), passed / tests if tests else 0.0, bound / rules, checker_score or 0.0]
    return Examination(
        theme=draft.theme, draft=draft.id, loads=loads, tests_passed=passed, tests=tests, rules_bound=bound,
        rules=rules, check_score=checker_score, score=round(sum(parts) / len(parts), 4), complaints=tuple(complaints),
    )  # fmt: skip


def _find_chances(draft: EnvironmentDraft) -> list[str]:
    return [
        f"{one}; use self.new_id, self.state.now, self.random() and random.Random(seed)"
        for one in find_nondeterminism(draft.code)
    ]


def _find_unplanned(design: Design, spec: EnvironmentSpec) -> list[Complaint]:
    """Tasks of which no tool is left, tools that nobody planned, and tools that the code gives to another actor."""
    there = {tool.name: tool.actor for tool in spec.tools}
    complaints: list[Complaint] = []
    for task in design.requirements.tasks:
        serving = [tool.name for tool in design.plan.tools if task.id in tool.serves]
        if serving and not there.keys() & serving:
            problem = f"task {task.id} ({task.request}) is served by none of its tools: {', '.join(serving)}"
            complaints.append(_build_complaint("K", len(complaints) + 1, "task", problem))
    planned = {tool.name for tool in design.plan.tools}
    for name in sorted(there.keys() - planned):
        problem = f"{name} is not in the plan, so nothing tests it: take it out, or make it a method that begins with _"
        complaints.append(_build_complaint("K", len(complaints) + 1, "task", problem))
    for tool in design.plan.tools:
        if tool.name in there and there[tool.name] != tool.actor:
            problem = f"{tool.name} is the {tool.actor}'s in the plan, but has actor={there[tool.name]!r} in the code"
            complaints.append(_build_complaint("K", len(complaints) + 1, "task", problem))
    return complaints


async def _check_seed_states(source: EnvironmentSource) -> list[Complaint]:
    """Return complaints about seed states."""
    faults = []
    try:
        small, medium, large = await source.states(1)
        tables = [name for name, value in medium.items() if isinstance(value, dict) and name != "counters"]
        empty = [name for name in tables if not medium[name]]
        if empty:
            faults.append(f"the medium state has no {', '.join(empty)}")
        if not _count_rows(small, tables) < _count_rows(medium, tables) < _count_rows(large, tables):
            counts = ", ".join(str(_count_rows(state, tables)) for state in (small, medium, large))
            faults.append(f"small, medium and large states must differ in size, but have {counts} rows")
        if (await source.states(2))[STATE_SIZES["medium"]] == medium:
            faults.append("another seed gives the same state")
    except EnvironmentFault as fault:
        faults.append(str(fault))
    return [_build_complaint("S", number, "seeds", problem) for number, problem in enumerate(faults, 1)]


def _count_rows(state: JsonObject, tables: list[str]) -> int:
    """Rows of these tables; a state of another size may leave a table out or empty."""
    stored = (state.get(name) for name in tables)
    return sum(len(table) for table in stored if isinstance(table, dict))


def _is_sandbox_complaint(complaint: Complaint) -> bool:
    return names_closed_access(" ".join((complaint.what, *complaint.calls, complaint.seen)))


def names_closed_access(text: str) -> bool:
    """Return True if a message shows that the code accessed something that the sandbox blocks."""
    return any(mark in text for mark in _CLOSED)


def _build_reach_complaint(problem: str) -> Complaint:
    return _build_complaint("A", 1, "reach", f"the code uses names that the sandbox forbids: {problem}")


def build_load_complaint(fault: Exception, how: str) -> Complaint:
    """Return a complaint about an environment that cannot be run."""
    reason = " ".join(str(fault).split())[:600]
    complaint = _build_complaint("L", 1, "load", f"it {how}: {reason}")
    return _build_reach_complaint(reason) if _is_sandbox_complaint(complaint) else complaint


def _build_complaint(letter: str, number: int, kind: ComplaintKind, problem: str) -> Complaint:
    return Complaint(id=f"{letter}{number}", kind=kind, what=problem)


def close_source(source: EnvironmentSource) -> None:
    """Stop a source's workers."""
    if isinstance(source, CloseableSource):
        source.close()
