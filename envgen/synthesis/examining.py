"""What execution says of a draft: does it load, are its seeds sound, do tests pass and rules bind, the doctor."""

from pathlib import Path

from envgen.doctor import Closing, Plan, Report, examine
from envgen.synthesis.evidence import of_doctor, of_rules, of_tests
from envgen.synthesis.playing import SIZES, run_tests
from envgen.synthesis.reach import chances, reaches
from envgen.synthesis.records import Complaint, ComplaintKind, Design, Draft, Examination
from envgen.synthesis.settings import SynthesisSettings
from envgen.synthesis.store import writing
from environments import EnvironmentSource
from environments.sandbox.settings import SandboxSettings
from environments.sources import EnvironmentSettings, open_source
from trajectory import EnvironmentFault, EnvironmentSpec, InputError, JsonObject

_CLOSED = ("the sandbox does not allow", "is not there in the sandbox", "SIGSYS", "signal 31")
"""What is said when running code reaches for what the sandbox closes."""


class Bench:
    """Where drafts are run: always in the sandbox.

    Args:
        folder: Drafts are written below it, one folder each.
    """

    def __init__(self, folder: Path, settings: SynthesisSettings, sandbox: SandboxSettings) -> None:
        self.folder = folder
        self.settings = settings
        self.sandbox = sandbox

    @property
    def measure(self) -> JsonObject:
        """What an examination depends on beside the draft."""
        kept = {"doctor", "doctor_seconds", "doctor_starts"}
        sandbox = self.sandbox.model_dump(mode="json")
        return {"settings": self.settings.model_dump(mode="json", include=kept), "sandbox": sandbox}

    def open(self, design: Design, draft: Draft) -> EnvironmentSource:
        """The draft as a source with one initial state of each size."""
        path = self.folder / f"{design.proposal.name}_{draft.number}" / f"{design.proposal.name}.py"
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(draft.code, encoding="utf-8")
        sizes = {"small": 1, "medium": 1, "large": 1}
        return open_source(
            EnvironmentSettings.model_validate({"python": str(path), "sandbox": self.sandbox, "states": sizes})
        )

    async def starts(self, design: Design, draft: Draft) -> tuple[EnvironmentSpec, JsonObject] | Complaint:
        """Its spec and a medium state, or why it does not start."""
        closed = reaches(draft.code)
        if closed:
            return _reach("; ".join(closed[:5]))
        source = self.open(design, draft)
        try:
            return await source.spec(), (await source.states(1))[SIZES["medium"]]
        except (EnvironmentFault, InputError) as fault:
            return broken(fault, "does not start")
        finally:
            close(source)

    async def examine(self, design: Design, draft: Draft) -> Examination:
        """Everything that can be known of a draft by running it."""
        started = await self.starts(design, draft)
        if isinstance(started, Complaint):
            return _sealed(design, draft, False, [started])
        source = self.open(design, draft)
        try:
            return await self._examined(source, design, draft, started[0])
        except EnvironmentFault as fault:  # it started a moment ago
            return _sealed(design, draft, False, [broken(fault, "does not always work")])
        finally:
            close(source)

    async def _examined(
        self, source: EnvironmentSource, design: Design, draft: Draft, spec: EnvironmentSpec
    ) -> Examination:
        found = [_complaint("C", number, "chance", what) for number, what in enumerate(_chances(draft), 1)]
        found += _unplanned(design, spec)
        found += await _seeds(source)
        verdicts = await run_tests(source, draft.tests)
        found += of_tests([verdict for verdict in verdicts if not verdict.test.rule])
        rules = of_rules(design.requirements.rules, verdicts)
        report: Report | None = None
        if not any(complaint.kind == "seeds" or _closed(complaint) for complaint in (*found, *rules)):
            report = await examine(source, self._plan())
            found += await _low(source, report, self.settings)
        closed = [one for one in (*found, *rules) if _closed(one)]
        if closed:
            return _sealed(design, draft, True, [_reach(one.what) for one in closed])
        passed = sum(verdict.passed for verdict in verdicts)
        bound = len(design.requirements.rules) - len(rules)
        score = None if report is None else report.score
        return _sealed(design, draft, True, [*found, *rules], passed, bound, score)

    def _plan(self) -> Plan:
        starts = self.settings.doctor_starts
        return Plan(seconds=self.settings.doctor_seconds, starts=starts, seeds=2 * starts)


async def _low(source: EnvironmentSource, report: Report, settings: SynthesisSettings) -> list[Complaint]:
    """Why the doctor's score does not do; nothing if it does."""
    if report.score is None:
        return [_complaint("D", 1, "doctor", "the doctor's time was over before any check: its tools are too slow")]
    if report.score >= settings.doctor:
        return []
    said = f"the doctor gives {report.score:.2f}, less than {settings.doctor:g}"
    return await of_doctor(source, report) or [_complaint("D", 1, "doctor", said)]


def _sealed(
    design: Design, draft: Draft, loads: bool, complaints: list[Complaint], passed: int = 0, bound: int = 0,
    doctor: float | None = None,
) -> Examination:  # fmt: skip
    tests, rules = len(draft.tests), len(design.requirements.rules)
    parts = [float(loads), passed / tests if tests else 0.0, bound / rules, doctor or 0.0]
    return Examination(
        theme=draft.theme, draft=draft.id, loads=loads, tests_passed=passed, tests=tests, rules_bound=bound,
        rules=rules, doctor=doctor, score=round(sum(parts) / len(parts), 4), complaints=tuple(complaints),
    )  # fmt: skip


def _chances(draft: Draft) -> list[str]:
    return [
        f"{one}; use self.new_id, self.state.now, self.random() and random.Random(seed)" for one in chances(draft.code)
    ]


def _unplanned(design: Design, spec: EnvironmentSpec) -> list[Complaint]:
    """Tasks of which no tool is left, and tools that nobody planned."""
    there = {tool.name for tool in spec.tools}
    found: list[Complaint] = []
    for task in design.requirements.tasks:
        serving = [tool.name for tool in design.plan.tools if task.id in tool.serves]
        if serving and not there.intersection(serving):
            what = f"task {task.id} ({task.request}) is served by none of its tools: {', '.join(serving)}"
            found.append(_complaint("K", len(found) + 1, "task", what))
    planned = {tool.name for tool in design.plan.tools}
    for name in sorted(there - planned):
        what = f"{name} is not in the plan, so nothing tests it: take it out, or make it a method that begins with _"
        found.append(_complaint("K", len(found) + 1, "task", what))
    return found


async def _seeds(source: EnvironmentSource) -> list[Complaint]:
    """What is wrong with seed states."""
    faults = []
    try:
        small, medium, large = await source.states(1)
        tables = [name for name, value in medium.items() if isinstance(value, dict) and name != "counters"]
        empty = [name for name in tables if not medium[name]]
        if empty:
            faults.append(f"the medium state has no {', '.join(empty)}")
        if not _rows(small, tables) < _rows(medium, tables) < _rows(large, tables):
            counts = ", ".join(str(_rows(state, tables)) for state in (small, medium, large))
            faults.append(f"small, medium and large states must differ in size, but have {counts} rows")
        if (await source.states(2))[SIZES["medium"]] == medium:
            faults.append("another seed gives the same state")
    except EnvironmentFault as fault:
        faults.append(str(fault))
    return [_complaint("S", number, "seeds", what) for number, what in enumerate(faults, 1)]


def _rows(state: JsonObject, tables: list[str]) -> int:
    """Rows of these tables; a state of another size may leave a table out or empty."""
    found = (state.get(name) for name in tables)
    return sum(len(table) for table in found if isinstance(table, dict))


def _closed(complaint: Complaint) -> bool:
    return is_closed(" ".join((complaint.what, *complaint.calls, complaint.seen)))


def is_closed(said: str) -> bool:
    """Whether what came of running code says that it reached for what the sandbox closes."""
    return any(mark in said for mark in _CLOSED)


def _reach(what: str) -> Complaint:
    return _complaint("A", 1, "reach", f"the code reaches for what the sandbox closes: {what}")


def broken(fault: Exception, how: str) -> Complaint:
    """A complaint about an environment that cannot be run."""
    said = " ".join(str(fault).split())[:600]
    found = _complaint("L", 1, "load", f"it {how}: {said}")
    return _reach(said) if _closed(found) else found


def _complaint(letter: str, number: int, kind: ComplaintKind, what: str) -> Complaint:
    return Complaint(id=f"{letter}{number}", kind=kind, what=what)


def close(source: EnvironmentSource) -> None:
    """Let go of a source's workers."""
    if isinstance(source, Closing):
        source.close()
