"""References of stories to parts of a moment, and to values that the user does not know."""

import random

import pytest

from trajsmith.grounding import resolve_reference, split_reference
from trajsmith.grounding.constraints import StepCall, StepConstraints
from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.plan import ArgumentPlan, Option
from trajsmith.phrasing import ScenarioStep
from trajsmith.records import Constant, FromOutput, GoldCall, Selector

ROWS = [
    {"stay_id": "S1", "hotel": "Lantern House", "check_in": "2026-05-03", "leaves_at": "2026-05-04T09:15:00"},
    {"stay_id": "S2", "hotel": "Quayside Rooms", "check_in": "2026-06-10", "leaves_at": "2026-06-11T10:45:00"},
]
HOTEL = Selector(rows="$.result", how="equals", field="hotel", value="Quayside Rooms")


def bind(reference, rows, unsaid=("day",), taken=()):
    """The options that a step has for its day."""
    calls = {
        "list_stays": StepCall(
            0, GoldCall(tool="list_stays", arguments={}, provenance={}, effect="read", result={"result": rows})
        )
    }
    for selectors in taken:
        source = FromOutput(call=0, path="$.result[*].stay_id", selectors=selectors)
        call = GoldCall(
            tool="get_stay", arguments={"stay_id": "S2"}, provenance={"stay_id": source}, effect="read", result={}
        )
        calls["get_stay"] = StepCall(1, call)
    step = ScenarioStep(tool="add_task", same_as={"day": reference}, unsaid=unsaid)
    plan = ArgumentPlan("add_task", {"day": []}, {}, [], 0.0, Lessons())
    leaf = SchemaField("day", "day", (), frozenset({"string"}), True, {"type": "string"})
    StepConstraints(step, calls).apply(plan, [leaf], lambda leaf, value: Option(value, Constant()), random.Random(0))
    return plan.required["day"]


def test_a_reference_may_take_the_day_or_the_time_of_a_moment():
    (day,) = bind("list_stays.leaves_at|date", ROWS[:1])
    (time,) = bind("list_stays.leaves_at|time", ROWS[:1])
    assert (day.value, time.value) == ("2026-05-04", "09:15")
    assert [resolve_reference(option.source, {"result": ROWS[:1]}) for option in (day, time)] == [day.value, time.value]
    assert split_reference("list_stays.leaves_at")[2] is None


def test_a_date_has_a_day_and_no_time():
    assert [option.value for option in bind("list_stays.check_in|date", ROWS[:1])] == ["2026-05-03"]
    assert bind("list_stays.check_in|time", ROWS[:1]) == []


def test_a_value_that_the_user_does_not_know_is_that_of_the_only_row():
    (option,) = bind("list_stays.check_in", ROWS[:1])
    assert [selector.how for selector in option.source.selectors] == ["only"]
    assert bind("list_stays.check_in", ROWS) == [], "one of two could be told only by words"
    assert len(bind("list_stays.check_in", ROWS, unsaid=())) == 2


def test_or_that_of_the_row_that_another_step_has_taken():
    (option,) = bind("list_stays.check_in", ROWS, taken=[(HOTEL,)])
    assert option.value == "2026-06-10"
    assert option.source.selectors == (HOTEL,)


@pytest.mark.parametrize("reference", ["list_stays.leaves_at|hour"], ids=["part"])
def test_an_unknown_part_is_an_error(reference):
    with pytest.raises(KeyError):
        split_reference(reference)
