"""Calls that undo, repeat or clash with earlier ones are found by what they change."""

from datetime import date

import pytest
from bank_stories import BANK, SPEC, STATE

from trajsmith.environments import NativeSession
from trajsmith.grounding import Grounder, GroundSettings
from trajsmith.grounding.contradictions import ExecutedWrite, find_contradiction, list_changes, sets_what_is_there
from trajsmith.phrasing import Phrasebook
from trajsmith.records import Chain, Dependency, FromOutput, FromUser, GoldCall, RecordDropped, Selector, content_hash

TODAY = date(2026, 3, 2)
CHOSEN = FromOutput(
    call=0, path="$.rows[*].id", selectors=(Selector(rows="$.rows", how="equals", field="name", value="x"),)
)


def write(tool: str, before: dict, after: dict, result: dict | None = None, **arguments: str) -> ExecutedWrite:
    sources = {name: CHOSEN if name.endswith("_id") else FromUser(known=f"{tool}.{name}") for name in arguments}
    call = GoldCall(tool=tool, arguments=arguments, provenance=sources, effect="write", result=result or {})
    return ExecutedWrite(call, list_changes(before, after))


FREE, FROZEN = {"cards": {"K1": {"status": "active"}}}, {"cards": {"K1": {"status": "frozen"}}}
EMPTY, WITH_STAY = {"stays": {}, "trips": {}}, {"stays": {"S1": {"city": "Oslo", "status": "booked"}}, "trips": {}}
BOTH = WITH_STAY | {"trips": {"T1": {"city": "Rome"}}}
WITHDRAWN = {"stays": {"S1": {"city": "Oslo", "status": "withdrawn"}}, "trips": {}}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (write("shift", {}, {}, {"scene_name": "spa evening"}, plan_id="P1", starts_at="06:45"), "odd_hour"),
        (write("shift", {}, {}, {"scene_name": "spa evening"}, plan_id="P1", starts_at="18:30"), None),
        (write("create", {}, {}, title="Lunch with Ada", starts_at="2026-03-06T19:15:00"), "odd_hour"),
        (write("create", {}, {}, title="Lunch with Ada", starts_at="2026-03-06T12:15:00"), None),
        (write("shift", {}, {}, {"scene_name": "good night"}, plan_id="P1", starts_at="00:30"), None),
        (write("shift", {}, {}, {"scene_name": "good night"}, plan_id="P1", starts_at="07:45"), "odd_hour"),
        (write("shift", {}, {}, {"description": "not at night"}, plan_id="P1", starts_at="06:45"), None),
        (write("create", {}, {}, title="Good morning", day="2026-03-06"), None),
        (write("create", {}, {}, title="The nightingale", starts_at="06:45"), None),
    ],
)
def test_what_a_name_says_of_the_time_of_day_holds(call: ExecutedWrite, expected: str | None) -> None:
    assert find_contradiction(call, [], True, False, TODAY) == expected


@pytest.mark.parametrize(
    ("first", "second", "in_scenario", "expected"),
    [
        pytest.param(
            write("freeze", FREE, FROZEN, card_id="K1"), write("unfreeze", FROZEN, FREE, card_id="K1"), True, "undone",
            id="a_value_is_back",
        ),
        pytest.param(
            write("add", {"cart": {}, "orders": {}}, {"cart": {"L1": {"n": 1}}, "orders": {}}),
            write("buy", {"cart": {"L1": {"n": 1}}, "orders": {}}, {"cart": {}, "orders": {"W1": {"n": 1}}}),
            False, None, id="a_basket_becomes_an_order",
        ),
        pytest.param(
            write("book_stay", EMPTY, WITH_STAY), write("withdraw", WITH_STAY, WITHDRAWN, stay_id="S1"),
            False, "undone",
            id="requested_and_withdrawn",
        ),
        pytest.param(
            write("book_stay", EMPTY, WITH_STAY, city="Oslo", on="2026-03-06"),
            write("book_trip", WITH_STAY, BOTH, city="Rome", on="2026-03-06"), False, "clash", id="two_places_at_once",
        ),
        pytest.param(
            write("book_stay", EMPTY, WITH_STAY, city="Oslo", on="2026-03-06"),
            write("book_trip", WITH_STAY, BOTH, city="Rome", on="2026-03-09"), False, None, id="two_days",
        ),
        pytest.param(
            write("rate", {"a": {"K1": {"n": 1}}}, {"a": {"K1": {"n": 2}}}, card_id="K1"),
            write("rate", {"a": {"K1": {"n": 2}}}, {"a": {"K1": {"n": 3}}}, card_id="K1"), False, "repeated_goal",
            id="the_same_goal_twice",
        ),
        pytest.param(
            write("hide_page", {"a": {"K1": {"s": "draft"}}}, {"a": {"K1": {"s": "off"}}}, page_id="K1"),
            write("show_page", {"a": {"K1": {"s": "off"}}}, {"a": {"K1": {"s": "on"}}}, page_id="K1"), False, "undone",
            id="opposites_from_a_third_state",
        ),
        pytest.param(
            write("unfreeze_card", {"c": {"K1": {"s": "frozen"}}}, {"c": {"K1": {"s": "active"}}}, card_id="K1"),
            write("freeze_card", {"c": {"K1": {"s": "active"}}}, {"c": {"K1": {"s": "blocked"}}}, card_id="K1"), False,
            "undone", id="freed_and_taken_away",
        ),
        pytest.param(
            write("unfreeze_card", {"c": {"K1": {"s": "frozen"}}}, {"c": {"K1": {"s": "active"}}}, card_id="K1"),
            write("name_card", {"c": {"K1": {"n": ""}}}, {"c": {"K1": {"n": "Mine"}}}, card_id="K1"), False, None,
            id="freed_and_named",
        ),
        pytest.param(
            write("lock_unlock_door", {"c": {"K1": {"s": 1}}}, {"c": {"K1": {"s": 2}}}, door_id="K1"),
            write("lock_unlock_door", {"c": {"K1": {"s": 2}}}, {"c": {"K1": {"s": 3}}}, door_id="K1"), False,
            "repeated_goal", id="both_words_in_one_name",
        ),
        pytest.param(
            write("start_task", {"a": {"K1": {"s": "new"}}}, {"a": {"K1": {"s": "on"}}}, task_id="K1"),
            write("finish_task", {"a": {"K1": {"s": "on"}}}, {"a": {"K1": {"s": "over"}}}, task_id="K1"), False, None,
            id="one_step_after_the_other",
        ),
        pytest.param(
            write("archive_file", {"f": {"K1": {"s": 1}}, "n": {}}, {"f": {"K1": {"s": 2}}, "n": {}}, file_id="K1"),
            write("add_note", {"f": {}, "n": {}}, {"f": {}, "n": {"N1": {"t": "x"}}}, file_id="K1"), False, "undone",
            id="something_for_what_is_over",
        ),
        pytest.param(
            write("archive_file", {"f": {"K1": {"s": 1}}, "n": {}}, {"f": {"K1": {"s": 2}}, "n": {}}, file_id="K1"),
            write("add_note", {"f": {}, "n": {}}, {"f": {}, "n": {"N1": {"t": "x"}}}, file_id="K2"), False, None,
            id="something_for_another",
        ),
    ],
)  # fmt: skip
def test_a_contradiction_is_found(
    first: ExecutedWrite, second: ExecutedWrite, in_scenario: bool, expected: str | None
) -> None:
    assert find_contradiction(second, [first], in_scenario, False, TODAY) == expected


@pytest.mark.parametrize(("in_scenario", "expected"), [(False, "undone"), (True, None)])
def test_what_was_changed_is_not_taken_away_outside_of_scenarios(in_scenario: bool, expected: str | None) -> None:
    booked, longer = {"stays": {"S1": {"nights": 1}}}, {"stays": {"S1": {"nights": 2}}}
    gone = {"stays": {"S1": {"nights": 2, "status": "cancelled"}}}
    extend, cancel = write("extend", booked, longer, stay_id="S1"), write("cancel", longer, gone, stay_id="S1")
    assert find_contradiction(cancel, [extend], in_scenario, True, TODAY) == expected


@pytest.mark.parametrize(
    ("arguments", "required", "expected"),
    [
        ({"price": "9", "color": "red"}, (), True),
        ({"price": "9", "color": "red"}, ("color",), False),
        ({"price": "9", "color": "blue"}, (), False),
    ],
    ids=["it_is_red_already", "the_tool_needs_it", "all_new"],
)
def test_a_value_that_is_there_already_is_not_set(arguments, required, expected):
    before = {"desks": {"D1": {"price": "5", "color": "red"}}}
    after = {"desks": {"D1": {"price": "9", "color": arguments["color"]}}}
    change = write("change_desk", before, after, desk_id="D1", **arguments)
    assert sets_what_is_there(change, before, required) is expected


def test_other_things_that_a_change_touches_are_not_looked_at():
    euros = {"A1": {"sum": 9, "currency": "EUR"}, "A2": {"sum": 1, "currency": "EUR"}}
    moved = {"A1": {"sum": 8, "currency": "EUR"}, "A2": {"sum": 2, "currency": "EUR"}}
    sent = write("send", {"accounts": euros}, {"accounts": moved}, from_id="A1", to_id="A2", currency="EUR")
    assert not sets_what_is_there(sent, {"accounts": euros}, ())
    issues = {"issues": {"I1": {"author": "Ida", "comments": 0}}, "comments": {}}
    commented = {"issues": {"I1": {"author": "Ida", "comments": 1}}, "comments": {"C1": {"author": "Ida"}}}
    assert not sets_what_is_there(write("comment", issues, commented, issue_id="I1", author="Ida"), issues, ())


@pytest.mark.parametrize("seed", range(6))
async def test_a_chain_does_not_freeze_and_unfreeze_one_card(seed: int) -> None:
    tools = ("find_customer_by_phone", "list_cards", "freeze_card", "unfreeze_card")
    links = [(1, "customer_id", 0, "$.customer_id"), *((n, "card_id", 1, "$.result[*].card_id") for n in (2, 3))]
    chain = Chain(
        index=0, environment="bank", tools=tools, state=content_hash(STATE), sampler={}, seed=seed,
        dependencies=tuple(Dependency(consumer=c, parameter=p, producer=q, output=o) for c, p, q, o in links),
    )  # fmt: skip
    grounder = Grounder(SPEC, STATE, Phrasebook(), GroundSettings(min_calls=4, repairs=0))
    try:
        grounded = await grounder.ground(chain, NativeSession(BANK, SPEC))
    except RecordDropped as dropped:
        assert dropped.reason in ("undone", "too_few_calls")
        return
    freeze, unfreeze = (next(call for call in grounded.calls if call.tool == tool) for tool in tools[2:])
    assert freeze.arguments["card_id"] != unfreeze.arguments["card_id"]
