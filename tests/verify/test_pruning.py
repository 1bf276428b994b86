"""Pruning by replay: what was not needed goes, what was needed stays, and the rest reads on and replays."""

import random
from typing import Any

import desk
import pytest

from trajsmith.export import build_row
from trajsmith.records import JsonObject, Task, Trajectory, Verdict
from trajsmith.verify import prune_trajectory, replay_trajectory, verify_trajectory
from trajsmith.verify.selection import NOT_THE_BEST, select_best

Lines = list[list[desk.Said]]


async def judge(lines: Lines, candidate: int = 0) -> tuple[Task, Trajectory, Verdict]:
    task = await desk.make_task()
    trajectory = await desk.played(task, lines, candidate)
    return task, trajectory, await verify_trajectory(task, trajectory, desk.STATE, desk.session())


def texts(trajectory: Trajectory) -> list[str]:
    return [message.content for message in trajectory.messages if message.role == "assistant" and message.content]


def check_shape(trajectory: Trajectory) -> None:
    """Every call has its result right after it, events and turns point where they should."""
    waiting: list[str] = []
    made: list[tuple[str, JsonObject]] = []
    for message in trajectory.messages:
        if message.role == "tool":
            assert waiting.pop(0) == message.tool_call_id
            continue
        assert waiting == []
        waiting = [call.id for call in message.tool_calls or ()]
        made += [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    assert [(event.tool, event.arguments) for event in trajectory.events] == made
    assert all(trajectory.messages[event.message].tool_calls for event in trajectory.events)
    assert [trajectory.messages[span.start].content for span in trajectory.turns] == ["request 0", "request 1"]
    assert trajectory.turns[-1].stop == len(trajectory.messages)
    assert trajectory.id == trajectory.content_id()


REDUNDANT: list[tuple[str, JsonObject]] = [
    ("list_notes", {}),
    ("list_notes", {"limit": 3}),
    ("count_notes", {}),
    ("paint", {"note_id": "N1", "color": "red"}),
    ("archive", {"note_id": "N77"}),
    ("nothing", {}),
    ("paint", {"note_id": "N1"}),
]


@pytest.mark.parametrize("extra", REDUNDANT, ids=lambda call: f"{call[0]}-{len(call[1])}")
@pytest.mark.parametrize("where", [0, 2, 4])
async def test_a_call_too_many_goes(extra: tuple[str, JsonObject], where: int) -> None:
    lines = desk.gold_lines()
    lines[0].insert(where, ("Let me look at that, too.", [extra]))
    _, trajectory, verdict = await judge(lines)
    assert verdict.accepted, verdict.reasons
    assert [(call.tool, call.arguments) for call in verdict.pruned] == [extra]
    shorter = prune_trajectory(trajectory, verdict.pruned)
    check_shape(shorter)
    assert len(shorter.messages) == len(trajectory.messages) - 2
    assert "Let me look at that, too." not in texts(shorter)
    again = await replay_trajectory(shorter, desk.STATE, desk.session())
    assert (again.mismatches, again.final) == ([], trajectory.final_state)


@pytest.mark.parametrize("seed", range(8))
async def test_injected_calls_all_go_and_no_other(seed: int) -> None:
    rng = random.Random(seed)
    lines = desk.gold_lines()
    extra = [rng.choice(REDUNDANT[:5]) for _ in range(4)]
    for call in extra:
        turn = rng.choice(lines)
        turn.insert(rng.randrange(len(turn)), ("", [call]))
    _, trajectory, verdict = await judge(lines)
    made = [(call.tool, call.arguments) for call in verdict.pruned]
    assert len(trajectory.events) - len(made) == 8
    assert sorted(map(str, made)) == sorted(map(str, extra))
    check_shape(prune_trajectory(trajectory, verdict.pruned))


async def test_what_gold_does_is_never_taken_out() -> None:
    _, trajectory, verdict = await judge(desk.gold_lines())
    assert verdict.pruned == ()
    assert prune_trajectory(trajectory, verdict.pruned) is trajectory


@pytest.mark.parametrize(
    ("said", "call"),
    [
        pytest.param("There are 5 notes already. There is trip now, N4.", ("count_notes", {}), id="answer-tells-it"),
    ],
)
async def test_a_result_that_the_answer_tells_stays(said: str, call: tuple[str, JsonObject]) -> None:
    lines = desk.gold_lines((said, "There are 6 notes."))
    lines[0].insert(5, ("", [call]))
    _, _, verdict = await judge(lines)
    assert (verdict.accepted, verdict.pruned) == (True, ())


async def test_a_write_whose_effect_is_left_stays() -> None:
    lines = desk.gold_lines()
    lines[0].insert(1, ("", [("paint", {"note_id": "N3", "color": "blue"})]))
    lines[0].insert(2, ("", [("paint", {"note_id": "N3", "color": "red"})]))
    _, _, verdict = await judge(lines)
    assert verdict.accepted
    assert [call.arguments["color"] for call in verdict.pruned] in ([], ["blue", "red"])


async def test_a_call_that_the_user_was_asked_about_stays() -> None:
    lines = desk.gold_lines()
    lines[0][0:0] = [("Shall I count them?", []), ("", [("count_notes", {})])]
    _, _, verdict = await judge(lines)
    assert (verdict.accepted, verdict.pruned) == (True, ())


async def test_of_calls_made_together_only_the_needed_stay() -> None:
    lines = desk.gold_lines()
    lines[0][0] = ("I list and count them.", [("count_notes", {}), ("list_notes", {"limit": 10})])
    _, trajectory, verdict = await judge(lines)
    assert [call.tool for call in verdict.pruned] == ["count_notes"]
    shorter = prune_trajectory(trajectory, verdict.pruned)
    check_shape(shorter)
    assert "I list and count them." not in texts(shorter)
    assert len(shorter.messages) == len(trajectory.messages) - 1


async def test_words_that_go_on_from_what_is_gone_go_too() -> None:
    lines = desk.gold_lines()
    lines[0][0] = ("Next, I'll list them.", lines[0][0][1])
    lines[0].insert(0, ("Let me count.", [("count_notes", {})]))
    _, trajectory, verdict = await judge(lines)
    assert texts(prune_trajectory(trajectory, verdict.pruned))[0] == "There is trip now, N4."


async def test_the_row_is_the_pruned_one() -> None:
    lines = desk.gold_lines()
    lines[1].insert(0, ("", [("list_notes", {})]))
    task, trajectory, verdict = await judge(lines)
    row = build_row(task, trajectory, verdict, desk.SPEC)
    assert (row["id"], row["tool_calls"]) == (trajectory.id, 8)
    assert len(row["messages"]) == len(trajectory.messages) - 2


# Best of k


async def test_the_best_candidate_is_kept() -> None:
    long = desk.gold_lines()
    long[0].insert(0, ("", [("paint", {"note_id": "N1"})]))
    wrong = desk.gold_lines(("Done.", "There are 6 notes."))
    made: list[Any] = []
    for number, lines in enumerate((wrong, long, desk.gold_lines(), desk.gold_lines())):
        _, trajectory, verdict = await judge(lines, number)
        made.append((trajectory, verdict))
    found = select_best(made)
    assert [verdict.accepted for verdict in found] == [False, False, True, False]
    assert [verdict.reasons for verdict in found] == [
        ("check failed: answer",), (NOT_THE_BEST,), (), (NOT_THE_BEST,)
    ]  # fmt: skip
    assert [verdict.outcome for verdict in found] == ["partial", "completed", "completed", "completed"]
    assert all(verdict.id == verdict.content_id() for verdict in found)


async def test_one_good_candidate_is_the_best() -> None:
    _, trajectory, verdict = await judge(desk.gold_lines())
    assert select_best([(trajectory, verdict)]) == [verdict]
