"""Replays a finding step by step and lets its check judge it again."""

from dataclasses import dataclass

from trajsmith.envcheck.case_runner import StepResult, execute_step
from trajsmith.envcheck.check_run import judge_case
from trajsmith.envcheck.check_session import CheckPlan, CheckSession
from trajsmith.envcheck.checks import CHECKS, Check
from trajsmith.envcheck.checks.call_contract import describe_changes
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase, Finding
from trajsmith.environments import EnvironmentSource, Session
from trajsmith.records import EnvironmentFault, InputError


@dataclass(frozen=True)
class FindingReplay:
    """Result of replaying a finding."""

    finding: Finding
    lines: list[str]
    """What was done and what came of it, one line each."""
    evidence: CaseEvidence | None
    """What the check sees in it now; None if it does not show any more."""
    judged: bool
    """False if the finding is about many calls or none, so that these alone cannot show it."""


async def replay_finding(source: EnvironmentSource, finding: Finding, plan: CheckPlan) -> FindingReplay:
    """Play a finding's calls again.

    Raises:
        InputError: The finding is of a check that does not exist, or of another environment.
    """
    check = next((check for check in CHECKS if check.name == finding.check), None)
    if check is None:
        raise InputError(f"finding {finding.id} is of a check that there is not: {finding.check}")
    check_session = await CheckSession.prepare(source, plan)
    try:
        if finding.case is None:
            return FindingReplay(finding, [], None, False)
        for step in finding.case.steps:
            if step.do == "call" and step.tool not in check_session.tools:
                raise InputError(
                    f"finding {finding.id} calls {step.tool}, which {check_session.spec.name} does not have"
                )
        lines = await _describe_steps(check_session, finding.case)
        evidence = await judge_case(check_session, check, finding.case)
        return FindingReplay(finding, lines, evidence, type(check).judge is not Check.judge)
    finally:
        await check_session.close()


async def _describe_steps(check_session: CheckSession, case: CheckCase) -> list[str]:
    """Every step with what came of it, played in sessions of their own."""
    lines = [f"start from initial state {case.start.index} of seed {case.start.seed}"]
    sessions: dict[int, Session] = {}
    for step in case.steps:
        if step.session not in sessions:
            start = case.start.model_copy(update=case.about["other"]) if step.session else case.start
            sessions[step.session] = await check_session.source.open()
            await sessions[step.session].reset(await check_session.runner.state(start))
        if step.do == "reload":
            state = await sessions[step.session].snapshot()
            sessions[step.session] = await check_session.source.open()
            await sessions[step.session].reset(state)
            lines.append("save the state, and go on from it in a new session")
            continue
        lines += await _line(check_session, sessions[step.session], step)
    for session in sessions.values():
        await session.close()
    return lines


async def _line(check_session: CheckSession, session: Session, step: CaseStep) -> list[str]:
    who = "" if step.actor == "assistant" else f" (as {step.actor})"
    beside = f" in session {step.session}" if step.session else ""
    before = check_session.runner.viewer.view(await session.snapshot())
    outcome = await execute_step(session, step)
    lines = [f"call {step.tool}({format_arguments(step)}){who}{beside}"]
    if outcome.fault is not None:
        return [*lines, f"  breaks: {outcome.fault}"]
    try:
        after = check_session.runner.viewer.view(await session.snapshot())
    except EnvironmentFault as fault:
        return [*lines, f"  its state cannot be saved: {fault}"]
    outcome_text = (
        f"  refused: {outcome.refusal}"
        if outcome.refusal is not None
        else f"  answers {shorten_value(outcome.content)}"
    )
    changes = (
        describe_changes(StepResult(outcome, before, after))
        if not before.equals(after)
        else "the state stays as it was"
    )
    return [*lines, outcome_text, f"  {changes}"]


def format_arguments(step: CaseStep) -> str:
    """Arguments as they are written in a call."""
    return ", ".join(f"{name}={shorten_value(value)}" for name, value in step.arguments.items())
