"""Replay of a recorded dialogue on an environment: a task with a gold state, and a trajectory."""

import re
from collections.abc import Sequence
from typing import Any

import orjson

from trajsmith.environments import InitialAction, Preparable, Session, ToolResult, diff
from trajsmith.records import (
    CallEvent,
    CheckOutcome,
    EnvironmentSpec,
    GoldCall,
    JsonObject,
    Message,
    Persona,
    RecordDropped,
    Task,
    TraceCall,
    TraceDialogue,
    Trajectory,
    Turn,
    TurnSpan,
    Verdict,
    content_hash,
)
from trajsmith.verify.checks import derive_checks
from trajsmith.verify.code_checks import CodeCheckRunner
from trajsmith.verify.settings import VerifySettings
from trajsmith.verify.verdicts import verify_trajectory

IMPORTED = "imported"
"""Variant of tasks that come from outside."""
DIFFERING = "recorded results differ"
NO_GOLD = "no gold actions"
"""Reasons of rejection."""
_AFTER_SERVER = re.compile(r"(?<=__)|(?<=\.)")
"""Where a tool's name may begin after that of its server: `mcp__bank__get_account`, `bank.get_account`."""


def find_tool_name(spec: EnvironmentSpec, name: str) -> str:
    """Return the environment's name of a recorded tool: its longest end, after `__` or `.`, that is a tool."""
    known = {tool.name for tool in spec.tools}
    ends = (name, *(name[match.start() :] for match in _AFTER_SERVER.finditer(name)))
    return next((end for end in ends if end in known), name)


async def build_initial_state(outside: TraceDialogue, state: JsonObject, session: Session) -> JsonObject:
    """The state before the dialogue: the environment's, after what the task does first."""
    await session.reset(state)
    actions = [
        InitialAction(tool=find_tool_name(session.spec, call.tool), arguments=call.arguments, actor=call.actor)
        for call in (outside.task.start if outside.task else ())
    ]
    refused = await _prepared(session, actions) if actions else None
    if refused is not None:
        raise RecordDropped("start_refused", refused[:200])
    return await session.snapshot()


async def _prepared(session: Session, actions: Sequence[InitialAction]) -> str | None:
    """Why an initial action was refused, or None; where the environment has only tools, each of them is a call."""
    if isinstance(session, Preparable):
        return await session.prepare(actions)
    for action in actions:
        result = await session.call(action["tool"], action["arguments"], action["actor"])
        if not result.ok:
            return f"{action['tool']}: {result.text}"
    return None


async def build_task(outside: TraceDialogue, state: JsonObject, session: Session) -> Task:
    """The task of a recorded dialogue. Its gold calls are made; those that are refused change nothing and are left out.

    Args:
        state: State before the dialogue, from `initial_state`.

    Raises:
        EnvironmentFault: The environment broke.
    """
    spec, recorded_task = session.spec, outside.task
    gold, after = await _run_gold_calls(recorded_task.gold if recorded_task else None, state, session)
    asked = next(message.content for message in outside.messages if message.role == "user")
    facts = recorded_task.facts if recorded_task else ()
    policy = next((message.content for message in outside.messages if message.role == "system"), spec.policy)
    turn = Turn(
        intent=(recorded_task.scenario if recorded_task else asked)[:400],
        query=asked,
        known=(),
        gold_calls=tuple(gold),
        checks=() if after is None else derive_checks(state, state, after, facts, 0),
        state_hash="" if after is None else await session.state_hash(),
        answer_facts=facts,
    )
    return Task(
        grounded_id=outside.id,
        environments=(spec.name,),
        initial_state=content_hash(state),
        persona=Persona(name="", role="user", style=""),
        scenario=recorded_task.scenario if recorded_task else "",
        policy=policy,
        exposed_tools=tuple(tool.name for tool in spec.tools if tool.actor == "assistant"),
        user_tools=tuple(tool.name for tool in spec.tools if tool.actor == "user"),
        mode="conversation",
        variant=IMPORTED,
        difficulty=0.0,
        language=outside.models.get("user", IMPORTED),
        turns=(turn,),
        seed=0,
    )


async def _run_gold_calls(
    calls: Sequence[TraceCall] | None, state: JsonObject, session: Session
) -> tuple[list[GoldCall], JsonObject | None]:
    """The gold calls that succeed, and the state after them; None if nobody said what is right."""
    if calls is None:
        return [], None
    await session.reset(state)
    gold_calls, before = [], await session.state_hash()
    for call in calls:
        name = find_tool_name(session.spec, call.tool)
        result = await session.call(name, call.arguments, call.actor)
        if not result.ok:
            continue
        after = await session.state_hash()
        gold_calls.append(
            GoldCall(
                tool=name,
                actor=call.actor,
                arguments=call.arguments,
                provenance={},
                effect="read" if after == before else "write",
                result=result.content,
            )
        )
        before = after
    return gold_calls, await session.snapshot()


async def replay_dialogue(outside: TraceDialogue, task: Task, state: JsonObject, session: Session) -> Trajectory:
    """The dialogue with its calls made for real; what the tools say is what they say here.

    Raises:
        EnvironmentFault: The environment broke.
    """
    await session.reset(state)
    play = _Replay(session, await session.snapshot())
    initial = await session.state_hash()
    waiting = list(outside.calls)
    for number, message in enumerate(outside.messages):
        play.messages.append(message)
        while waiting and waiting[0].message == number:
            await play.call(waiting.pop(0))
    final = await session.state_hash()
    start = next(at for at, message in enumerate(play.messages) if message.role == "user")
    return Trajectory(
        task_id=task.id,
        environment=session.spec.name,
        candidate=0,
        messages=tuple(play.messages),
        tools=task.exposed_tools,
        events=tuple(play.events),
        turns=(TurnSpan(start=start, stop=len(play.messages), state_hash=final),),
        initial_state=initial,
        final_state=final,
        diff=tuple(diff(state, play.before)),
        models=outside.models or {"agent": IMPORTED, "user": IMPORTED},
        stop_reason="user_stop",
        recorded={"file": outside.file, "dialogue": outside.dialogue, **outside.recorded},
    )


class _Replay:
    """Messages and calls so far."""

    def __init__(self, session: Session, state: JsonObject) -> None:
        self.session = session
        self.before = state
        self.messages: list[Message] = []
        self.events: list[CallEvent] = []

    async def call(self, call: TraceCall) -> None:
        tool = find_tool_name(self.session.spec, call.tool)
        where = max(at for at, message in enumerate(self.messages) if message.role != "tool")
        hashed = await self.session.state_hash()
        result = await self.session.call(tool, call.arguments, call.actor)
        effect: Any = None
        if await self.session.state_hash() != hashed:
            after = await self.session.snapshot()
            effect, self.before = diff(self.before, after), after
        if call.actor == "assistant":
            self.messages.append(Message(role="tool", content=result.text, tool_call_id=call.id, name=call.tool))
        self.events.append(
            CallEvent(
                actor=call.actor,
                tool=tool,
                arguments=call.arguments,
                ok=result.ok,
                error=result.error,
                result_hash=result.hash,
                message=where,
                effect=effect,
                agrees=is_result_equal(call, result),
            )
        )


def is_result_equal(call: TraceCall, result: ToolResult) -> bool | None:
    """Return True if a recording matches a result: both refused, or equal data but for nulls and spelling."""
    if call.output is None:
        return None
    if call.failed or not result.ok:
        return call.failed and not result.ok
    shown = _parse_data(call.output)
    content = result.content
    alone = content["result"] if isinstance(content, dict) and set(content) == {"result"} else content
    return shown in (_normalize_data(content), _normalize_data(alone), _parse_data(result.text)) or (
        isinstance(alone, str) and _parse_data(alone) == shown
    )


def _parse_data(text: str) -> Any:
    try:
        return _normalize_data(orjson.loads(text))
    except orjson.JSONDecodeError:
        return text.strip()


def _normalize_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _normalize_data(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_normalize_data(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def verify_dialogue(
    task: Task,
    trajectory: Trajectory,
    state: JsonObject,
    session: Session,
    settings: VerifySettings | None = None,
    code: CodeCheckRunner | None = None,
) -> Verdict:
    """Verify an imported trajectory.

    Where the recording shows other results than the environment gives, the agent spoke about something else: such a
    trajectory is judged, and never accepted. Without gold calls the outcome is `undecided`, and the settings say
    whether that is accepted.
    """
    settings = settings or VerifySettings()
    settings = settings.model_copy(update={"confirmation": settings.imported.confirmation})
    if not task.turns[-1].state_hash:
        return await _verify_without_gold(task, trajectory, state, session, settings, code)
    verdict = await verify_trajectory(task, trajectory, state, session, settings, code)
    check = _same_results(trajectory)
    reasons = (*verdict.reasons, *([] if check.passed else [DIFFERING]))
    return _update_verdict(verdict, (*verdict.checks, check), verdict.accepted and check.passed is True, reasons)


def _same_results(trajectory: Trajectory) -> CheckOutcome:
    differing = sorted({event.tool for event in trajectory.events if event.agrees is False})
    says = "the tools give what the recording shows"
    return CheckOutcome(says=says, kind="recorded", passed=not differing, detail=", ".join(differing))


async def _verify_without_gold(
    task: Task,
    trajectory: Trajectory,
    state: JsonObject,
    session: Session,
    settings: VerifySettings,
    code: CodeCheckRunner | None,
) -> Verdict:
    """Judge a trajectory of which nobody said what is right: no state match, and no rewards."""
    closed = task.turns[-1].model_copy(update={"state_hash": trajectory.final_state})
    whole = task.model_copy(update={"turns": (closed,)})
    verdict = await verify_trajectory(whole, trajectory, state, session, settings, code)
    if verdict.outcome == "environment_error":
        return verdict
    undecided = verdict.model_copy(update={"outcome": "undecided", "state_match": None, "rewards": {}})
    if settings.imported.without_gold == "reject":
        return _update_verdict(undecided, verdict.checks, False, (NO_GOLD,))
    checks = [_same_results(trajectory)]
    reasons = [] if checks[0].passed else [DIFFERING]
    if settings.imported.without_gold == "reward":
        checks.append(_reward_check(trajectory, settings.imported.min_reward))
        reasons += [] if checks[1].passed else ["recorded reward missing or too low"]
    return _update_verdict(undecided, (*verdict.checks, *checks), not reasons, tuple(reasons))


def _reward_check(trajectory: Trajectory, least: float) -> CheckOutcome:
    reward = (trajectory.recorded or {}).get("reward")
    says = f"the recorded reward is at least {least:g}"
    if not isinstance(reward, int | float):
        return CheckOutcome(says=says, kind="recorded", passed=False, detail="no recorded reward")
    return CheckOutcome(says=says, kind="recorded", passed=reward >= least, detail=f"recorded reward {reward:g}")


def _update_verdict(
    verdict: Verdict, checks: tuple[CheckOutcome, ...], accepted: bool, reasons: tuple[str, ...]
) -> Verdict:
    content = verdict.model_dump(exclude={"id"})
    return Verdict(**{**content, "checks": checks, "accepted": accepted, "reasons": reasons})
