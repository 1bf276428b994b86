"""Values that the agent tells: said by somebody, shown by a tool, counted or added up; anything else is made up."""

import json

import pytest

from trajsmith.records import Message
from trajsmith.verify.claim_support import find_unsupported_claims

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


def test_a_value_is_not_supported_by_what_comes_later():
    early = Message(role="assistant", content="That will be £24.50.")
    claims = find_unsupported_claims([*BEFORE[:2], early, BEFORE[2]])
    assert [claim.value for claim in claims] == ["24.50"]
