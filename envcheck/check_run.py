"""Check run: make every check in a session, confirm its suspicions, and shrink the cases of the findings."""

from collections import defaultdict
from collections.abc import Sequence

from trajsmith.envcheck.case_runner import CheckTimeExceeded
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Finding, build_finding_id
from trajsmith.envcheck.shrink import shrink_case
from trajsmith.records import EnvironmentFault


async def run_checks(check_session: CheckSession, checks: Sequence[Check]) -> None:
    """Explore and check; results go into the session, and `stopped` names what a time limit left undone."""
    current = "exploring"
    try:
        await check_session.explore()
        for check in checks:
            current = check.name
            reason = check.skip_reason(check_session)
            if reason:
                check_session.skipped[check.name] = reason
            else:
                suspicions = [suspicion async for suspicion in check.look(check_session)]
                await confirm_suspicions(check_session, check, suspicions)
                check_session.done.add(check.name)
    except CheckTimeExceeded:
        check_session.stopped = current


async def confirm_suspicions(check_session: CheckSession, check: Check, suspicions: Sequence[Suspicion]) -> None:
    """Turn suspicions into findings, one per topic, by playing their cases."""
    topics: dict[tuple[str | None, str], list[Suspicion]] = defaultdict(list)
    for suspicion in suspicions:
        topics[suspicion.tool, suspicion.topic].append(suspicion)
    for (tool, topic), group in topics.items():
        group.sort(key=lambda one: len(one.case.steps) if one.case else 0)
        for suspicion in group[: check.tries]:
            finding = await _confirm(check_session, check, suspicion)
            if finding is not None:
                check_session.findings.append(finding)
                break
        else:
            check_session.unconfirmed[f"{check.name}: {tool or check_session.spec.name}: {topic}"] += 1


async def judge_case(check_session: CheckSession, check: Check, case: CheckCase) -> CaseEvidence | None:
    """Return a check's evidence for a case; None if the case cannot be run."""
    try:
        return await check.judge(check_session, case)
    except EnvironmentFault:
        return None


async def _confirm(check_session: CheckSession, check: Check, suspicion: Suspicion) -> Finding | None:
    case, evidence = suspicion.case, suspicion.evidence
    if case is not None and evidence is None:
        evidence = await judge_case(check_session, check, case)
        if evidence is None:
            return None
        if check.is_shrinkable(case):
            tools = {tool.name: tool for tool in check_session.spec.tools}
            case, evidence = await shrink_case(
                case, evidence, lambda smaller: judge_case(check_session, check, smaller), tools
            )
    if evidence is None:
        return None
    return Finding(
        id=build_finding_id(check.name, suspicion.tool, suspicion.topic),
        check=check.name,
        severity=suspicion.severity or check.severity,
        tool=suspicion.tool,
        message=suspicion.message,
        case=case,
        seen=evidence.seen,
        expected=evidence.expected,
    )
