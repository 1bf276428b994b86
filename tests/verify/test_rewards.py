"""Rewards: bounds, more for more, equal for equal runs, nothing where nobody can tell."""

import inspect
from typing import Any

import desk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.records import CheckOutcome, CriterionOutcome, InputError, StepLabel
from trajsmith.verify import verify_trajectory
from trajsmith.verify.rewards import REWARDS, RewardEvidence, RewardSettings, compute_rewards

steady = settings(deadline=None, derandomize=True, max_examples=100)
SETTINGS = RewardSettings()
NAMES = ("checks", "composite", "format_outcome", "rubric", "rubric_weighted", "state", "steps", "trajectory")

OUTCOMES = st.sampled_from(["completed", "partial", "agent_error", "environment_error", "user_error", "undecided"])
PASSED = st.lists(st.sampled_from([True, False, None]), max_size=6)
ERRORS = st.lists(st.sampled_from([None, "refused", "unknown_tool", "invalid_arguments"]), max_size=5)


def outcomes(passed: list[bool | None]) -> list[CheckOutcome]:
    return [CheckOutcome(says=str(n), kind="state", passed=value) for n, value in enumerate(passed)]


@st.composite
def evidence(draw: Any) -> RewardEvidence:
    return RewardEvidence(
        outcome=draw(OUTCOMES),
        checks=outcomes(draw(PASSED)),
        state_match=draw(st.sampled_from([True, False, None])),
        trajectory_match=draw(st.floats(0, 1)),
        gold_calls=draw(st.integers(0, 10)),
        calls=draw(st.integers(0, 30)),
        errors=draw(ERRORS),
    )


def test_the_rewards_by_name() -> None:
    built_in = tuple(source.name for source in REWARDS.sources() if source.distribution == "trajsmith")
    assert built_in == NAMES
    with pytest.raises(InputError, match=r"no reward named 'gold'; there are: .*checks, composite"):
        REWARDS.get("gold")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "steps"])  # which is of no paper
def test_each_says_where_it_is_from(name: str) -> None:
    assert any(paper in str(inspect.getdoc(REWARDS.get(name))) for paper in ("Env", "Agent"))


@steady
@given(evidence(), st.floats(0, 1), st.floats(0, 2))
def test_bounds(found: RewardEvidence, alpha: float, gamma: float) -> None:
    settings = RewardSettings(alpha=alpha, gamma=gamma)
    low = {**dict.fromkeys(NAMES, 0.0), "composite": -gamma, "format_outcome": -1.0}
    for name in NAMES:
        value = REWARDS.get(name)(found, settings)
        assert value is None or low[name] - 1e-9 <= value <= 1 + 1e-9


@steady
@given(evidence(), st.integers(0, 5))
def test_a_check_more_is_never_less(found: RewardEvidence, number: int) -> None:
    if number < len(found.checks):
        better = [True if n == number else check.passed for n, check in enumerate(found.checks)]
        after = RewardEvidence(**{**vars(found), "checks": outcomes(better)})
        for name in ("checks", "rubric", "rubric_weighted"):
            one, other = (REWARDS.get(name)(each, SETTINGS) for each in (found, after))
            if one is not None and other is not None and found.checks[number].passed is not None:
                assert other >= one


@steady
@given(evidence())
def test_a_broken_environment_is_never_a_zero(found: RewardEvidence) -> None:
    broken = RewardEvidence(**{**vars(found), "outcome": "environment_error", "errors": []})
    assert compute_rewards(broken, SETTINGS) == {}


def plain(**changes: Any) -> RewardEvidence:
    fields = {"outcome": "completed", "checks": outcomes([True, True]), "state_match": True, "trajectory_match": 1.0,
              "gold_calls": 4, "calls": 4, "errors": [None] * 4}  # fmt: skip
    return RewardEvidence(**{**fields, **changes})


def left_out(met: bool | None, why: Any, **more: Any) -> CriterionOutcome:
    return CriterionOutcome(**{"says": "it", "about": "effect", "met": met, "left_out": why, **more})


def criteria(*given: CriterionOutcome | bool | None) -> list[CriterionOutcome]:
    return [each if isinstance(each, CriterionOutcome) else left_out(each, "") for each in given]


def labels(*names: Any) -> list[StepLabel]:
    return [StepLabel(event=event, label=name, why="") for event, name in enumerate(names)]


@pytest.mark.parametrize(
    ("name", "changes", "value"),
    [
        ("composite", {}, 1.0),
        ("composite", {"state_match": False}, 0.5),
        ("composite", {"trajectory_match": 0.5}, 0.75),
        ("composite", {"calls": 6}, 0.95),
        ("composite", {"calls": 40}, 0.9),
        ("composite", {"calls": 2}, 1.0),
        ("composite", {"state_match": None}, None),
        ("format_outcome", {}, 1.0),
        ("format_outcome", {"outcome": "partial"}, 0.1),
        ("format_outcome", {"outcome": "agent_error"}, 0.0),
        ("format_outcome", {"errors": [None, "unknown_tool"]}, -1.0),
        ("format_outcome", {"errors": ["refused"]}, 1.0),
        ("checks", {"checks": outcomes([True, False, None])}, 0.5),
        ("checks", {"checks": outcomes([None])}, None),
        ("checks", {"checks": []}, None),
        ("rubric", {}, 1.0),
        ("rubric", {"checks": outcomes([True, False])}, 0.0),
        ("rubric", {"checks": outcomes([True, None])}, None),
        ("rubric", {"checks": outcomes([False, None])}, 0.0),
        ("rubric", {"criteria": criteria(True, True)}, 1.0),
        ("rubric", {"criteria": criteria(True, False)}, 0.0),
        ("rubric", {"criteria": criteria(True, None)}, None),
        ("rubric", {"criteria": criteria(True, left_out(None, "no_judge"))}, 1.0),
        ("rubric", {"criteria": criteria(left_out(None, "no_judge"))}, None),
        ("rubric", {"criteria": criteria(True, left_out(False, "met_by_none"))}, 0.0),
        ("rubric", {"criteria": criteria(True, left_out(False, "met_by_none", about="judged"))}, 1.0),
        ("rubric", {"criteria": criteria(True, left_out(False, "", required=False))}, 1.0),
        ("rubric", {"criteria": criteria(True), "outcome": "user_error"}, None),
        ("rubric_weighted", {"criteria": criteria(left_out(True, "", weight=3.0), False)}, 0.75),
        ("rubric_weighted", {"criteria": criteria(True, None, False)}, 0.5),
        ("rubric_weighted", {"criteria": criteria(True, left_out(False, "met_by_none"))}, 1.0),
        ("rubric_weighted", {"criteria": criteria(True, left_out(False, "", required=False))}, 0.5),
        ("rubric_weighted", {"criteria": criteria(left_out(None, "no_judge"))}, None),
        ("rubric_weighted", {}, 1.0),
        ("state", {"state_match": None}, 0.0),
        ("state", {"outcome": "user_error"}, None),
        ("steps", {}, None),
        ("steps", {"step_labels": ()}, 1.0),
        ("steps", {"step_labels": labels("needed", "harmful", "recovering", "redundant")}, 0.5),
        ("steps", {"step_labels": labels("needed"), "outcome": "agent_error"}, 0.0),
        ("steps", {"step_labels": labels("needed"), "outcome": "user_error"}, None),
        ("trajectory", {"trajectory_match": 0.25}, 0.25),
        ("trajectory", {"outcome": "undecided"}, None),
    ],
)
def test_values(name: str, changes: dict[str, Any], value: float | None) -> None:
    found = REWARDS.get(name)(plain(**changes), SETTINGS)
    assert found == (None if value is None else pytest.approx(value))


def test_only_those_that_are_asked_for() -> None:
    assert compute_rewards(plain(), RewardSettings(names=("rubric",))) == {"rubric": 1.0}


async def test_equivalent_runs_are_worth_the_same() -> None:
    """Independent writes and reads in another order, other ids for what is made."""
    task = await desk.make_task()
    lines = desk.gold_lines(("There is trip now, N5.", "There are 6 notes."))
    lines[0][1:5] = [lines[0][4], lines[0][1], lines[0][2], lines[0][3]]
    lines[1][0] = ("", [("add_note", {"title": "map", "color": "red", "parent_id": "N5"})])
    lines[1][1], lines[1][2] = lines[1][2], lines[1][1]
    gold, other = [
        await verify_trajectory(task, await desk.played(task, made), desk.STATE, desk.session())
        for made in (desk.gold_lines(), lines)
    ]
    assert gold.accepted
    assert other.accepted, other.reasons
    assert other.rewards == gold.rewards == {"checks": 1.0, "composite": 1.0, "format_outcome": 1.0, "rubric": 1.0}
