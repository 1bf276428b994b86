"""The verdict on one trajectory, by running it again. Design sections 1, 5 and 6."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from environments import Session, diff
from trajectory import (
    CallEvent,
    CheckOutcome,
    EnvironmentFault,
    GoldCall,
    JsonObject,
    Task,
    Trajectory,
    Verdict,
    canonical_json,
)
from trajectory.verdict import Outcome
from verify.checks import run_check


@dataclass
class Replay:
    """What a replay gave.

    Attributes:
        mismatches: What differed from the record, in words; empty if nothing did.
        states: State after each turn.
        final: State hash at the end, empty if the replay broke off.
    """

    mismatches: list[str] = field(default_factory=list)
    states: list[JsonObject] = field(default_factory=list)
    initial: JsonObject = field(default_factory=dict)
    final: str = ""


async def replay(trajectory: Trajectory, state: JsonObject, session: Session) -> Replay:
    """Make all calls of a trajectory again on a fresh initial state and compare with the record.

    Raises:
        EnvironmentFault: The environment broke.
    """
    found = Replay()
    await session.reset(state)
    found.initial = await session.snapshot()
    if await session.state_hash() != trajectory.initial_state:
        found.mismatches.append("the initial state differs")
    done = 0
    texts = [message.content for message in trajectory.messages if message.role == "tool"]
    for number, span in enumerate(trajectory.turns):
        upto = sum(event.message < span.stop for event in trajectory.events)
        for event in trajectory.events[done:upto]:
            await _repeat(event, session, found, texts.pop(0) if event.actor == "assistant" and texts else None)
        done = upto
        found.states.append(await session.snapshot())
        found.final = await session.state_hash()
        if found.final != span.state_hash:
            found.mismatches.append(f"the state after turn {number + 1} differs")
    return found


async def _repeat(event: CallEvent, session: Session, found: Replay, text: str | None) -> None:
    """Make one call again; `text` is what the record says that the agent saw, None for calls of the user."""
    result = await session.call(event.tool, event.arguments, event.actor)
    if result.ok != event.ok:
        found.mismatches.append(f"{event.tool} is {'accepted' if result.ok else 'refused'} now")
    elif session.spec.can_restore and (result.hash != event.result_hash or text not in (None, result.text)):
        found.mismatches.append(f"{event.tool} returns something else")


async def verify_trajectory(task: Task, trajectory: Trajectory, state: JsonObject, session: Session) -> Verdict:
    """Replay, run the checks of every turn, compare with the gold calls, and decide.

    An environment that breaks or differs on replay is `environment_error`, never the agent's fault.
    """
    if trajectory.stop_reason == "environment_fault":
        return _verdict(task, trajectory, "environment_error", (), None, None, ("environment_fault",))
    try:
        again = await replay(trajectory, state, session)
    except EnvironmentFault as fault:
        return _verdict(task, trajectory, "environment_error", (), None, None, (f"environment_fault:{fault.kind}",))
    if again.mismatches:
        return _verdict(
            task,
            trajectory,
            "environment_error",
            (),
            None,
            False,
            tuple(f"replay: {text}" for text in again.mismatches[:3]),
        )
    outcomes = _run_checks(task, trajectory, again)
    complete = len(trajectory.turns) == len(task.turns)
    state_match = complete and again.final == task.turns[-1].state_hash
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if complete and not failed and state_match:
        return _verdict(task, trajectory, "completed", outcomes, state_match, True, ())
    reasons = _reasons(trajectory, failed, state_match)
    outcome: Outcome = (
        "partial" if any(found.passed and found.kind != "untouched" for found in outcomes) else "agent_error"
    )
    return _verdict(task, trajectory, outcome, outcomes, state_match, True, reasons)


def _run_checks(task: Task, trajectory: Trajectory, again: Replay) -> tuple[CheckOutcome, ...]:
    outcomes: list[CheckOutcome] = []
    for turn, span, state in zip(task.turns, trajectory.turns, again.states, strict=False):
        said = [
            message.content for message in trajectory.messages[span.start : span.stop] if message.role == "assistant"
        ]
        changes = diff(again.initial, state)
        outcomes += [run_check(check, again.initial, state, "\n".join(said), changes) for check in turn.checks]
    return tuple(outcomes)


def _reasons(trajectory: Trajectory, failed: Sequence[CheckOutcome], state_match: bool) -> tuple[str, ...]:
    reasons = []
    if trajectory.stop_reason != "user_stop":
        reasons.append(f"stopped: {trajectory.stop_reason}")
    reasons += sorted({f"check failed: {outcome.kind}" for outcome in failed})
    if not state_match:
        reasons.append("the final state is not the gold state")
    return tuple(reasons)


def trajectory_match(gold: Sequence[GoldCall], events: Sequence[CallEvent]) -> float:
    """Share of gold calls found among the calls that succeeded, in the same order (longest common subsequence)."""
    if not gold:
        return 1.0
    wanted = [canonical_json([call.tool, call.arguments]) for call in gold]
    made = [canonical_json([event.tool, event.arguments]) for event in events if event.ok]
    row = [0] * (len(made) + 1)
    for call in wanted:
        last = 0
        for column, other in enumerate(made, 1):
            last, row[column] = row[column], last + 1 if call == other else max(row[column], row[column - 1])
    return round(row[-1] / len(wanted), 4)


def _verdict(
    task: Task,
    trajectory: Trajectory,
    outcome: Outcome,
    checks: tuple[CheckOutcome, ...],
    state_match: bool | None,
    replay_match: bool | None,
    reasons: tuple[str, ...],
) -> Verdict:
    passed = sum(check.passed is True for check in checks)
    rewards = {"checks": round(passed / len(checks), 4)} if checks else {}
    return Verdict(
        trajectory_id=trajectory.id,
        task_id=task.id,
        environment=trajectory.environment,
        outcome=outcome,
        checks=checks,
        state_match=state_match,
        replay_match=replay_match,
        rewards=rewards,
        accepted=outcome == "completed",
        reasons=reasons,
        trajectory_match=trajectory_match(task.gold_calls, trajectory.events),
    )
