"""Values told beside the thing that they belong to: the usual orders are right, a swap is not."""

import json

import pytest

from trajsmith.records import Message
from trajsmith.verify.misplaced_values import find_misplaced_values

ROWS = [
    {"add_on_id": "AO01", "name": "Data Top-up 5", "price": 4.5, "data_gb": 5, "days": 30, "until": "2026-07-14"},
    {"add_on_id": "AO02", "name": "Data Top-up 20", "price": 11.0, "data_gb": 20, "days": 30, "until": "2026-08-02"},
    {"add_on_id": "AO03", "name": "Weekend Burst", "price": 3.0, "data_gb": 8, "days": 3, "until": "2026-06-29"},
]
TIMES = [
    {"service": "Grey Seal 30", "departs_at": "2026-08-31T06:10:00", "fare": 27.5, "seats_left": 26},
    {"service": "Puffin Line 57", "departs_at": "2026-08-31T16:45:00", "fare": 26.0, "seats_left": 36},
]


def find(text, rows=ROWS, asked="What could I book, and what would it cost?"):
    messages = [
        Message(role="user", content=asked),
        Message(role="tool", tool_call_id="1", content=json.dumps({"result": rows})),
        Message(role="assistant", content=text),
    ]
    return [claim.value for claim in find_misplaced_values(messages)]


@pytest.mark.parametrize(
    "text",
    [
        "Data Top-up 5 costs £4.50, Data Top-up 20 £11.00, and Weekend Burst £3.00.",
        "There is one for £4.50 (Data Top-up 5), one for £11.00 (Data Top-up 20) and one for £3.00 (Weekend Burst).",
        "Data Top-up 5, Data Top-up 20 and Weekend Burst cost £4.50, £11.00 and £3.00.",
        "You can have Data Top-up 5, Data Top-up 20 or Weekend Burst. Weekend Burst is £3.00, Data Top-up 5 is £4.50.",
        "Weekend Burst is the cheapest of Data Top-up 5, Data Top-up 20 and Weekend Burst: £3.00.",
        "Prices begin at £3.00: Weekend Burst costs that, and Data Top-up 20 costs £11.00.",
        "Data Top-up 5 runs until 14 July, Data Top-up 20 until 2 August.",
        "You could take Data Top-up 20 for 30 days.",
        "There are three.",
    ],
)
def test_the_usual_orders_are_right(text):
    assert find(text) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Data Top-up 5 costs £11.00, and Data Top-up 20 £4.50.", "11"),
        ("£4.50 for the Data Top-up 5; £11.00 for the Weekend Burst; £3.00 for the Data Top-up 20.", "11"),
        ("Data Top-up 5 (AO01), Data Top-up 20 (AO02) and Weekend Burst (AO01).", "AO01"),
        ("Data Top-up 5 runs until 2 August, Data Top-up 20 until 14 July.", "2 August 2026"),
        ("Data Top-up 5 holds 8 GB, Weekend Burst holds 5 GB.", "8"),
    ],
)
def test_a_swap_is_found(text, wrong):
    assert find(text) == [wrong]


def test_numbers_of_trains_times_and_places_are_no_values_of_rows():
    assert find("Grey Seal 30 leaves at 06:10 for £27.50, Puffin Line 57 at 16:45 for £26.00.", TIMES) == []
    assert find("Grey Seal 30 costs £26.00, Puffin Line 57 costs £27.50.", TIMES) == ["26"]


def test_what_the_user_named_belongs_to_no_row():
    asked = "Is there something for £11.00 or less?"
    assert find("For £11.00 or less there are Data Top-up 5 and Weekend Burst at £4.50 and £3.00.", asked=asked) == []


def test_gigabytes_are_no_money():
    usage = [{"label": "car hotspot", "used_gb": 16.2, "left_gb": 63.8}]
    assert find("You can still get back £63.80 from that line.", usage) == ["63.80"]
    assert find("There are 63.8 GB left on the car hotspot line.", usage) == []
    assert find("That is £63.80.", [*usage, {"label": "phone", "price": 63.8}]) == []
