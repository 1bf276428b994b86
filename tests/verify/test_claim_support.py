"""Values that the agent tells: said by somebody, shown by a tool, counted or added up; anything else is made up."""

import json

import pytest

from trajsmith.phrasing import Phrasebook, fact_detection
from trajsmith.records import Message
from trajsmith.verify.claim_support import SupportTracker, find_unsupported_claims

RESULT = {
    "result": [
        {"order_id": "O17", "total": 24.5, "placed_on": "2026-03-04", "stars": 3},
        {"order_id": "O18", "total": 10.25, "placed_on": "2026-03-09", "stars": 4},
    ]
}
BEFORE = [
    Message(role="system", content="Refunds take 5 days."),
    Message(role="user", content="What do my orders come to? I'm on +44 7161 270218."),
    Message(role="tool", content=json.dumps(RESULT), tool_call_id="c", name="list_orders"),
]


@pytest.mark.parametrize(
    "text",
    [
        "You have 2 orders: £24.50 from 4 March 2026 and £10.25 from 9 March.",
        "Together they come to £34.75; they are £14.25 apart.",
        "O18 is a 4-star order. A refund takes 5 days.",
        "You're on file as +44 7161 270218.",
    ],
)
def test_what_was_shown_or_follows_is_supported(text):
    assert find_unsupported_claims([*BEFORE, Message(role="assistant", content=text)]) == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The first one cost £24.60.", "24.60"),
        ("It was placed on 5 March 2026.", "5 March 2026"),
        ("Its number is O19.", "O19"),
        ("I wrote to support@shop.example.", "support@shop.example"),
        ("It arrives at 14:30.", "14:30"),
    ],
)
def test_a_value_that_nobody_gave_is_found(text, value):
    claims = find_unsupported_claims([*BEFORE, Message(role="assistant", content=text)])
    assert [(claim.message, claim.value) for claim in claims] == [(3, value)]


def test_a_day_that_follows_from_a_shown_date_and_said_days_is_supported():
    asked = Message(role="user", content="Could I have 7 more days for order O17?")
    due = Message(role="assistant", content="Shall I move it from 4 March to 11 March 2026?")
    assert find_unsupported_claims([*BEFORE, asked, due]) == ()
    assert [claim.value for claim in find_unsupported_claims([*BEFORE, due])] == ["11 March 2026"]


@pytest.mark.parametrize(("days", "value"), [(14, []), (13, ["18 March 2026"])])
def test_a_day_that_follows_from_an_offer_is_supported(days, value):
    asked = Message(role="user", content="Could I have 30 more days for order O17?")
    due = Message(role="assistant", content="30 days are too many. Shall I move it to 18 March 2026?")
    claims = find_unsupported_claims([*BEFORE, asked, due], offered=(days, "O17", True))
    assert [claim.value for claim in claims] == value


def test_a_rule_may_name_the_days_that_are_counted():
    rule = Message(role="system", content="A bill can be extended by at most 14 days.")
    offer = Message(role="assistant", content="I could move it to 18 March 2026.")
    assert find_unsupported_claims([rule, *BEFORE, offer]) == ()
    assert [claim.value for claim in find_unsupported_claims([*BEFORE, offer])] == ["18 March 2026"]


def test_a_value_is_not_supported_by_what_comes_later():
    early = Message(role="assistant", content="That will be £24.50.")
    claims = find_unsupported_claims([*BEFORE[:2], early, BEFORE[2]])
    assert [claim.value for claim in claims] == ["24.50"]


BATCH = [
    Message(role="user", content="Cancel both, please, and order 3 mugs."),
    *(
        Message(role="tool", content=json.dumps(row), tool_call_id="c", name="cancel_order")
        for row in ({"order_id": "O17", "refund": 24.5}, {"order_id": "O18", "refund": 10.2})
    ),
    Message(role="tool", content=json.dumps({"product": "Mug", "price": 8.25}), tool_call_id="c", name="get_product"),
]
LISTED = {
    "result": [
        {"order_id": "O17", "item": "Lamp", "total": 24.5},
        {"order_id": "O18", "item": "Rug", "total": 10.25},
        {"order_id": "O19", "item": "Chair", "total": 99.0},
    ]
}


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [
        ("£34.70 goes back to you in total.", []),
        ("£34.80 goes back to you in total.", ["34.80"]),
        ("3 mugs come to £24.75.", []),
        ("They come to £33.00.", ["33.00"]),
    ],
)
def test_totals_of_one_request_and_a_price_by_its_quantity_are_supported(text, unsupported):
    claims = find_unsupported_claims([*BATCH, Message(role="assistant", content=text)])
    assert [claim.value for claim in claims] == unsupported


def test_what_was_done_for_an_earlier_request_is_not_in_the_total():
    later = [Message(role="user", content="Thanks. What came back?"), Message(role="assistant", content="It's £34.70.")]
    assert [claim.value for claim in find_unsupported_claims([*BATCH, *later])] == ["34.70"]


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [
        ("Shall I cancel the Lamp, the Rug and the Chair? £133.75 comes back.", []),
        ("Shall I cancel the Lamp and the Rug? £133.70 comes back.", ["133.70"]),
    ],
)
def test_the_rows_that_a_text_names_may_be_added_up(text, unsupported):
    shown = Message(role="tool", content=json.dumps(LISTED), tool_call_id="c", name="list_orders")
    claims = find_unsupported_claims([shown, Message(role="assistant", content=text)])
    assert [claim.value for claim in claims] == unsupported


RULES = """1. An upgrade costs 300 points per
passenger; half of the fare is refunded. 2. Trips of the last 90 days are kept, at most 60 a year. 3. A bicycle is £6.50
for each night."""
TRIP = {"fare": 34.2, "passengers": 2, "stops": 3, "booking": {"nights": 4}}


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [
        ("Half of it, £17.10, comes back.", []),
        ("£17.20 comes back.", ["17.20"]),
        ("That takes 600 points.", []),
        ("That takes 700 points.", ["700"]),
        ("The bicycle comes to £26.00.", []),
    ],
)
def test_what_rules_make_of_a_row_is_supported(text, unsupported):
    shown = Message(role="tool", content=json.dumps(TRIP), tool_call_id="c", name="get_trip")
    claims = find_unsupported_claims([Message(role="system", content=RULES), shown, _say(text)])
    assert [claim.value for claim in claims] == unsupported


@pytest.mark.parametrize("value", ["900", "1,200", "180", "240", "270", "120", "13.00", "19.50"])
def test_a_number_of_a_rule_is_multiplied_only_by_what_it_is_for(value):
    """300 points are for each passenger, not for each stop or night; 90 days are for each of nothing."""
    shown = Message(role="tool", content=json.dumps(TRIP), tool_call_id="c", name="get_trip")
    claims = find_unsupported_claims([Message(role="system", content=RULES), shown, _say(f"That makes {value}.")])
    assert [claim.value for claim in claims] == [value]


def test_half_an_amount_needs_a_rule_that_halves():
    shown = Message(role="tool", content=json.dumps({"fare": 34.2}), tool_call_id="c", name="get_trip")
    claims = find_unsupported_claims([Message(role="system", content="Be brief."), shown, _say("You get £17.10.")])
    assert [claim.value for claim in claims] == ["17.10"]


def test_days_after_the_end_of_the_calendar_support_nothing():
    asked = Message(role="user", content="Could I have it 7 more days?")
    shown = Message(role="tool", content=json.dumps({"until": "9999-12-31"}), tool_call_id="c", name="get_pass")
    claims = find_unsupported_claims([asked, shown, _say("It is open until 31 December 9999, not until 7 January")])
    assert [claim.value for claim in claims] == ["7 January"]


def _say(text):
    return Message(role="assistant", content=text)


def test_phrases_of_an_environment_are_read_once_for_all_plays(monkeypatch):
    book = Phrasebook.model_validate({"tools": {"pay": {"done": ["It takes 37 hours."]}}})
    first = SupportTracker(book)
    monkeypatch.setattr(fact_detection, "_read_text", lambda text, language: pytest.fail(f"{text!r} was read again"))
    second = SupportTracker(book)
    assert [one.find_unsupported("It takes 37 hours or 38.") for one in (first, second)] == [["38"], ["38"]]


def test_what_is_shown_in_one_play_supports_nothing_in_another():
    book = Phrasebook.model_validate({"tools": {"pay": {"done": ["It takes 37 hours."]}}})
    first, second = SupportTracker(book), SupportTracker(book)
    first.read(Message(role="user", content="It costs 38."))
    assert first.find_unsupported("38") == []
    assert second.find_unsupported("38") == ["38"]
