"""Values told beside the thing that they belong to: what is right in any order or words passes, a swap does not."""

import json
import time
from collections.abc import Sequence
from typing import Any

import desk
import pytest

from trajsmith.phrasing.languages import use_language
from trajsmith.records import FunctionCall, Message, ToolCall
from trajsmith.verify import verdicts, verify_trajectory
from trajsmith.verify.misplaced_values import find_misplaced_values

Rows = list[dict[str, Any]]
ROWS: Rows = [
    {"add_on_id": "AO01", "name": "Data Top-up 5", "price": 4.5, "data_gb": 5, "days": 30, "until": "2026-07-14"},
    {"add_on_id": "AO02", "name": "Data Top-up 20", "price": 11.0, "data_gb": 20, "days": 30, "until": "2026-08-02"},
    {"add_on_id": "AO03", "name": "Weekend Burst", "price": 3.0, "data_gb": 8, "days": 3, "until": "2026-06-29"},
]
TIMES: Rows = [
    {"service": "Grey Seal 30", "departs_at": "2026-08-31T06:10:00", "fare": 27.5, "seats_left": 26},
    {"service": "Puffin Line 57", "departs_at": "2026-08-31T16:45:00", "fare": 26.0, "seats_left": 36},
]
PLANS: Rows = [{"name": "Basic Plus", "price": 9.5}, {"name": "Basic", "price": 5.5}, {"name": "Gold", "price": 20.5}]
PLAN_ROWS: Rows = [{"plan_id": f"P{number}", **plan} for number, plan in enumerate(PLANS)]
MORE_PLANS: Rows = [*PLANS, {"name": "Max", "price": 11.0}]
ROOMS: Rows = [{"room": "Kitchen", "lamps": 3}, {"room": "Hall", "lamps": 4}, {"room": "Bedroom", "lamps": 2}]
ORDERS: Rows = [{"item": "Desk Lamp", "order_id": "ORD-1001"}, {"item": "Kettle", "order_id": "ORD-1002"}]
CARDS: Rows = [{"card": "Blue Visa", "status": "active"}, {"card": "Red Visa", "status": "blocked"}]
LIMITS: Rows = [{"card": "Blue Visa", "limit": 500.0}, {"card": "Red Visa", "limit": 900.0}]
SWAPPED_LIMITS = "Blue Visa has £900.00, and Red Visa has £500.00."
BILLS: Rows = [{"due_on": "2026-03-03", "amount": 20.5}, {"due_on": "2026-03-05", "amount": 30.75}]
PLEASE = "Hello, please help."


def show(*results: Any) -> list[Message]:
    return [
        Message(role="tool", tool_call_id=f"c{number}", content=json.dumps({"result": result}))
        for number, result in enumerate(results)
    ]


def find_in(*messages: Message, changing: Sequence[int] = ()) -> list[str]:
    return [claim.value for claim in find_misplaced_values(messages, changing)]


def find(text: str, *results: Any, asked: str = PLEASE) -> list[str]:
    return find_in(Message(role="user", content=asked), *show(*results), Message(role="assistant", content=text))


@pytest.mark.parametrize(
    "text",
    [
        "Data Top-up 5 costs £4.50, Data Top-up 20 £11.00, and Weekend Burst £3.00.",
        "There is one for £4.50 (Data Top-up 5), one for £11.00 (Data Top-up 20) and one for £3.00 (Weekend Burst).",
        "Data Top-up 5, Data Top-up 20 and Weekend Burst cost £4.50, £11.00 and £3.00.",
        "For Data Top-up 5, Data Top-up 20 and Weekend Burst it is £4.50, £11.00 and £3.00.",
        "You can have Data Top-up 5, Data Top-up 20 or Weekend Burst. Weekend Burst is £3.00, Data Top-up 5 is £4.50.",
        "Weekend Burst is the cheapest of Data Top-up 5, Data Top-up 20 and Weekend Burst: £3.00.",
        "Prices begin at £3.00: Weekend Burst costs that, and Data Top-up 20 costs £11.00.",
        "Data Top-up 5 runs until 14 July, Data Top-up 20 until 2 August.",
        "You could take Data Top-up 20 for 30 days.",
        "There are three.",
        "Of Data Top-up 20 and Data Top-up 5 the smaller one costs £4.50 and the larger one £11.00.",
        "Data Top-up 5 and Data Top-up 20: the former costs £4.50 and the latter £11.00.",
        "Weekend Burst is cheaper than £4.50, and Data Top-up 20 is not £4.50 but £11.00.",
        "Shall I note Data Top-up 5 at £11.00 and Data Top-up 20 at £4.50?",
        "Two of Data Top-up 5 have 10 GB, Data Top-up 20 has 20 GB.",
        "With Data Top-up 5 you have 8 visits, with Weekend Burst 5 visits.",
        "Data Top-up 5 runs until 2 August, because Data Top-up 20 runs until 2 August.",
        "You asked for Data Top-up 5 at £11.00 and Data Top-up 20 at £4.50. Those are not their prices.",
        "There is no Data Top-up 5 for £11.00 and no Data Top-up 20 for £4.50.",
        "If Data Top-up 5 costs £11.00 and Data Top-up 20 £4.50, the second is the better one.",
        "It isn't true that Data Top-up 5 costs £11.00 and Data Top-up 20 £4.50.",
        "I could note Data Top-up 5 at £11.00 and Data Top-up 20 at £4.50.",
        "I would note this: Data Top-up 5 at £11.00, Data Top-up 20 at £4.50.",
        "Data Top-up 5 at £11.00, Data Top-up 20 at £4.50. Shall I go ahead?",
        "1. Data Top-up 5: 5 GB\n2. Data Top-up 20: 20 GB\n3. Weekend Burst: 8 GB",
        "| Add-on | Price |\n|---|---|\n| Data Top-up 5 | £4.50 |\n| Weekend Burst | £3.00 |",
    ],
)
def test_a_right_answer_passes(text: str) -> None:
    assert find(text, ROWS) == []


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param("1. Kitchen, with 3 lamps\n2. Hall, with 4 lamps\n3. Bedroom, with 2 lamps", ROOMS, id="numbered"),
        pytest.param("Kitchen has 4 devices, Hall has 3 devices.", ROOMS, id="other-counts"),
        pytest.param(
            "You have Desk Lamp (ORD-1001) and Kettle (ORD-1002). Which one do you mean, ORD-1001 or ORD-1002?",
            ORDERS,
            id="identifiers-again",
        ),
        pytest.param(
            "There are Desk Lamp (ORD-1001) and Kettle (ORD-1002). ORD-1001 can be cancelled.", ORDERS, id="one-again"
        ),
        pytest.param("Basic Plus costs £9.50, Gold £20.50 and Basic £5.50.", PLANS, id="name-inside-a-name"),
        pytest.param("Two months of Basic cost £11.00, one of Max £11.00.", MORE_PLANS, id="a-multiple"),
        pytest.param("Basic costs £5.50, Max has £5.50 on top.", MORE_PLANS, id="a-difference"),
        pytest.param("Grey Seal 30 leaves at 06:10 for £27.50, Puffin Line 57 at 16:45 for £26.00.", TIMES, id="times"),
        pytest.param("Done: Blue Visa is blocked, and Red Visa is active.", CARDS, id="words-of-choice"),
        pytest.param("Your current total is £20.00, in Savings there is £10.00.", [
            {"account": "Current", "balance": 10.0}, {"account": "Savings", "balance": 20.0}
        ], id="a-name-that-is-a-word"),
        pytest.param("To Paris it is £80.00, to London it is £90.00.", [
            {"from": "London", "to": "Paris", "fare": 80.0}, {"from": "Paris", "to": "London", "fare": 90.0}
        ], id="a-word-of-two-rows"),
        pytest.param("On 3 March 2026 you pay £20.50, and on 5 March 2026 £30.75.", BILLS, id="dates"),
        pytest.param("On 3 March 2027 you pay £30.75, and on 5 March 2026 £30.75.", BILLS, id="another-year"),
    ],
)  # fmt: skip
def test_a_right_answer_about_other_rows_passes(text: str, rows: Rows) -> None:
    assert find(text, rows) == []


@pytest.mark.parametrize(
    ("text", "rows", "wrong"),
    [
        ("Data Top-up 5 costs £11.00, and Data Top-up 20 £4.50.", ROWS, "11"),
        ("£4.50 for the Data Top-up 5; £11.00 for the Weekend Burst; £3.00 for the Data Top-up 20.", ROWS, "11"),
        ("£4.50, for Data Top-up 5; £11.00, for the Weekend Burst; £3.00, for the Data Top-up 20.", ROWS, "11"),
        ("Data Top-up 5 (AO01), Data Top-up 20 (AO02) and Weekend Burst (AO01).", ROWS, "AO01"),
        ("The Desk Lamp order is ORD-1002, and the Kettle order is ORD-1001.", ORDERS, "ORD-1002"),
        ("The Basic plan costs £9.50 a month. The Basic Plus plan costs £5.50.", PLAN_ROWS, "9.5"),
        ('"Desk Lamp" (ORD-1001, open) and "Kettle" (ORD-1001, open).', ORDERS, "ORD-1001"),
        ("Data Top-up 5 runs until 2 August, Data Top-up 20 until 14 July.", ROWS, "2 August 2026"),
        ("Data Top-up 5 holds 8 GB, Weekend Burst holds 5 GB.", ROWS, "8"),
        ("1. Kitchen: 4 lamps\n2. Hall: 3 lamps", ROOMS, "4"),
        ("**Basic Plus**: £5.50\n**Basic**: £9.50", PLANS, "5.5"),
        ("| Basic Plus | £5.50 |\n| Gold | £9.50 |\n| Basic | £20.50 |", PLANS, "5.5"),
        ("Grey Seal 30 costs £26.00, Puffin Line 57 costs £27.50.", TIMES, "26"),
        ("3 March: £30.75; 5 March: £20.50.", BILLS, "30.75"),
        ("On 3 March 2026 you pay £30.75, and on 5 March 2026 you pay £20.50.", BILLS, "30.75"),
        (SWAPPED_LIMITS, LIMITS, "900"),
    ],
)
def test_a_swap_is_found(text: str, rows: Rows, wrong: str) -> None:
    assert find(text, rows) == [wrong]


def test_german_answers_are_read_too() -> None:
    with use_language("de"):
        assert find("Basic kostet 5,50 £ und Gold 20,50 £.", PLANS) == []
        assert find("Basic kostet 20,50 £ und Gold 5,50 £.", PLANS) == ["20,5"]
        assert find("Basic kostet nicht 20,50 £ und Gold nicht 5,50 £.", PLANS) == []
        assert find("Wenn Basic 20,50 £ kostet und Gold 5,50 £, ist Gold besser.", PLANS) == []


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([{"card": "Blue Visa", "limit": 900.0}, {"card": "Red Visa", "limit": 500.0}], id="by-name"),
        pytest.param([[{"card": "Blue Visa", "limit": 900.0}, {"card": "Red Visa", "limit": 500.0}]], id="a-new-list"),
        pytest.param([{"note": "Blue Visa: £900.00"}, {"note": "Red Visa: £500.00"}], id="in-a-text"),
        pytest.param([{"card": {"name": "Blue Visa"}, "limits": {"day": 900.0, "week": 500.0}},
                      {"cards": ["Red Visa"], "limits": [{"day": 500.0}]}], id="nested"),
    ],
)  # fmt: skip
def test_what_another_result_shows_of_a_row_is_right(results: Rows) -> None:
    assert find(SWAPPED_LIMITS, LIMITS, *results) == []


def test_the_arguments_of_a_call_name_what_its_result_is_about() -> None:
    calls = tuple(
        ToolCall(id=f"c{number}", function=FunctionCall(name="get_limit", arguments=arguments))
        for number, arguments in enumerate([{}, {"card": "Blue Visa"}, {"card": "Red Visa"}])
    )
    asked, answer = Message(role="user", content=PLEASE), Message(role="assistant", content=SWAPPED_LIMITS)
    calling = Message(role="assistant", tool_calls=calls)
    assert find_in(asked, calling, *show(LIMITS, 900.0, 500.0), answer) == []
    assert find_in(asked, calling, *show(LIMITS, 1.0, 2.0), answer) == ["900"]


def test_lists_from_before_a_change_are_not_used() -> None:
    def call(content: str = "") -> Message:
        made = ToolCall(id="c0", function=FunctionCall(name="swap_limits", arguments={}))
        return Message(role="assistant", content=content, tool_calls=(made,))

    asked, answer = Message(role="user", content=PLEASE), Message(role="assistant", content=SWAPPED_LIMITS)
    dialogue = [asked, call(), *show(LIMITS), call(), *show("ok"), answer]
    assert find_in(*dialogue) == ["900"]
    assert find_in(*dialogue, changing=[3]) == []
    assert find_in(*dialogue[:5], call(), *show(LIMITS), answer, changing=[3]) == ["900"]
    assert find_in(asked, call(), *show(LIMITS), call(SWAPPED_LIMITS), *show("ok")) == []  # no answer yet


async def test_a_verdict_names_the_messages_that_change_something(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    def find(messages: Sequence[Message], changing: set[int]) -> tuple[()]:
        seen.append(changing)
        return ()

    monkeypatch.setattr(verdicts, "find_misplaced_values", find)
    task = await desk.make_task()
    played = await desk.played(task, desk.gold_lines(("trip is N4 now.", "There are 6 notes.")))
    await verify_trajectory(task, played, desk.STATE, desk.session())
    assert seen == [{event.message for event in played.events if event.effect is not None}] and seen[0]


def test_what_the_user_or_a_rule_named_belongs_to_no_row() -> None:
    asked = "Is there something for £11.00 or less?"
    text = "For £11.00 or less there are Data Top-up 5 and Weekend Burst at £4.50 and £3.00."
    assert find(text, ROWS, asked=asked) == []
    rule = Message(role="system", content="From May on Blue Visa has a limit of £900.00 and Red Visa one of £500.00.")
    answer = Message(role="assistant", content=SWAPPED_LIMITS)
    assert find_in(rule, Message(role="user", content=PLEASE), *show(LIMITS), answer) == []


@pytest.mark.parametrize(
    ("text", "shown", "asked", "wrong"),
    [
        ("You can still get back £63.80 from that line.", {"used_gb": 16.2, "left_gb": 63.8}, PLEASE, ["63.80"]),
        ("There are 63.8 GB left on the car hotspot line.", {"used_gb": 16.2, "left_gb": 63.8}, PLEASE, []),
        ("That is £63.80.", [{"left_gb": 63.8}, {"price": 63.8}], PLEASE, []),
        ("The Small plan costs £1.50 per GB.", {"plan": "Small", "price_per_gb": 1.5}, PLEASE, []),
        ("You pay £0.32 per kWh.", {"tariff": "Day", "kwh_cost": 0.32}, PLEASE, []),
        ("£4.50 is enough for that.", {"plan": "Small", "left_gb": 4.5}, "I have £4.50 to spend.", []),
        ("That makes £37.50 for the three of them.", {"weekly_hours": 37.5, "price": 12.5}, PLEASE, []),
        ("For 1.5 hours you pay £37.50.", [{"hours": 1.5, "left_gb": 37.5}, {"fee": 25.0}], PLEASE, []),
        ("Both together come to £37.50.", [{"price": 12.5}, {"price": 25.0}, {"weekly_hours": 37.5}], PLEASE, []),
    ],
)  # fmt: skip
def test_gigabytes_are_no_money(text: str, shown: Any, asked: str, wrong: list[str]) -> None:
    assert find(text, shown, asked=asked) == wrong


def test_many_lists_in_one_turn_cost_no_more_than_each_of_them() -> None:
    def build(lists: int) -> list[Message]:
        answer = Message(role="assistant", content="Item number 3 costs £14.11, Item number 4 costs £15.48. " * 10)
        messages = [Message(role="user", content=PLEASE)]
        for number in range(lists):
            rows = [{"item": f"Item number {row}", "price": 10 + row * 1.37, "page": number} for row in range(50)]
            messages += [*show(rows), answer]
        return messages

    def measure(lists: int) -> float:
        messages, start = build(lists), time.process_time()
        find_misplaced_values(messages)
        return time.process_time() - start

    measure(2)
    assert measure(40) < 8 * measure(10) + 0.05  # quadratic: 16 times
