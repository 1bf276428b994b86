"""The outcome of an examination: findings, scores, what was looked at and what could not be."""

import time
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from envgen.doctor.case import SEVERITIES, Finding, Severity, finding_id
from envgen.doctor.checks import CHECKS, Check
from envgen.doctor.exam import Exam, Plan
from environments import EnvironmentSource
from trajectory import EnvironmentFault, Frozen, ToolSpec

COST: dict[Severity, int] = {"error": 10, "warning": 4, "note": 0}
"""How much a failed check weighs against a passed one, which weighs 1."""
Outcome = Literal["passed", "failed", "noted", "skipped", "nothing to see", "not reached"]


class ToolReport(Frozen):
    """One tool."""

    name: str
    score: float | None
    """Passed checks by passed and failed ones, where an error weighs 10, a warning 4 and a note nothing."""
    calls: int
    succeeded: int
    refused: int
    broke: int
    """Calls that were neither answered nor refused."""
    checks: int
    """Checks that had something to look at."""
    failed: tuple[str, ...]


class CheckReport(Frozen):
    """One check on the whole environment."""

    name: str
    about: str
    """The statement that is checked."""
    severity: Severity
    outcome: Outcome
    findings: int
    reason: str = ""
    """Why it was skipped."""


class Report(Frozen):
    """What the doctor says of one environment."""

    environment: str
    version: str
    source: str
    seed: int
    score: float | None
    """Mean of the scores of the tools and, as one more, of the environment as a whole; None if the time was over before
    any check was made, so that nothing can be said."""
    tools: tuple[ToolReport, ...]
    checks: tuple[CheckReport, ...]
    findings: tuple[Finding, ...]
    states: int
    """Initial states that were read to learn what holds in all of them."""
    facts: int
    """Relations that hold in all of them."""
    calls: int
    cpu_seconds: float
    """Processor time of this process; it differs from run to run."""
    stopped: str = ""
    """What was going on when the time was over, "exploring" or a check; empty if all was done."""
    unconfirmed: dict[str, int] = Field(default={})
    """Suspicions that did not show again when their calls were made once more: no findings, but not nothing."""

    def count(self, severity: Severity) -> int:
        return sum(finding.severity == severity for finding in self.findings)


async def examine(source: EnvironmentSource, plan: Plan | None = None, checks: Sequence[Check] = CHECKS) -> Report:
    """Examine an environment.

    Raises:
        InputError: It cannot be loaded; the text says why.
    """
    started, plan = time.process_time(), plan or Plan()
    try:
        exam = await Exam.prepare(source, plan)
    except EnvironmentFault as fault:
        return await _does_not_start(source, plan, fault)
    try:
        await exam.run(checks)
    finally:
        await exam.close()
    return report_of(exam, checks, time.process_time() - started)


async def _does_not_start(source: EnvironmentSource, plan: Plan, fault: EnvironmentFault) -> Report:
    """The report on an environment that cannot be examined at all."""
    try:
        version, described = (spec := await source.spec()).version, spec.source
    except EnvironmentFault:
        version, described = "", source.name
    finding = Finding(
        id=finding_id("start", None, ""), check="start", severity="error", tool=None,
        message="it does not start, or has no initial state", case=None, seen=str(fault)[:500],
        expected="a specification, and initial states to start from",
    )  # fmt: skip
    return Report(
        environment=source.name, version=version, source=described, seed=plan.seed, score=0.0, tools=(), checks=(),
        findings=(finding,), states=0, facts=0, calls=0, cpu_seconds=0.0,
    )  # fmt: skip


def report_of(exam: Exam, checks: Sequence[Check], cpu: float) -> Report:
    """Put what was found into words and numbers."""
    tools = tuple(_tool(exam, tool, checks) for tool in exam.spec.tools)
    done = [check for check in checks if not check.per_tool and check.name in exam.done]
    whole = _score(len(done), [finding for finding in exam.findings if finding.tool is None])
    scores = [tool.score for tool in tools if tool.score is not None] + ([whole] if done else [])
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    return Report(
        environment=exam.spec.name,
        version=exam.spec.version,
        source=exam.spec.source,
        seed=exam.plan.seed,
        score=round(sum(scores) / max(len(scores), 1), 4) if exam.done or not exam.stopped else None,
        tools=tools,
        checks=tuple(_check(exam, check) for check in checks),
        findings=tuple(sorted(exam.findings, key=lambda one: (order[one.severity], one.tool or "", one.check, one.id))),
        states=len(exam.data.views),
        facts=len(exam.facts),
        calls=exam.lab.calls,
        cpu_seconds=round(cpu, 2),
        stopped=exam.stopped,
        unconfirmed=dict(sorted(exam.unconfirmed.items())),
    )


def _tool(exam: Exam, tool: ToolSpec, checks: Sequence[Check]) -> ToolReport:
    made = exam.explored.by_tool.get(tool.name, [])
    applied = [c for c in checks if c.per_tool and c.name in exam.done and c.applies(exam, tool)]
    findings = [finding for finding in exam.findings if finding.tool == tool.name]
    return ToolReport(
        name=tool.name,
        score=_score(len(applied), findings) if exam.done or not exam.stopped else None,
        calls=len(made),
        succeeded=sum(seen.ok for seen in made),
        refused=sum(seen.outcome.refusal is not None for seen in made),
        broke=sum(seen.outcome.fault is not None for seen in made),
        checks=len(applied),
        failed=tuple(sorted({finding.check for finding in findings if finding.severity != "note"})),
    )


def _score(checks: int, findings: Sequence[Finding]) -> float:
    worst: dict[str, int] = {}
    for finding in findings:
        worst[finding.check] = max(worst.get(finding.check, 0), COST[finding.severity])
    failed = [cost for cost in worst.values() if cost]
    passed = max(checks - len(failed), 0)
    return round(passed / (passed + sum(failed)), 4) if passed or failed else 1.0


def _check(exam: Exam, check: Check) -> CheckReport:
    found = [finding for finding in exam.findings if finding.check == check.name]
    outcome: Outcome = "passed"
    if check.name in exam.skipped:
        outcome = "skipped"
    elif any(finding.severity != "note" for finding in found):
        outcome = "failed"
    elif found:
        outcome = "noted"
    elif check.name not in exam.done:
        outcome = "not reached"
    elif check.per_tool and not any(check.applies(exam, tool) for tool in exam.spec.tools):
        outcome = "nothing to see"
    return CheckReport(
        name=check.name,
        about=check.about,
        severity=check.severity,
        outcome=outcome,
        findings=len(found),
        reason=exam.skipped.get(check.name, ""),
    )
