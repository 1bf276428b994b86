"""The verdict on one trajectory, by running it again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from trajsmith.environments import Session
from trajsmith.environments.injected_faults import inject_faults, open_turn
from trajsmith.phrasing import Wording, find_clock_date
from trajsmith.records import (
    CallEvent,
    Check,
    CheckOutcome,
    CriterionOutcome,
    EnvironmentFault,
    FromOutput,
    GoldCall,
    JsonObject,
    JsonValue,
    Outcome,
    PrunedCall,
    Task,
    Topic,
    Trajectory,
    TurnVerdict,
    Verdict,
)
from trajsmith.verify.answer_text import select_answer_text
from trajsmith.verify.batch_checks import CONDUCT
from trajsmith.verify.checks import CheckedCall
from trajsmith.verify.claim_support import CLAIMS, find_play_claims
from trajsmith.verify.code_checks import CodeCheckRunner, run_checks
from trajsmith.verify.confirmation import REPORTED, ConfirmationReport, find_confirmation_faults
from trajsmith.verify.fault_attribution import decide_outcome, decide_turn_outcome, find_script_faults
from trajsmith.verify.fidelity import USER, find_user_faults
from trajsmith.verify.matching import WRONG_READS, compute_trajectory_match, find_wrong_reads, match_calls
from trajsmith.verify.misplaced_values import find_misplaced_values
from trajsmith.verify.normalized_state import NormalizedState, normalize_state
from trajsmith.verify.pruning import find_redundant_calls
from trajsmith.verify.rewards import RewardEvidence, compute_rewards
from trajsmith.verify.rubrics import RubricEvidence, decide_rubric
from trajsmith.verify.settings import VerifySettings
from trajsmith.verify.step_labels import label_steps
from trajsmith.verify.tool_choice import UnseenCall, build_tool_choice_checks, find_unseen_calls
from trajsmith.verify.variant_checks import build_variant_checks

UNFINISHED = frozenset({"step_limit", "turn_limit", "bad_calls"})
"""Ends of plays that were broken off: whatever was done by then, the dialogue is not one to learn from."""


@dataclass
class ReplayResult:
    """Result of a replay.

    Attributes:
        mismatches: What differed from the record, in words; empty if nothing did.
        states: State after each turn.
        final: State hash at the end, empty if the replay broke off.
    """

    mismatches: list[str] = field(default_factory=list)
    states: list[JsonObject] = field(default_factory=list)
    initial: JsonObject = field(default_factory=dict)
    final: str = ""
    device: list[JsonValue] = field(default_factory=list)
    """What the user saw on their own device."""


async def replay_trajectory(trajectory: Trajectory, state: JsonObject, session: Session) -> ReplayResult:
    """Make all calls of a trajectory again on a fresh initial state and compare with the record.

    Raises:
        EnvironmentFault: The environment broke.
    """
    result = ReplayResult()
    await session.reset(state)
    result.initial = await session.snapshot()
    if await session.state_hash() != trajectory.initial_state:
        result.mismatches.append("the initial state differs")
    done = 0
    texts = [message.content for message in trajectory.messages if message.role == "tool"]
    for number, span in enumerate(trajectory.turns):
        open_turn(session, number)
        upto = sum(event.message < span.stop for event in trajectory.events)
        for event in trajectory.events[done:upto]:
            await _repeat_call(event, session, result, texts.pop(0) if event.actor == "assistant" and texts else None)
        done = upto
        result.states.append(await session.snapshot())
        result.final = await session.state_hash()
        if result.final != span.state_hash:
            result.mismatches.append(f"the state after turn {number + 1} differs")
    return result


async def _repeat_call(event: CallEvent, session: Session, replayed: ReplayResult, text: str | None) -> None:
    """Make one call again; `text` is what the record says that the agent saw, None for calls of the user."""
    if not event.reached:
        return
    result = await session.call(event.tool, event.arguments, event.actor)
    if result.ok != event.ok:
        replayed.mismatches.append(f"{event.tool} is {'accepted' if result.ok else 'refused'} now")
    elif session.spec.can_restore and (result.hash != event.result_hash or text not in (None, result.text)):
        replayed.mismatches.append(f"{event.tool} returns something else")
    if event.actor == "user":
        replayed.device.append(result.content)


@dataclass(frozen=True)
class _TurnReplay:
    """One turn of a trajectory, judged."""

    outcomes: list[CheckOutcome]
    state_match: bool
    form: NormalizedState
    checks: int
    """Outcomes that are those of the turn's checks, at the beginning."""
    installed: int
    """Outcomes of installed checks behind them."""
    own: dict[int, CheckOutcome]
    """Number of a criterion of the rubric to the outcome of its own check, in the last turn."""


async def verify_trajectory(
    task: Task,
    trajectory: Trajectory,
    state: JsonObject,
    session: Session,
    settings: VerifySettings | None = None,
    code: CodeCheckRunner | None = None,
    wording: Wording | None = None,
) -> Verdict:
    """Replay, run the checks of every turn, compare with the gold calls, and decide.

    An environment that breaks or differs on replay is `environment_error`, never the agent's fault; a model that fell
    silent leaves the trajectory `undecided`; a user who did not keep to the task makes it `user_error`.

    Args:
        task: The task that was played.
        trajectory: What came of it.
        state: The initial state.
        session: A session of the environment.
        settings: Rewards, and whether calls that were not needed are taken out.
        code: Where written check functions run; without it they could not tell.
        wording: How people say the values of the environment; without it the user's words are not examined.
    """
    settings, session = settings or VerifySettings(), inject_faults(session, task)
    if trajectory.stop_reason == "model_fault":
        return _build_broken_verdict(
            task, trajectory, None, (f"model_fault:{trajectory.fault}",), settings, "undecided"
        )
    if trajectory.stop_reason == "environment_fault":
        return _build_broken_verdict(task, trajectory, None, ("environment_fault",), settings)
    try:
        again = await replay_trajectory(trajectory, state, session)
    except EnvironmentFault as fault:
        return _build_broken_verdict(task, trajectory, None, (f"environment_fault:{fault.kind}",), settings)
    if again.mismatches:
        reasons = tuple(f"replay: {text}" for text in again.mismatches[:3])
        return _build_broken_verdict(task, trajectory, False, reasons, settings)
    confirmations = find_confirmation_faults(task, trajectory, session.spec, wording)
    judged = confirmations if settings.confirmation == "reject" else ConfirmationReport()
    unseen = find_unseen_calls(task, trajectory, session.spec.tools)
    turns = [
        await _judge_turn(task, trajectory, again, number, code, settings.installed, judged, unseen)
        for number in range(_count_played_turns(task, trajectory))
    ]
    strayed = find_user_faults(task, trajectory, wording, again.device, find_clock_date(state)) if wording else []
    claims = _check_claims(task, trajectory, wording) if settings.claims else []
    verdict = _decide_verdict(task, trajectory, turns, claims, strayed, settings)
    if settings.confirmation == "report":
        verdict = _update_verdict(verdict, checks=(*verdict.checks, *confirmations.build_outcomes(kind=REPORTED)))
    prunes = settings.prune and trajectory.repair is None  # a wrong step that a repair keeps is what it recovers from
    if verdict.accepted and (prunes or settings.step_labels):
        needed = set(_match_gold_calls(task, trajectory, turns).values()) | _find_telling_refusals(task, trajectory)
        gone: tuple[PrunedCall, ...] = ()
        if len(needed) < len(trajectory.events):
            gone = await find_redundant_calls(trajectory, needed, state, session)
            verdict = _update_verdict(verdict, pruned=gone) if prunes else verdict
        if settings.step_labels:
            labels = await label_steps(trajectory, {call.event for call in gone}, needed, state, session)
            verdict = _update_verdict(verdict, step_labels=labels)
            rewards = compute_rewards(build_evidence(task, trajectory, verdict), settings.rewards)
            verdict = _update_verdict(verdict, rewards=rewards)
    return verdict


def _find_telling_refusals(task: Task, trajectory: Trajectory) -> set[int]:
    """Return the refused calls that show why a variant's request cannot be met: they change nothing and are needed.

    They are about the thing that was asked for, or they are what was made to fail; a refused call about another thing
    is none of them.
    """
    perturbation = task.twist
    if perturbation is None or perturbation.turn >= len(trajectory.turns):
        return set()
    span = trajectory.turns[perturbation.turn]
    meant = [*perturbation.tempting, *(member.call for member in perturbation.refused)]
    return {
        index
        for index, event in enumerate(trajectory.events)
        if not event.ok
        and event.tool == perturbation.tool
        and span.start <= event.message < span.stop
        and (bool(perturbation.refusal) or any(_is_about_same_thing(event, call) for call in meant))
    }


def _is_about_same_thing(event: CallEvent, call: GoldCall) -> bool:
    """Return True if a call has the same things in its arguments as another one; values of the user may differ."""
    names = [name for name, source in call.provenance.items() if isinstance(source, FromOutput)]
    return event.tool == call.tool and all(event.arguments.get(name) == call.arguments.get(name) for name in names)


def _update_verdict(verdict: Verdict, **changes: object) -> Verdict:
    """Return a verdict with changes, and the id that belongs to it."""
    updated = verdict.model_copy(update=changes)
    return updated.model_copy(update={"id": updated.content_id()})


def _count_played_turns(task: Task, trajectory: Trajectory) -> int:
    return min(len(task.turns), len(trajectory.turns))


async def _judge_turn(
    task: Task,
    trajectory: Trajectory,
    again: ReplayResult,
    number: int,
    code: CodeCheckRunner | None,
    installed: Sequence[Check],
    confirmations: ConfirmationReport,
    unseen: Sequence[UnseenCall],
) -> _TurnReplay:
    turn, span, state = task.turns[number], trajectory.turns[number], again.states[number]
    messages = trajectory.messages[span.start : span.stop]
    answer = (
        select_answer_text(messages)
        if turn.asked
        else "\n".join(message.content for message in messages if message.role == "assistant")
    )
    form = normalize_state(again.initial, state, task.masks)
    calls: list[CheckedCall] = [
        (event.tool, event.arguments, event.ok) for event in trajectory.events if event.message < span.stop
    ]
    last = number == len(task.turns) - 1
    checks = (*turn.checks, *installed) if last else turn.checks
    outcomes = await run_checks(checks, form, (again.initial, state), answer, calls, code)
    written = {place: criterion.check for place, criterion in enumerate(task.rubric) if last and criterion.check}
    judged = await run_checks(list(written.values()), form, (again.initial, state), answer, calls, code)
    if task.twist is not None and task.twist.turn == number:
        outcomes += build_variant_checks(task.twist, task.variant, trajectory, turn.gold_calls)
    outcomes += build_tool_choice_checks(task, trajectory, number, unseen)
    outcomes += confirmations.build_outcomes(number)
    match = span.state_hash == turn.state_hash or bool(turn.form_hash and form.hash == turn.form_hash)
    own = dict(zip(written, judged, strict=True))
    return _TurnReplay(outcomes, match, form, len(turn.checks), len(checks) - len(turn.checks), own)


def _check_claims(task: Task, trajectory: Trajectory, wording: Wording | None) -> list[CheckOutcome]:
    """Return one outcome per value that the agent made up, or told of another thing than its own."""
    writes = {call.tool for call in task.gold_calls if call.effect == "write"}
    changing = {event.message for event in trajectory.events if event.effect is not None or event.tool in writes}
    claims = {
        "the agent tells only values that it was given": find_play_claims(
            task, trajectory, wording.phrasebook if wording else None
        ),
        "each value is told of the thing that it belongs to": find_misplaced_values(trajectory.messages, changing),
    }
    return [
        CheckOutcome(says=says, kind=CLAIMS, passed=False, detail=claim.value)
        for says, wrong in claims.items()
        for claim in wrong
    ]


def _match_gold_calls(task: Task, trajectory: Trajectory, turns: Sequence[_TurnReplay]) -> dict[int, int]:
    """Gold calls that were made."""
    names = turns[-1].form.names if turns else {}
    complete = len(turns) == len(task.turns) and turns[-1].state_match
    return match_calls(task.gold_calls, trajectory.events, task.masks.names, names, complete)


def _decide_verdict(
    task: Task,
    trajectory: Trajectory,
    turns: Sequence[_TurnReplay],
    claims: Sequence[CheckOutcome],
    strayed: Sequence[CheckOutcome],
    settings: VerifySettings,
) -> Verdict:
    pairs = _match_gold_calls(task, trajectory, turns)
    outcomes = (*(outcome for turn in turns for outcome in turn.outcomes), *claims)
    reads = tuple(
        CheckOutcome(says=WRONG_READS, kind=CONDUCT, passed=False, detail=detail)
        for detail in find_wrong_reads(task, trajectory, pairs)
    )
    outcomes += reads
    complete = len(trajectory.turns) == len(task.turns)
    state_match = complete and turns[-1].state_match
    failed = [outcome for outcome in outcomes if outcome.passed is False]
    unsure = [outcome for outcome in outcomes if outcome.passed is None]
    faults = find_script_faults(task, trajectory)
    ended = complete and trajectory.stop_reason not in UNFINISHED
    outcome: Outcome = "user_error" if strayed else decide_outcome(outcomes, ended and state_match, faults)
    reasons: tuple[str, ...] = ()
    if strayed:
        reasons = tuple(dict.fromkeys(fault.says for fault in strayed))
    elif outcome == "undecided":
        reasons = tuple(
            sorted(
                {
                    f"could not tell: {check_outcome.kind}: {check_outcome.detail.split(':')[0]}"
                    for check_outcome in unsure
                }
            )
        )
    elif outcome != "completed":
        reasons = (*faults, *_list_reasons(trajectory, failed, state_match))
    return _build_verdict(
        task, trajectory, outcome, (*outcomes, *strayed), state_match, True, reasons, settings,
        matched=len(pairs),
        rubric=_decide_rubric(task, trajectory, turns, (*claims, *reads), settings) if not strayed else (),
        turns=tuple(
            TurnVerdict(
                outcome=decide_turn_outcome(turn.outcomes, turn.state_match),
                state_match=turn.state_match,
                checks=len(turn.outcomes),
                passed=sum(check_outcome.passed is True for check_outcome in turn.outcomes),
            )
            for turn in turns
        ),
    )  # fmt: skip


def _decide_rubric(
    task: Task,
    trajectory: Trajectory,
    turns: Sequence[_TurnReplay],
    others: Sequence[CheckOutcome],
    settings: VerifySettings,
) -> tuple[CriterionOutcome, ...]:
    """Decide the rubric; `others` are the outcomes of the whole play."""
    unexamined: set[Topic] = set() if settings.claims else {"claims"}
    unexamined |= {"confirmation"} if settings.confirmation == "report" else set()
    conduct = [outcome for turn in turns for outcome in turn.outcomes[turn.checks + turn.installed :]]
    evidence = RubricEvidence(
        checks=[turn.outcomes[: turn.checks] for turn in turns],
        installed=[outcome for turn in turns for outcome in turn.outcomes[turn.checks : turn.checks + turn.installed]],
        conduct=[*conduct, *others],
        own=turns[-1].own if turns else {},
        unexamined=frozenset(unexamined),
    )
    return decide_rubric(task, trajectory, evidence)


def _list_reasons(trajectory: Trajectory, failed: Sequence[CheckOutcome], state_match: bool) -> tuple[str, ...]:
    reasons = []
    if trajectory.stop_reason != "user_stop":
        reasons.append(f"stopped: {trajectory.stop_reason}")
    reasons += sorted({f"check failed: {_get_check_kind(outcome)}" for outcome in failed})
    if not state_match:
        reasons.append("the final state is not the gold state")
    return tuple(reasons)


def _get_check_kind(outcome: CheckOutcome) -> str:
    """The kind of a check; of what an agent must do about a twist, there is only one of each."""
    return f"{outcome.kind}: {outcome.says}" if outcome.kind == CONDUCT else outcome.kind


def _build_broken_verdict(
    task: Task,
    trajectory: Trajectory,
    replays: bool | None,
    reasons: tuple[str, ...],
    settings: VerifySettings,
    outcome: Outcome = "environment_error",
) -> Verdict:
    """The verdict where the environment or a model broke."""
    match_share = compute_trajectory_match(task.gold_calls, trajectory.events)
    matched = round(match_share * len(task.gold_calls))
    return _build_verdict(task, trajectory, outcome, (), None, replays, reasons, settings, matched)


def _build_verdict(
    task: Task,
    trajectory: Trajectory,
    outcome: Outcome,
    checks: tuple[CheckOutcome, ...],
    state_match: bool | None,
    replay_match: bool | None,
    reasons: tuple[str, ...],
    settings: VerifySettings,
    matched: int,
    turns: tuple[TurnVerdict, ...] = (),
    rubric: tuple[CriterionOutcome, ...] = (),
) -> Verdict:
    gold = len(task.gold_calls)
    verdict = Verdict(
        trajectory_id=trajectory.id,
        task_id=task.id,
        environment=trajectory.environment,
        outcome=outcome,
        checks=checks,
        state_match=state_match,
        replay_match=replay_match,
        rewards={},
        accepted=outcome == "completed",
        reasons=reasons,
        trajectory_match=round(matched / gold, 4) if gold else 1.0,
        turns=turns,
        rubric=rubric,
    )
    rewards = compute_rewards(build_evidence(task, trajectory, verdict), settings.rewards)
    return _update_verdict(verdict, rewards=rewards)


def build_evidence(task: Task, trajectory: Trajectory, verdict: Verdict) -> RewardEvidence:
    """Build what the rewards of a verdict are computed from."""
    return RewardEvidence(
        outcome=verdict.outcome,
        checks=[check for check in verdict.checks if check.kind not in (USER, REPORTED)],
        state_match=verdict.state_match,
        trajectory_match=verdict.trajectory_match,
        gold_calls=len(task.gold_calls),
        calls=len(trajectory.events),
        errors=[event.error for event in trajectory.events if event.actor == "assistant"],
        criteria=verdict.rubric,
        step_labels=verdict.step_labels,
    )
