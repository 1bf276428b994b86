"""Verdicts by running again: what was really done decides; a broken environment is nobody's failure."""

from datetime import datetime
from typing import Any

import pytest

from trajsmith.environments import Environment, EnvironmentState, NativeSession, ToolError, diff, tool
from trajsmith.records import (
    CallEvent,
    CodeCheck,
    FromUser,
    GoldCall,
    JsonObject,
    Message,
    Persona,
    Task,
    Trajectory,
    Turn,
    TurnSpan,
    Verdict,
)
from trajsmith.verify import derive_checks, replay_trajectory, verify_trajectory
from trajsmith.verify.fault_attribution import find_script_faults

Step = tuple[str, JsonObject]


class LampState(EnvironmentState):
    lamps: dict[str, bool] = {}


class Lamps(Environment[LampState]):
    """Lamps that can be switched."""

    broken = False

    @tool(effect="read")
    def count_lit(self) -> int:
        """How many lamps are lit."""
        if Lamps.broken:
            raise OSError("the meter is gone")
        return sum(self.state.lamps.values())

    @tool(effect="write")
    def switch(self, lamp_id: str) -> bool:
        """Switch a lamp.

        Args:
            lamp_id: Which lamp.
        """
        if lamp_id not in self.state.lamps:
            raise ToolError(f"lamp not found: {lamp_id}")
        self.state.lamps[lamp_id] = not self.state.lamps[lamp_id]
        return self.state.lamps[lamp_id]


STATE = LampState(now=datetime(2026, 3, 2), lamps={"hall": False, "attic": True}).model_dump(mode="json")
SWITCH: Step = ("switch", {"lamp_id": "hall"})
COUNT: Step = ("count_lit", {})
GOOD = [([SWITCH], "The hall is lit now."), ([COUNT], "There are 2 lamps lit.")]


def session() -> NativeSession:
    return NativeSession(Lamps, Lamps.describe())


@pytest.fixture(autouse=True)
def mended() -> Any:
    Lamps.broken = False
    yield
    Lamps.broken = False


def gold(step: Step, result: Any) -> GoldCall:
    name, arguments = step
    effect = "write" if name == "switch" else "read"
    provenance = {key: FromUser(known=f"k.{key}") for key in arguments}
    return GoldCall(tool=name, arguments=arguments, provenance=provenance, effect=effect, result=result)  # type: ignore[arg-type]


async def make_task() -> Task:
    """Two turns: switch the lamp in the hall on; ask how many are lit."""
    opened = session()
    await opened.reset(STATE)
    initial = await opened.state_hash()
    await opened.call(*SWITCH)
    lit, after = await opened.snapshot(), await opened.state_hash()
    plans: list[tuple[Step, Any, JsonObject, list[Any]]] = [(SWITCH, True, STATE, []), (COUNT, 2, lit, [2])]
    turns = tuple(
        Turn(
            intent="x",
            query="x",
            known=(),
            gold_calls=(gold(step, {"result": result}),),
            state_hash=after,
            checks=derive_checks(STATE, before, lit, facts, number),
            answer_facts=tuple(facts),
        )
        for number, (step, result, before, facts) in enumerate(plans)
    )
    return Task(
        grounded_id="g",
        environments=("lamps",),
        initial_state=initial,
        persona=Persona(name="Ida", role="user", style="brisk"),
        scenario="",
        policy="",
        exposed_tools=("count_lit", "switch"),
        mode="conversation",
        difficulty=0.1,
        language="scripted",
        turns=turns,
        seed=0,
    )


async def play(task: Task, turns: list[tuple[list[Step], str]], stop: Any = "user_stop") -> Trajectory:
    """What an agent that makes these calls and says these answers leaves behind."""
    opened = session()
    await opened.reset(STATE)
    messages: list[Message] = []
    events: list[CallEvent] = []
    spans: list[TurnSpan] = []
    for steps, answer in turns:
        start = len(messages)
        messages.append(Message(role="user", content="please"))
        for name, arguments in steps:
            result = await opened.call(name, arguments)
            event = CallEvent(
                actor="assistant",
                tool=name,
                arguments=arguments,
                ok=result.ok,
                error=result.error,
                result_hash=result.hash,
                message=len(messages),
            )
            events.append(event)
            messages.append(Message(role="assistant"))
        messages.append(Message(role="assistant", content=answer))
        spans.append(TurnSpan(start=start, stop=len(messages), state_hash=await opened.state_hash()))
    return Trajectory(
        task_id=task.id,
        environment="lamps",
        candidate=0,
        messages=tuple(messages),
        tools=task.exposed_tools,
        events=tuple(events),
        turns=tuple(spans),
        initial_state=task.initial_state,
        final_state=await opened.state_hash(),
        diff=tuple(diff(STATE, await opened.snapshot())),
        models={"agent": "scripted"},
        stop_reason=stop,
    )


async def judge(turns: list[tuple[list[Step], str]], stop: Any = "user_stop") -> Verdict:
    task = await make_task()
    return await verify_trajectory(task, await play(task, turns, stop), STATE, session())


async def test_the_gold_run_is_accepted() -> None:
    verdict = await judge(GOOD)
    assert (verdict.outcome, verdict.accepted, verdict.reasons) == ("completed", True, ())
    assert (verdict.state_match, verdict.replay_match, verdict.trajectory_match) == (True, True, 1.0)
    assert verdict.rewards == {"checks": 1.0, "composite": 1.0, "format_outcome": 1.0, "rubric": 1.0}
    assert [(turn.outcome, turn.state_match) for turn in verdict.turns] == [("completed", True)] * 2
    assert verdict.blame is None


@pytest.mark.parametrize(
    ("turns", "outcome", "reasons"),
    [
        pytest.param(
            [([], "Done."), ([], "Two.")],
            "agent_error",
            ("check failed: answer", "check failed: state", "the final state is not the gold state"),
            id="nothing-done",
        ),
        pytest.param(
            [([SWITCH], "Done."), ([COUNT], "There are 3 lit.")],
            "partial",
            ("check failed: answer",),
            id="wrong-answer",
        ),
        pytest.param(
            [([SWITCH], "2 done."), ([COUNT], "That's it.")],
            "partial",
            ("check failed: answer",),
            id="answer-in-the-wrong-turn",
        ),
        pytest.param(
            [([SWITCH, ("switch", {"lamp_id": "attic"})], "Done."), ([COUNT], "There are 2 lit.")],
            "partial",
            ("check failed: untouched", "the final state is not the gold state"),
            id="extra-write",
        ),
        pytest.param(
            [([("switch", {"lamp_id": "attic"})], "Done."), ([COUNT], "There are 2 lit.")],
            "partial",
            ("check failed: state", "check failed: untouched", "the final state is not the gold state"),
            id="wrong-lamp",
        ),
        pytest.param(
            [([SWITCH], "Done."), ([COUNT, SWITCH], "There are 2 lit.")],
            "partial",
            ("the final state is not the gold state",),
            id="undone-later",
        ),
        pytest.param(
            [([], "Done."), ([SWITCH, COUNT], "There are 2 lit.")], "partial", ("check failed: state",), id="too-late"
        ),
    ],
)
async def test_what_was_not_done_right_is_rejected(turns: Any, outcome: str, reasons: tuple[str, ...]) -> None:
    verdict = await judge(turns)
    assert (verdict.outcome, verdict.accepted, verdict.reasons) == (outcome, False, reasons)
    assert verdict.replay_match is True


async def test_a_detour_is_no_mistake() -> None:
    """A refused call and a read that nobody asked for leave the outcome as it is."""
    turns = [([COUNT, ("switch", {"lamp_id": "cellar"}), SWITCH], "Done."), ([COUNT], "There are 2 lit.")]
    assert (await judge(turns)).accepted


async def test_a_play_that_broke_off_says_so() -> None:
    verdict = await judge(GOOD[:1], "turn_limit")
    assert (verdict.outcome, verdict.state_match) == ("partial", False)
    assert verdict.reasons == ("stopped: turn_limit", "the final state is not the gold state")


# The environment's fault


async def test_a_fault_while_playing_is_not_the_agents() -> None:
    verdict = await judge(GOOD[:1], "environment_fault")
    assert (verdict.outcome, verdict.reasons, verdict.checks) == ("environment_error", ("environment_fault",), ())


async def test_a_fault_while_replaying_is_not_the_agents() -> None:
    task = await make_task()
    trajectory = await play(task, GOOD)
    Lamps.broken = True
    verdict = await verify_trajectory(task, trajectory, STATE, session())
    assert (verdict.outcome, verdict.reasons) == ("environment_error", ("environment_fault:crash",))


def other_event(trajectory: Trajectory, number: int, **changes: Any) -> Trajectory:
    events = list(trajectory.events)
    events[number] = events[number].model_copy(update=changes)
    return trajectory.model_copy(update={"events": tuple(events)})


def other_span(trajectory: Trajectory) -> Trajectory:
    spans = (trajectory.turns[0].model_copy(update={"state_hash": "x"}), trajectory.turns[1])
    return trajectory.model_copy(update={"turns": spans})


@pytest.mark.parametrize(
    ("forge", "mismatch"),
    [
        pytest.param(lambda t: other_event(t, 1, result_hash="x"), "count_lit returns something else", id="result"),
        pytest.param(lambda t: other_event(t, 0, ok=False, error="refused"), "switch is accepted now", id="accepted"),
        pytest.param(lambda t: other_event(t, 0, arguments={"lamp_id": "roof"}), "switch is refused now", id="refused"),
        pytest.param(other_span, "the state after turn 1 differs", id="state"),
        pytest.param(lambda t: t.model_copy(update={"initial_state": "x"}), "the initial state differs", id="initial"),
    ],
)
async def test_replay_sees_what_differs(forge: Any, mismatch: str) -> None:
    task = await make_task()
    forged = forge(await play(task, GOOD))
    assert mismatch in (await replay_trajectory(forged, STATE, session())).mismatches
    verdict = await verify_trajectory(task, forged, STATE, session())
    assert (verdict.outcome, verdict.replay_match, verdict.accepted) == ("environment_error", False, False)
    assert f"replay: {mismatch}" in verdict.reasons


async def test_replay_gives_the_state_after_every_turn() -> None:
    task = await make_task()
    again = await replay_trajectory(await play(task, GOOD), STATE, session())
    assert again.mismatches == []
    assert [state["lamps"]["hall"] for state in again.states] == [True, True]
    assert again.final == task.turns[-1].state_hash


# Whose fault it is


async def test_each_turn_has_a_verdict_of_its_own() -> None:
    verdict = await judge([([], "Done."), ([SWITCH, COUNT], "There are 2 lit.")])
    assert [(turn.outcome, turn.state_match, turn.passed, turn.checks) for turn in verdict.turns] == [
        ("agent_error", False, 1, 2),
        ("completed", True, 2, 2),
    ]
    assert verdict.blame == "agent"


async def test_a_check_that_could_not_tell_is_no_failure() -> None:
    task = await make_task()
    unsure = CodeCheck(says="somebody wrote this", source="def check(i, f, a): return True")
    turns = (task.turns[0].model_copy(update={"checks": (*task.turns[0].checks, unsure)}), task.turns[1])
    task = task.model_copy(update={"turns": turns})
    verdict = await verify_trajectory(task, await play(task, GOOD), STATE, session())
    assert (verdict.outcome, verdict.accepted, verdict.blame) == ("undecided", False, "undecided")
    assert verdict.reasons == ("could not tell: code: needs the sandbox",)
    assert verdict.rewards == {"checks": 1.0}
    wrong = await verify_trajectory(task, await play(task, [([], "Done."), GOOD[1]]), STATE, session())
    assert wrong.blame == "agent"


async def test_a_user_who_leaves_early_is_to_blame() -> None:
    verdict = await judge(GOOD[:1])
    assert (verdict.outcome, verdict.blame) == ("user_error", "user")
    assert verdict.reasons[0] == "user: stopped before the last request"
    assert "rubric" not in verdict.rewards


async def test_a_user_who_calls_what_nobody_planned_is_to_blame() -> None:
    task = await make_task()
    found = await play(task, [([SWITCH, ("switch", {"lamp_id": "attic"})], "Done."), GOOD[1]])
    events = [found.events[0], found.events[1].model_copy(update={"actor": "user"}), found.events[2]]
    assert find_script_faults(task, found.model_copy(update={"events": tuple(events)})) == (
        "user: switch was not to be called",
    )
