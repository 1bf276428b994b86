"""Showing a finding again: its calls are made once more, step by step, and its check judges them."""

from dataclasses import dataclass

from envgen.doctor.case import Case, Evidence, Finding, Step
from envgen.doctor.checks import CHECKS, Check
from envgen.doctor.checks.calls import told_changes
from envgen.doctor.exam import Exam, Plan
from envgen.doctor.facts.fact import short
from envgen.doctor.lab import Shot, call
from environments import EnvironmentSource, Session
from trajectory import EnvironmentFault, InputError


@dataclass(frozen=True)
class Replay:
    """A finding that was played again."""

    finding: Finding
    lines: list[str]
    """What was done and what came of it, one line each."""
    evidence: Evidence | None
    """What the check sees in it now; None if it does not show any more."""
    judged: bool
    """False if the finding is about many calls or none, so that these alone cannot show it."""


async def replay(source: EnvironmentSource, finding: Finding, plan: Plan) -> Replay:
    """Play a finding's calls again.

    Raises:
        InputError: The finding is of a check that does not exist, or of another environment.
    """
    check = next((check for check in CHECKS if check.name == finding.check), None)
    if check is None:
        raise InputError(f"finding {finding.id} is of a check that there is not: {finding.check}")
    exam = await Exam.prepare(source, plan)
    try:
        if finding.case is None:
            return Replay(finding, [], None, False)
        for step in finding.case.steps:
            if step.do == "call" and step.tool not in exam.tools:
                raise InputError(f"finding {finding.id} calls {step.tool}, which {exam.spec.name} does not have")
        lines = await _told(exam, finding.case)
        evidence = await exam.judge(check, finding.case)
        return Replay(finding, lines, evidence, type(check).judge is not Check.judge)
    finally:
        await exam.close()


async def _told(exam: Exam, case: Case) -> list[str]:
    """Every step with what came of it, played in sessions of their own."""
    lines = [f"start from initial state {case.start.index} of seed {case.start.seed}"]
    sessions: dict[int, Session] = {}
    for step in case.steps:
        if step.session not in sessions:
            start = case.start.model_copy(update=case.about["other"]) if step.session else case.start
            sessions[step.session] = await exam.source.open()
            await sessions[step.session].reset(await exam.lab.state(start))
        if step.do == "reload":
            state = await sessions[step.session].snapshot()
            sessions[step.session] = await exam.source.open()
            await sessions[step.session].reset(state)
            lines.append("save the state, and go on from it in a new session")
            continue
        lines += await _line(exam, sessions[step.session], step)
    for session in sessions.values():
        await session.close()
    return lines


async def _line(exam: Exam, session: Session, step: Step) -> list[str]:
    who = "" if step.actor == "assistant" else f" (as {step.actor})"
    beside = f" in session {step.session}" if step.session else ""
    before = exam.lab.viewer.view(await session.snapshot())
    outcome = await call(session, step)
    lines = [f"call {step.tool}({short_arguments(step)}){who}{beside}"]
    if outcome.fault is not None:
        return [*lines, f"  breaks: {outcome.fault}"]
    try:
        after = exam.lab.viewer.view(await session.snapshot())
    except EnvironmentFault as fault:
        return [*lines, f"  its state cannot be saved: {fault}"]
    told = f"  refused: {outcome.refusal}" if outcome.refusal is not None else f"  answers {short(outcome.content)}"
    changes = told_changes(Shot(outcome, before, after)) if not before.equals(after) else "the state stays as it was"
    return [*lines, told, f"  {changes}"]


def short_arguments(step: Step) -> str:
    """Arguments as they are written in a call."""
    return ", ".join(f"{name}={short(value)}" for name, value in step.arguments.items())
