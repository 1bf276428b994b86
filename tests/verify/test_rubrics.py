"""Rubrics: criteria derived from a task, decided for plays, compared over candidates; a model's are tested first."""

from collections.abc import Iterator, Sequence
from typing import Any

import desk
import orjson
import pytest

from trajsmith.models import CallableModel, ChatReply, ChatRequest
from trajsmith.models.prompts import load_builtin_prompts
from trajsmith.records import (
    Criterion,
    CriterionOutcome,
    JsonObject,
    Message,
    ModelFault,
    PolicyCheck,
    Task,
    Trajectory,
    UserFact,
    Verdict,
)
from trajsmith.train_grpo.episodes import EpisodeResult
from trajsmith.train_grpo.reward_functions import EpisodeReward
from trajsmith.verify import (
    CheckAuthor,
    RubricJudge,
    WrittenCheckSettings,
    add_written_criteria,
    count_criteria_by_outcome,
    derive_rubric,
    drop_common_criteria,
    find_common_criteria,
    verify_trajectory,
)
from trajsmith.verify.code_checks import CHECK_SANDBOX, CodeCheckRunner
from trajsmith.verify.rewards import REWARDS as REGISTRY
from trajsmith.verify.rewards import RewardEvidence, RewardSettings

REWARDS = RewardSettings(names=("rubric", "rubric_weighted", "checks"))


@pytest.fixture(scope="module")
def code() -> Iterator[CodeCheckRunner]:
    runner = CodeCheckRunner(CHECK_SANDBOX.model_copy(update={"call_seconds": 0.3}))
    yield runner
    runner.close()


async def build_task() -> Task:
    task = await desk.make_task()
    return task.model_copy(update={"rubric": derive_rubric(task, desk.SPEC)})


async def judge_lines(task: Task, lines: Any, code: CodeCheckRunner | None = None) -> tuple[Trajectory, Verdict]:
    trajectory = await desk.played(task, lines)
    return trajectory, await verify_trajectory(task, trajectory, desk.STATE, desk.session(), None, code)


def list_unmet(verdict: Verdict) -> set[str]:
    return {each.about for each in verdict.rubric if each.met is not True}


async def test_every_check_decides_exactly_one_criterion() -> None:
    task = await build_task()
    wanted = {(turn, place) for turn, each in enumerate(task.turns) for place in range(len(each.checks))}
    deciding = [key for criterion in task.rubric for key in criterion.checks]
    assert sorted(deciding) == sorted(wanted)
    topics = [criterion.about for criterion in task.rubric]
    assert {"effect", "untouched", "policy", "answer", "confirmation", "claims", "effort", "format"} <= {*topics}
    assert "notes N2 color is white" in [criterion.says for criterion in task.rubric]
    assert "what was done earlier is still there at the end" in [criterion.says for criterion in task.rubric]


def change(lines: Any, turn: int, place: int, calls: Any) -> Any:
    text, _ = lines[turn][place]
    lines[turn][place] = (text, calls)
    return lines


def repaint(lines: Any) -> Any:
    return change(lines, 0, 2, [("paint", {"note_id": "N2", "color": "grey"})])


def archive_another(lines: Any) -> Any:
    return change(lines, 1, 1, [("archive", {"note_id": "N1"}), ("archive", {"note_id": "N3"})])


def tell_wrongly(lines: Any) -> Any:
    return [lines[0], [*lines[1][:-1], ("There are 7 notes.", [])]]


def break_a_call(lines: Any) -> Any:
    return change(lines, 1, 1, [("archive", {"note": "N1"}), ("archive", {"note_id": "N1"})])


def dawdle(lines: Any) -> Any:
    return change(lines, 1, 2, [("count_notes", {})] * 20)


def look_late(lines: Any) -> Any:
    return [lines[0][1:], lines[1]]


PLAYS = {
    "gold": (lambda lines: lines, set()),
    "other-value": (repaint, {"effect"}),
    "unasked-change": (archive_another, {"untouched"}),
    "wrong-answer": (tell_wrongly, {"answer", "claims"}),
    "broken-call": (break_a_call, {"format"}),
    "many-calls": (dawdle, {"effort"}),
    "rule-broken": (look_late, {"policy"}),
}
"""Name to what is done to the gold run, and the topics whose criteria it does not meet."""


@pytest.mark.parametrize("name", PLAYS)
async def test_a_faulty_play_fails_the_criteria_that_it_is_about(name: str) -> None:
    spoil, unmet = PLAYS[name]
    _, verdict = await judge_lines(await build_task(), spoil(desk.gold_lines()))
    assert list_unmet(verdict) == unmet, [each for each in verdict.rubric if not each.met]


async def test_manners_count_in_the_weighted_reward_only() -> None:
    task = await build_task()
    settings = {name: await judge_lines(task, PLAYS[name][0](desk.gold_lines())) for name in ("broken-call", "gold")}
    judged = drop_common_criteria(task, list(settings.values()), REWARDS)
    assert [verdict.rewards["rubric"] for _, verdict in judged] == [1.0, 1.0]
    assert [verdict.rewards["rubric_weighted"] for _, verdict in judged] == [0.0, 1.0]  # all others are dropped


async def test_a_play_that_ended_early_does_not_meet_what_comes_after() -> None:
    task = await build_task()
    trajectory = await desk.played(task, desk.gold_lines())
    cut = trajectory.model_copy(
        update={
            "turns": trajectory.turns[:1], "stop_reason": "step_limit",
            "messages": trajectory.messages[: trajectory.turns[0].stop],
            "events": tuple(e for e in trajectory.events if e.message < trajectory.turns[0].stop),
            "final_state": trajectory.turns[0].state_hash,
        }
    )  # fmt: skip
    verdict = await verify_trajectory(task, cut, desk.STATE, desk.session())
    late = [each for each in verdict.rubric if each.detail == "the play ended before"]
    assert late and all(each.met is False for each in late)
    assert verdict.rewards["rubric"] == 0.0


async def test_what_a_request_leaves_out_is_asked_for() -> None:
    fact = UserFact(key="c", label="color", value="purple", said="purple", stated=False)
    task = await desk.make_task()
    turn = task.turns[1].model_copy(update={"known": (fact,)})
    task = task.model_copy(update={"turns": (task.turns[0], turn)})
    task = task.model_copy(update={"rubric": derive_rubric(task, desk.SPEC)})
    trajectory, verdict = await judge_lines(task, desk.gold_lines())
    assert [each.detail for each in verdict.rubric if each.about == "question"] == ["color"]
    place = trajectory.turns[1].start
    said = trajectory.messages[place].model_copy(update={"content": "request 1. It is purple."})
    messages = (*trajectory.messages[:place], said, *trajectory.messages[place + 1 :])
    told = trajectory.model_copy(update={"messages": messages})
    verdict = await verify_trajectory(task, told, desk.STATE, desk.session())
    assert [each.met for each in verdict.rubric if each.about == "question"] == [True]


@pytest.mark.parametrize(
    ("plays", "common"),
    [
        ([[True, False, None]], {}),
        ([[True, False], [True, False]], {0: "met_by_all", 1: "met_by_none"}),
        ([[True, False], [False, False], [True, False]], {1: "met_by_none"}),
        ([[True, False], [True, False], [None, None]], {}),  # an undecided play may differ
        ([[True], [True], []], {0: "met_by_all"}),  # a play without outcomes says nothing
        ([[True], [None]], {}),
        ([], {}),
    ],
)
def test_criteria_that_do_not_tell_plays_apart(plays: Sequence[Sequence[bool | None]], common: Any) -> None:
    assert find_common_criteria(plays) == common


def test_criteria_are_counted_by_what_the_plays_say() -> None:
    plays = [[True, True, False, True, None], [True, False, False, None, True], [True, None, False, True, None]]
    counts = {"met_by_all": 1, "discriminating": 1, "met_by_none": 1, "undecided": 1}
    assert count_criteria_by_outcome(plays) == counts


async def test_criteria_that_all_or_no_candidates_meet_are_dropped() -> None:
    task = await build_task()
    judged = [await judge_lines(task, PLAYS[name][0](desk.gold_lines())) for name in ("gold", "other-value")]
    compared = drop_common_criteria(task, judged, REWARDS)
    for _, verdict in compared:
        assert [each.about for each in verdict.rubric if each.counts] == ["effect", "effect"]  # of both turns
        assert {each.left_out for each in verdict.rubric if not each.counts} == {"met_by_all"}
        assert verdict.id == verdict.content_id()
    assert [verdict.rewards["rubric_weighted"] for _, verdict in compared] == [1.0, 0.0]
    alone = drop_common_criteria(task, judged[:1], REWARDS)
    assert alone == judged[:1]
    equal = drop_common_criteria(task, [judged[0], judged[0]], REWARDS)
    assert all(each.counts for _, verdict in equal for each in verdict.rubric)  # nothing would be left


async def test_every_reward_that_reads_criteria_follows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for registered in ("_things", "_modules", "_loaded"):
        monkeypatch.setattr(REGISTRY, registered, dict(getattr(REGISTRY, registered)))

    @REGISTRY.register("share_met")
    def share_met(evidence: RewardEvidence, settings: RewardSettings) -> float | None:
        counted = [each for each in evidence.criteria if each.counts]
        return sum(bool(each.met) for each in counted) / len(counted)

    task = await build_task()
    played = [(await judge_lines(task, PLAYS[name][0](desk.gold_lines()))) for name in ("gold", "other-value")]
    compared = drop_common_criteria(task, played, RewardSettings(names=("share_met",)))
    assert [verdict.rewards for _, verdict in compared] == [{"share_met": 1.0}, {"share_met": 0.0}]
    reward = EpisodeReward("share_met", lambda: None)  # type: ignore[arg-type, return-value]
    episodes = [EpisodeResult(task, play, verdict, 0.0) for play, verdict in played]
    assert reward([[], []], episodes=episodes) == [1.0, 0.0]


async def test_nothing_that_all_get_wrong_is_called_right() -> None:
    """Two wrong plays of different worth: what both fail is dropped, and yet none of them gets the whole reward."""
    task = await build_task()
    worse = tell_wrongly(repaint(desk.gold_lines()))
    judged = [await judge_lines(task, lines) for lines in (repaint(desk.gold_lines()), worse)]
    better, worst = [verdict for _, verdict in drop_common_criteria(task, judged, REWARDS)]
    assert "met_by_none" in {each.left_out for each in better.rubric}
    assert (better.rewards["rubric"], worst.rewards["rubric"]) == (0.0, 0.0)
    assert better.rewards["rubric_weighted"] == 1.0 > worst.rewards["rubric_weighted"]


def write(body: str) -> str:
    return f"def check(initial, final, answer):\n    {body}\n"


FUNCTIONS = {
    "N1 is archived": write("return final['notes']['N1']['archived']"),
    "all is well": write("return True"),
    "N1 is not archived": write("return not final['notes']['N1']['archived']"),
}
PROPOSED: list[JsonObject] = [
    {"says": "N1 is archived", "weight": 4, "by": "data", "rule": None},
    {"says": "all is well", "weight": 1, "by": "data", "rule": None},
    {"says": "N1 is not archived", "weight": 1, "by": "data", "rule": None},
    {"says": "N1  is archived", "weight": 1, "by": "data", "rule": None},
    {"says": "listed first", "weight": 2, "by": "calls",
     "rule": {"tools": ["archive"], "after": ["list_notes"], "same": []}},
    {"says": "unlisted", "weight": 2, "by": "calls",
     "rule": {"tools": ["unarchive"], "after": ["list_notes"], "same": []}},
    {"says": "counted first", "weight": 2, "by": "calls",
     "rule": {"tools": ["archive"], "after": ["count_notes"], "same": []}},
    {"says": "painted alike", "weight": 2, "by": "calls",
     "rule": {"tools": ["paint"], "after": [], "same": ["note_id"]}},
    {"says": "paged first", "weight": 2, "by": "calls", "rule": {"tools": ["archive"], "after": ["page"], "same": []}},
    {"says": "the agent is friendly", "weight": 1, "by": "judge", "rule": None},
    {"says": "the agent sings", "weight": 1, "by": "judge", "rule": None},
    {"says": "the agent answers", "weight": 1, "by": "judge", "rule": None},
]  # fmt: skip
DROPPED = {
    "all is well": "catches_nothing",
    "N1 is not archived": "fails_gold",
    "unlisted": "catches_nothing",
    "counted first": "fails_gold",
    "paged first": "unknown_tool",
    "the agent sings": "fails_gold",
    "the agent answers": "catches_nothing",
}


async def answer(request: ChatRequest) -> ChatReply:
    """Propose criteria and write functions; as judge, find singing nowhere and friendliness where work is done."""
    last = request.messages[-1].content
    reply: Any
    if request.purpose == "rubric":
        reply = {"criteria": PROPOSED}
    elif request.purpose == "rubric_judge":
        criteria = last.partition("Criteria:\n")[2].strip().splitlines()
        worked = "assistant_calls" in last
        reply = {
            "reasoning": "So.",
            "met": [worked if "friendly" in line else "sings" not in line for line in criteria],
        }
    else:
        says = last.partition("Condition: ")[2].splitlines()[0]
        reply = {"source": FUNCTIONS[says]}
    return ChatReply(message=Message(role="assistant", content=orjson.dumps(reply).decode()))


async def write_rubric(code: CodeCheckRunner, with_judge: bool) -> Task:
    model, prompts = CallableModel("m", answer), load_builtin_prompts()
    author = CheckAuthor(model, desk.SPEC, prompts, code, WrittenCheckSettings(mutants=6, equivalents=2, repairs=1))
    judge = RubricJudge(model, desk.SPEC, prompts) if with_judge else None
    return await add_written_criteria(await build_task(), author, judge, 20, desk.STATE, desk.session())


def list_written(task: Task) -> list[Criterion]:
    return [criterion for criterion in task.rubric if criterion.author]


async def test_criteria_of_a_model_are_kept_or_dropped_with_a_reason(code: CodeCheckRunner) -> None:
    task = await write_rubric(code, True)
    assert [criterion.says for criterion in list_written(task)] == [
        "N1 is archived", "listed first", "painted alike", "the agent is friendly"
    ]  # fmt: skip
    assert {text.split(": ")[0]: text.split(": ")[1] for text in task.rubric_dropped} == DROPPED
    assert [(each.weight, each.author, each.about) for each in list_written(task)][::3] == [
        (4.0, "m", "written"), (1.0, "m", "judged")
    ]  # fmt: skip
    assert isinstance(list_written(task)[1].check, PolicyCheck)
    assert task.id == task.content_id()
    assert {"verify/rubric", "verify/check_function", "verify/rubric_judge"} <= task.prompts.keys()


async def test_written_criteria_are_decided_by_execution(code: CodeCheckRunner) -> None:
    task = await write_rubric(code, False)
    kept = [criterion.says for criterion in list_written(task)]
    assert kept[-3:] == ["the agent is friendly", "the agent sings", "the agent answers"]  # nobody can test them
    lines = change(look_late(desk.gold_lines()), 1, 1, [("count_notes", {})])
    for play, met in ((desk.gold_lines(), [True, True, True]), (lines, [False, True, True])):
        _, verdict = await judge_lines(task, play, code)
        assert [each.met for each in verdict.rubric if each.about == "written"] == met
    _, verdict = await judge_lines(task, look_late(desk.gold_lines()), code)
    assert [each.met for each in verdict.rubric if each.about == "written"] == [True, False, True]


async def test_a_criterion_that_needs_a_judge_does_not_count_without_one(code: CodeCheckRunner) -> None:
    task = await write_rubric(code, True)
    _, verdict = await judge_lines(task, desk.gold_lines(), code)
    waiting = [each for each in verdict.rubric if each.about == "judged"]
    assert [(each.met, each.left_out, each.detail) for each in waiting] == [
        (None, "no_judge", "needs a judge, and there is none")
    ]  # fmt: skip
    assert verdict.rewards["rubric"] == 1.0


@pytest.mark.parametrize(("met", "reward"), [(True, 1.0), (False, 0.0), (None, None)])
async def test_a_judge_decides_what_execution_cannot(code: CodeCheckRunner, met: bool | None, reward: Any) -> None:
    async def rule(request: ChatRequest) -> ChatReply:
        assert "1. the agent is friendly" in request.messages[-1].content
        assert "N1 is archived" not in request.messages[-1].content
        if met is None:
            raise ModelFault("timeout", "m", "late")
        content = orjson.dumps({"reasoning": "So.", "met": [met]}).decode()
        return ChatReply(message=Message(role="assistant", content=content))

    task = await write_rubric(code, True)
    trajectory, verdict = await judge_lines(task, desk.gold_lines(), code)
    judge = RubricJudge(CallableModel("m", rule), desk.SPEC, load_builtin_prompts())
    reviewed = await judge.review(task, trajectory, verdict, RewardSettings())
    (judged,) = [each for each in reviewed.rubric if each.about == "judged"]
    assert (judged.met, judged.left_out) == (met, "")
    assert reviewed.rewards.get("rubric") == reward
    assert reviewed.rewards["checks"] == 1.0 and reviewed.accepted
    assert reviewed.id == reviewed.content_id()


def test_outcomes_of_criteria_are_part_of_the_verdict() -> None:
    outcome = CriterionOutcome(says="x", about="effect", met=True)
    assert outcome.counts and not outcome.model_copy(update={"left_out": "no_judge"}).counts
