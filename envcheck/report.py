"""Report of a check session: findings, scores, coverage, and skipped checks."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from trajsmith.envcheck.check_run import run_checks
from trajsmith.envcheck.check_session import CheckPlan, CheckSession
from trajsmith.envcheck.checks import CHECKS, Check
from trajsmith.envcheck.finding_replay import format_arguments
from trajsmith.envcheck.findings import SEVERITIES, Finding, Severity, build_finding_id
from trajsmith.environments import EnvironmentSource
from trajsmith.grounding import check_phrasebook, check_scenarios
from trajsmith.records import EnvironmentFault, FrozenModel, ToolSpec, build_page_policy, template_environment

COST: dict[Severity, int] = {"error": 10, "warning": 4, "note": 0}
"""How much a failed check weighs against a passed one, which weighs 1."""
CheckStatus = Literal["passed", "failed", "noted", "skipped", "nothing to see", "not reached"]


class ToolReport(FrozenModel):
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


class CheckReport(FrozenModel):
    """One check on the whole environment."""

    name: str
    about: str
    """The statement that is checked."""
    severity: Severity
    outcome: CheckStatus
    findings: int
    reason: str = ""
    """Why it was skipped."""


class EnvironmentReport(FrozenModel):
    """Check report of one environment."""

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
    sampled: bool = False
    """True if there are more, which were left out since these are large."""
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


async def check_environment(
    source: EnvironmentSource, plan: CheckPlan | None = None, checks: Sequence[Check] = CHECKS
) -> EnvironmentReport:
    """Examine an environment.

    Raises:
        InputError: It cannot be loaded, or its phrasebook or scenarios name what it does not have.
    """
    started, plan = time.process_time(), plan or CheckPlan()
    try:
        check_session = await CheckSession.prepare(source, plan)
    except EnvironmentFault as fault:
        return await _does_not_start(source, plan, fault)
    try:
        check_phrasebook(source.phrasebook, check_session.spec)
        check_scenarios(source.scenarios, check_session.spec)
        await run_checks(check_session, checks)
    finally:
        await check_session.close()
    return summarize_session(check_session, checks, time.process_time() - started)


async def _does_not_start(source: EnvironmentSource, plan: CheckPlan, fault: EnvironmentFault) -> EnvironmentReport:
    """The report on an environment that cannot be examined at all."""
    try:
        version, described = (spec := await source.spec()).version, spec.source
    except EnvironmentFault:
        version, described = "", source.name
    finding = Finding(
        id=build_finding_id("start", None, ""), check="start", severity="error", tool=None,
        message="it does not start, or has no initial state", case=None, seen=str(fault)[:500],
        expected="a specification, and initial states to start from",
    )  # fmt: skip
    return EnvironmentReport(
        environment=source.name, version=version, source=described, seed=plan.seed, score=0.0, tools=(), checks=(),
        findings=(finding,), states=0, facts=0, calls=0, cpu_seconds=0.0,
    )  # fmt: skip


def summarize_session(check_session: CheckSession, checks: Sequence[Check], cpu: float) -> EnvironmentReport:
    """Return the report of a finished check session."""
    tools = tuple(_tool(check_session, tool, checks) for tool in check_session.spec.tools)
    done = [check for check in checks if not check.per_tool and check.name in check_session.done]
    whole = _score(len(done), [finding for finding in check_session.findings if finding.tool is None])
    scores = [tool.score for tool in tools if tool.score is not None] + ([whole] if done else [])
    order = {severity: number for number, severity in enumerate(SEVERITIES)}
    return EnvironmentReport(
        environment=check_session.spec.name,
        version=check_session.spec.version,
        source=check_session.spec.source,
        seed=check_session.plan.seed,
        score=round(sum(scores) / max(len(scores), 1), 4) if check_session.done or not check_session.stopped else None,
        tools=tools,
        checks=tuple(_check(check_session, check) for check in checks),
        findings=tuple(
            sorted(check_session.findings, key=lambda one: (order[one.severity], one.tool or "", one.check, one.id))
        ),
        states=len(check_session.data.views),
        sampled=check_session.sampled,
        facts=len(check_session.facts),
        calls=check_session.runner.calls,
        cpu_seconds=round(cpu, 2),
        stopped=check_session.stopped,
        unconfirmed=dict(sorted(check_session.unconfirmed.items())),
    )


def _tool(check_session: CheckSession, tool: ToolSpec, checks: Sequence[Check]) -> ToolReport:
    calls = check_session.explored.by_tool.get(tool.name, [])
    applied = [
        c for c in checks if c.per_tool and c.name in check_session.done and c.is_applicable(check_session, tool)
    ]
    findings = [finding for finding in check_session.findings if finding.tool == tool.name]
    return ToolReport(
        name=tool.name,
        score=_score(len(applied), findings) if check_session.done or not check_session.stopped else None,
        calls=len(calls),
        succeeded=sum(seen.ok for seen in calls),
        refused=sum(seen.outcome.refusal is not None for seen in calls),
        broke=sum(seen.outcome.fault is not None for seen in calls),
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


def _check(check_session: CheckSession, check: Check) -> CheckReport:
    findings = [finding for finding in check_session.findings if finding.check == check.name]
    outcome: CheckStatus = "passed"
    if check.name in check_session.skipped:
        outcome = "skipped"
    elif any(finding.severity != "note" for finding in findings):
        outcome = "failed"
    elif findings:
        outcome = "noted"
    elif check.name not in check_session.done:
        outcome = "not reached"
    elif check.per_tool and not any(check.is_applicable(check_session, tool) for tool in check_session.spec.tools):
        outcome = "nothing to see"
    return CheckReport(
        name=check.name,
        about=check.about,
        severity=check.severity,
        outcome=outcome,
        findings=len(findings),
        reason=check_session.skipped.get(check.name, ""),
    )


FOLDER = Path(__file__).parent / "templates"


def render_reports_html(reports: Sequence[EnvironmentReport]) -> str:
    """One HTML file for all of these reports."""
    from jinja2 import FileSystemLoader

    environment = template_environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["page_policy"] = build_page_policy
    environment.filters["words"] = lambda name: str(name).replace("_", " ")
    environment.filters["score"] = lambda share: "none" if share is None else f"{share:.2f}"
    environment.filters["call"] = lambda step: f"{step.tool}({format_arguments(step)})"
    environment.filters["shade"] = lambda share: (
        "good" if (share or 0) >= 0.9 else "fair" if (share or 0) >= 0.7 else "poor"
    )
    return environment.get_template("report.html.j2").render(reports=reports)
