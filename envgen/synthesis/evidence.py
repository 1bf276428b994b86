"""What is wrong with a draft, as evidence that a model can act on: the smallest calls, results, changes."""

from collections.abc import Sequence

from envgen.doctor import Finding, Report, Start
from envgen.synthesis.parts import Rule
from envgen.synthesis.playing import SIZES, Verdict, play, short
from envgen.synthesis.records import GRAVEST, Complaint
from environments import EnvironmentSource
from trajectory import EnvironmentFault

_SEVERE = ("error", "warning")


async def of_doctor(source: EnvironmentSource, report: Report) -> list[Complaint]:
    """The doctor's findings that cost score, errors first, each with its calls made again."""
    found: list[Complaint] = []
    severe = [finding for finding in report.findings if finding.severity in _SEVERE]
    for finding in sorted(severe, key=lambda one: _SEVERE.index(one.severity)):
        found.append(
            Complaint(
                id=f"D{len(found) + 1}", kind="doctor", tool=finding.tool or "",
                what=f"{finding.severity}, {finding.check}: {finding.message}",
                calls=await _calls(source, finding), seen=finding.seen, expected=finding.expected,
            )
        )  # fmt: skip
    return found


async def _calls(source: EnvironmentSource, finding: Finding) -> tuple[str, ...]:
    """The calls of a finding's case, made once more in one session."""
    case = finding.case
    if case is None:
        return ()
    if any(step.session for step in case.steps):
        return (f"{_start(case.start)}; two sessions beside each other",)
    lines = [_start(case.start)]
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
                lines.append((await play(session, step.tool, step.arguments)).line())
    except EnvironmentFault as fault:
        lines.append(f"breaks: {fault}")
    finally:
        await session.close()
    return tuple(lines)


def _start(start: Start) -> str:
    size = next((name for name, index in SIZES.items() if index == start.index), str(start.index))
    return f"start from the {size} state of seed {start.seed}"


def of_tests(verdicts: Sequence[Verdict]) -> list[Complaint]:
    """Tests that failed."""
    found: list[Complaint] = []
    for verdict in verdicts:
        if not verdict.passed:
            test = verdict.test
            found.append(
                Complaint(
                    id=f"T{len(found) + 1}", kind="test", tool=test.tool, test=test.name,
                    what=f"test {test.name} fails: {verdict.fault}", calls=verdict.lines, expected=test.about,
                )
            )  # fmt: skip
    return found


def of_rules(rules: Sequence[Rule], verdicts: Sequence[Verdict]) -> list[Complaint]:
    """Rules that no execution shows to bind: none that they forbid was refused."""
    bound = {verdict.test.rule for verdict in verdicts if verdict.passed}
    found: list[Complaint] = []
    for rule in rules:
        if rule.id not in bound:
            tried = [verdict for verdict in verdicts if verdict.test.rule == rule.id]
            told = tried[0].fault if tried else "no test makes a call that it forbids"
            found.append(
                Complaint(
                    id=f"B{len(found) + 1}", kind="rule", test=rule.id, tool=tried[0].test.tool if tried else "",
                    what=f"rule {rule.id} is not shown to bind: {told}", calls=tried[0].lines if tried else (),
                    expected=rule.text,
                )
            )  # fmt: skip
    return found


def gravest(complaints: Sequence[Complaint], most: int) -> list[Complaint]:
    """Those to show first; what has a rule behind it is not said twice."""
    ordered = sorted(complaints, key=lambda one: GRAVEST.index(one.kind))
    return ordered[:most]


def told(complaint: Complaint) -> str:
    """A complaint as one line."""
    where = f"{complaint.tool}: " if complaint.tool and complaint.tool not in complaint.what else ""
    return short(f"{complaint.kind}: {where}{complaint.what}", 300)
