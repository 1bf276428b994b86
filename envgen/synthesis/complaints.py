"""Build complaints about a draft that a model can act on: minimal calls, results, changes."""

from collections.abc import Sequence

from trajsmith.envcheck import EnvironmentReport, Finding, StartState
from trajsmith.envgen.synthesis.answer_schemas import BusinessRule
from trajsmith.envgen.synthesis.execution import STATE_SIZES, UnitTestResult, execute_call, shorten_json
from trajsmith.envgen.synthesis.records import GRAVEST, Complaint
from trajsmith.environments import EnvironmentSource
from trajsmith.records import EnvironmentFault

_SEVERE = ("error", "warning")


async def build_checker_complaints(source: EnvironmentSource, report: EnvironmentReport) -> list[Complaint]:
    """Build complaints from the checker's findings that cost score, errors first, with their calls replayed."""
    complaints: list[Complaint] = []
    severe = [finding for finding in report.findings if finding.severity in _SEVERE]
    for finding in sorted(severe, key=lambda one: _SEVERE.index(one.severity)):
        complaints.append(
            Complaint(
                id=f"D{len(complaints) + 1}", kind="checker", tool=finding.tool or "",
                what=f"{finding.severity}, {finding.check}: {finding.message}",
                calls=await _replay_calls(source, finding), seen=finding.seen, expected=finding.expected,
            )
        )  # fmt: skip
    return complaints


async def _replay_calls(source: EnvironmentSource, finding: Finding) -> tuple[str, ...]:
    """The calls of a finding's case, made once more in one session."""
    case = finding.case
    if case is None:
        return ()
    if any(step.session for step in case.steps):
        return (f"{_describe_start(case.start)}; two sessions beside each other",)
    lines = [_describe_start(case.start)]
    session = await source.open()
    try:
        await session.reset((await source.states(case.start.seed))[case.start.index])
        for step in case.steps:
            if step.do == "reload":
                state = await session.snapshot()
                await session.close()
                session = await source.open()
                await session.reset(state)
                lines.append("the state is saved, and a new session goes on from it")
            else:
                lines.append((await execute_call(session, step.tool, step.arguments)).line())
    except EnvironmentFault as fault:
        lines.append(f"breaks: {fault}")
    finally:
        await session.close()
    return tuple(lines)


def _describe_start(start: StartState) -> str:
    size = next((name for name, index in STATE_SIZES.items() if index == start.index), str(start.index))
    return f"start from the {size} state of seed {start.seed}"


def build_test_complaints(verdicts: Sequence[UnitTestResult]) -> list[Complaint]:
    """Build complaints from failed tests."""
    complaints: list[Complaint] = []
    for verdict in verdicts:
        if not verdict.passed:
            test = verdict.test
            complaints.append(
                Complaint(
                    id=f"T{len(complaints) + 1}", kind="test", tool=test.tool, test=test.name,
                    what=f"test {test.name} fails: {verdict.fault}", calls=verdict.lines, expected=test.about,
                )
            )  # fmt: skip
    return complaints


def build_rule_complaints(rules: Sequence[BusinessRule], verdicts: Sequence[UnitTestResult]) -> list[Complaint]:
    """Build complaints from rules for which no test shows a refusal."""
    bound = {verdict.test.rule for verdict in verdicts if verdict.passed}
    complaints: list[Complaint] = []
    for rule in rules:
        if rule.id not in bound:
            tried = [verdict for verdict in verdicts if verdict.test.rule == rule.id]
            evidence = tried[0].fault if tried else "no test makes a call that it forbids"
            complaints.append(
                Complaint(
                    id=f"B{len(complaints) + 1}", kind="rule", test=rule.id, tool=tried[0].test.tool if tried else "",
                    what=f"rule {rule.id} is not shown to bind: {evidence}", calls=tried[0].lines if tried else (),
                    expected=rule.text,
                )
            )  # fmt: skip
    return complaints


def find_gravest(complaints: Sequence[Complaint], most: int) -> list[Complaint]:
    """Return the complaints to show first."""
    ordered = sorted(complaints, key=lambda one: GRAVEST.index(one.kind))
    return ordered[:most]


def format_complaint(complaint: Complaint) -> str:
    """Return a complaint as one line."""
    where = f"{complaint.tool}: " if complaint.tool and complaint.tool not in complaint.what else ""
    return shorten_json(f"{complaint.kind}: {where}{complaint.what}", 300)
