"""Refused requests: which reasons an agent can know before it tries, and which values a person would say by mistake."""

import random
from datetime import date
from types import SimpleNamespace

import pytest

from trajsmith.grounding.fields import SchemaField
from trajsmith.querygen.vary import missing_function
from trajsmith.querygen.vary._alternatives import _read_values
from trajsmith.querygen.vary._refusals import (
    RefusedRequest,
    _is_near_number,
    _is_near_time,
    _propose_values,
    _take_nearest,
)
from trajsmith.querygen.vary._refused_task import (
    _was_told,
    can_be_known,
    collect_state_words,
    is_foreseen,
    is_used_up,
)
from trajsmith.querygen.vary.changed_mind import _may_change
from trajsmith.records import AnswerFact, GoldCall, RequestedInfo, UserFact

POLICY = """3. For 24 hours after a payee was added, that payee can get at most £200.00 in total.
4. Standing orders run from current accounts only. 5. Confidential files stay with people of the company; nobody from
outside gets access. 6. Only pending orders can be changed.
7. A new device is collected within the next 30 days. 8. Subscribed calendars can only be read."""
FIELD = SchemaField("value", "value", (), ("string",), True, {"type": "string"})
ROWS = [
    '{"result":[{"account_id":"A2","name":"Green Saver","kind":"savings"}]}',
    '{"result":[{"payee_id":"P1","name":"Judith Carver","added_on":"2026-01-01","in_cooling_off":true}]}',
    '{"result":[{"file_name":"Job Advert.docx","label":"confidential"},{"order_id":"W10013","status":"delivered"}]}',
    '{"email":"kofi.rossi@example.com"}',
    '{"device_id":"D1","collect_on":"2026-06-28"}',
    '{"title":"Team lunch","starts_at":"2026-06-28T12:30:00","ends_at":"2026-06-28T13:15:00"}',
    '{"title":"Cup match","calendar_name":"Club fixtures","takes_place":"outdoors"}',
]


@pytest.mark.parametrize(
    ("reason", "known"),
    [
        ("Green Saver is a savings account; standing orders run from current accounts only", True),
        ("Judith Carver was added less than 24 hours ago and can get only £200.00 until then", True),
        ("Judith Carver was added less than 24 hours ago and can get no more than £200.00 for now", True),
        ("2026-06-28 is not within the next 30 days, when new devices can be collected", True),
        ("order W10013 is delivered; this is possible only while it is pending", True),
        ("Job Advert.docx is confidential and Kofi Rossi is from outside", False),
        ("Bonus Saver is a savings account; standing orders run from current accounts only", False),
        ("events in Office must lie within working hours: Mon-Fri, 08:00 to 18:30", False),
        ("the minimum term runs until 2027-01-18", False),
        ('"Team lunch" takes place then, from 12:30 to 13:15', True),
        ('"Team lunch" takes place then, from 12:45 to 13:15', False),
        ("Club fixtures is a subscribed calendar, which can only be read", False),
    ],
)
def test_what_policy_and_results_tell_is_known_before_the_call(reason, known):
    words = {"savings", "confidential", "delivered", "pending", "outside", "new", "subscribed"}
    assert can_be_known(reason, POLICY, ROWS, words) is known


def test_a_limit_of_the_prompt_is_read_before_anybody_is_asked_for_a_yes():
    policy = (
        "Access to a system ends after 90 days at most. A payment never takes an account beyond its overdraft limit."
    )
    reason, today = "access lasts 90 days at most, until 2027-01-18", date(2026, 10, 20)
    assert can_be_known(reason, policy, [], set(), today)
    assert not can_be_known(reason, policy, [], set(), date(2026, 10, 21)), "another day than the rule gives"
    assert not can_be_known(reason, policy, [], set()), "without a clock nobody can tell"
    rows = ['{"result":[{"name":"Travel Account","available":738.53},{"name":"Bonus Saver","available":9.1}]}']
    reason = "only £738.53 can be taken from Travel Account within its overdraft limit"
    assert can_be_known(reason, policy, rows, set())
    assert not can_be_known(reason, policy, [rows[0].replace("738.53", "738.5")], set())
    other = [rows[0].replace("738.53", "9.1").replace("9.1}]", "738.53}]")]
    assert not can_be_known(reason, policy, other, set()), "the amount of another account"


def test_an_event_is_not_offered_on_a_day_that_is_far_from_the_wanted_one():
    refusal, today = "2026-12-07 is more than 60 days ahead and not on sale yet", date(2026, 10, 1)
    assert "2026-11-30" in _read_values("2026-12-07", refusal, today), "a last day may be a week earlier"
    near = [date.fromisoformat(day) for day in _read_values("2026-12-07", refusal, today, 3)]
    assert all(abs((day - date(2026, 12, 7)).days) <= 3 for day in near)


def test_times_are_such_as_people_choose():
    times = _propose_values("13:30", FIELD, random.Random(0))
    assert times and all("07:00" <= time <= "19:00" for time in times)


@pytest.mark.parametrize(("time", "near"), [("09:30", False), ("18:30", True), ("16:30", False), ("2026-05-01", True)])
def test_an_evening_is_not_moved_to_the_morning(time, near):
    assert _is_near_time(time, ("18:30", "19:15")) is near
    assert _is_near_time(time, ())


@pytest.mark.parametrize(("told", "known"), [(25.0, True), (30.0, False), ("25.00", False)])
def test_nobody_asks_for_more_than_they_have_just_been_told_is_left(told, known):
    info = RequestedInfo(call=0, question="How much credit do I have?", facts=(AnswerFact(value=told),))
    assert _was_told("only £25.00 of store credit is left", [info]) is known


def test_nobody_asks_for_a_time_that_is_not_among_the_free_ones_just_read():
    arguments = {"day": "2026-03-10", "start_time": "11:00"}
    call = GoldCall(tool="create_event", arguments=arguments, provenance={}, effect="write")
    refusal, free = "something takes place then, until 11:15", {"starts_at": "2026-03-10T11:15:00"}
    assert is_foreseen(call, refusal, [{"result": [free]}])
    assert not is_foreseen(call, refusal, [{"result": [free | {"title": "Yoga"}]}]), "an event tells nothing of others"
    assert not is_foreseen(call, refusal, [{"result": [{"starts_at": "2026-03-11T11:15:00"}]}])
    assert not is_foreseen(call, "the calendar can only be read", [{"result": [free]}])


def test_days_are_weekends_before_anything_far():
    days = _propose_values("2026-05-27", FIELD, random.Random(0))
    assert [date.fromisoformat(day).weekday() for day in days[:2]] == [5, 6]


def test_numbers_are_round_and_not_always_one_more():
    field = SchemaField("days", "days", (), ("integer",), True, {"type": "integer", "maximum": 60})
    drawn = [_propose_values(14, field, random.Random(seed)) for seed in range(40)]
    assert all(14 < number <= 60 for numbers in drawn for number in numbers)
    assert len({min(numbers) for numbers in drawn}) > 3
    assert _propose_values(60, field, random.Random(0)) == []


def test_of_what_one_rule_refuses_the_nearest_is_taken():
    base = GoldCall(tool="lend", arguments={"until": "2026-05-01", "copies": 2}, provenance={}, effect="write")
    case = SimpleNamespace(calls=[base], spans=[(0, 1)])
    known = UserFact(key="k", label="day", value="", said="")

    def refuse(argument, value, refusal):
        call = base.model_copy(update={"arguments": {**base.arguments, argument: value}})
        return RefusedRequest(0, (call,), argument, known, refusal)

    far = refuse("until", "2026-08-01", "loans last 21 days, not 92")
    near = refuse("until", "2026-05-29", "loans last 21 days, not 28")
    other = refuse("copies", 9, "only 3 copies are left")
    assert _take_nearest(case, [far, near, other]) == [near, other]


@pytest.mark.parametrize(
    ("schema", "value", "may"),
    [
        ({"type": "string", "enum": ["monthly", "weekly"]}, "monthly", True),
        ({"type": "string"}, "2026-05-27", True),
        ({"type": "string"}, "09:30", True),
        ({"type": "number"}, 60.0, True),
        ({"type": "string"}, "Willow Garden Services", False),
    ],
)
def test_nobody_changes_their_mind_about_a_name(schema, value, may):
    """The account number that goes with it would be another one, too."""
    field = SchemaField("value", "value", (), (schema["type"],), True, schema)
    assert _may_change(field, value) is may


async def test_a_tool_is_missing_late_so_that_a_dialogue_goes_before_it(monkeypatch):
    class Search:
        made = 3

        def __init__(self, case, turn, without_tool):
            pass

        async def find_path(self):
            return []

    monkeypatch.setattr(missing_function, "AlternativeSearch", Search)
    calls = [SimpleNamespace(tool=name) for name in ("open", "move", "close")]
    case = SimpleNamespace(single_writes=lambda: [1, 0, 2], spans=[(0, 1), (1, 2), (2, 3)], calls=calls)
    turn, tool, _ = await missing_function.hide_tool(case)
    assert (turn, tool) == (2, "close")


@pytest.mark.parametrize(
    ("reason", "software", "seen"),
    [
        ("all 9 seats of Branchline are taken", "SW14", True),
        ("all 4 seats of Anvil IDE are taken", "SW16", False),
        ("your manager has said no", "SW14", False),
    ],
)
def test_nobody_is_refused_what_a_result_has_shown_as_used_up(reason, software, seen):
    rows = [{"software_id": "SW14", "free_seats": 0}, {"software_id": "SW16", "free_seats": 2}]
    assert is_used_up(reason, [{"result": rows}], software) is seen


def test_what_a_field_of_the_state_says_by_yes_or_no_must_be_shown():
    reason = "the room is not refundable, so the stay cannot be cancelled"
    words = collect_state_words({"stays": {"S1": {"refundable": False, "city": "Lunna"}}})
    known = "A stay can be cancelled only while the room is refundable; a room that is not refundable stays."
    assert words == {"refundable"}
    assert can_be_known(reason, known, ['{"room":"twin","status":"booked","cancelled":false}'], set())
    assert not can_be_known(reason, known, ['{"room":"twin","status":"booked","cancelled":false}'], words)
    assert can_be_known(reason, known, ['{"room":"twin","refundable":false}'], words)


@pytest.mark.parametrize(
    ("value", "of_story", "near"),
    [
        pytest.param(20, (16.0, 16.5, 17.0), False, id="cooler_is_meant"),
        pytest.param(16.5, (16.0, 16.5, 17.0), True, id="of_the_story"),
        pytest.param(30, (5, 7, 10, 14), True, id="any_number_of_days"),
        pytest.param("20", (16.0, 17.0), True, id="no_number"),
        pytest.param(20, (), True, id="no_story"),
    ],
)
def test_a_story_about_close_numbers_takes_no_other(value, of_story, near):
    assert _is_near_number(value, of_story) is near
