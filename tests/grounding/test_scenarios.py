"""Grounding inside scenarios: constraints bind the arguments, and what cannot be satisfied has a reason."""

import pytest
from bank_stories import BANK, SPEC, STATE, by_step, draw, ground, story
from upheld import assert_provenance_is_right, assert_runs_again

from trajsmith.environments import NativeSession
from trajsmith.grounding import check_scenarios
from trajsmith.phrasing import ScenarioBook
from trajsmith.records import InputError, RecordDropped

FREEZE = {"tool": "freeze_card", "arguments": {"reason": ["stolen"]}, "where": {"status": ["active"]}}
PAY = {"tool": "pay_payee", "arguments": {"amount": [12.5]}}


async def test_arguments_and_rows_are_those_of_the_scenario() -> None:
    scenario = story(FREEZE, {"tool": "list_transactions", "arguments": {"direction": ["out"]}})
    for chain in draw(scenario):
        grounded = await ground(scenario, chain)
        calls = by_step(grounded)
        assert calls["freeze_card"].arguments["reason"] == "stolen"
        assert calls["list_transactions"].arguments["direction"] == "out"
        assert STATE["cards"][calls["freeze_card"].arguments["card_id"]]["status"] == "active"
        assert_provenance_is_right(grounded, SPEC)
        await assert_runs_again(grounded, STATE, NativeSession(BANK, SPEC))


async def test_values_are_shared_differ_and_come_later() -> None:
    order = {"tool": "set_up_standing_order", "arguments": {"amount": [5.0]}}
    scenario = story(
        PAY,
        order | {"same_as": {"account_id": "pay_payee.account_id"}, "other_than": {"payee_id": "pay_payee.payee_id"}},
        order
        | {
            "id": "later",
            "same_as": {"payee_id": "pay_payee.payee_id", "account_id": "pay_payee.account_id"},
            "later_than": {"first_on": "set_up_standing_order.first_on"},
        },
    )
    complete = 0
    for chain in draw(scenario):
        calls = by_step(await ground(scenario, chain))
        if len(calls) < 3:
            continue
        complete += 1
        pay, first, later = calls["pay_payee"], calls["set_up_standing_order"], calls["later"]
        assert {call.arguments["account_id"] for call in calls.values()} == {pay.arguments["account_id"]}
        assert first.arguments["payee_id"] != pay.arguments["payee_id"]
        assert later.arguments["first_on"] > first.arguments["first_on"]
        assert later.provenance["payee_id"] == pay.provenance["payee_id"]
    assert complete >= 8


async def test_a_field_of_a_result_is_shared() -> None:
    payee = {"tool": "add_payee"}
    scenario = story(payee, PAY | {"same_as": {"payee_id": "add_payee.payee_id"}})
    calls = by_step(await ground(scenario, draw(scenario, 1)[0]))
    assert calls["pay_payee"].arguments["payee_id"] == calls["add_payee"].result["payee_id"]
    assert calls["pay_payee"].provenance["payee_id"].path == "$.payee_id"


@pytest.mark.parametrize("kind", ["current", "savings"])
async def test_a_shared_field_is_that_of_a_row_which_fits(kind: str) -> None:
    shared = {"same_as": {"account_id": "list_accounts.account_id"}, "where": {"kind": [kind]}}
    scenario = story({"tool": "list_accounts"}, {"tool": "list_transactions"} | shared)
    kinds = []
    for chain in draw(scenario):
        try:
            calls = by_step(await ground(scenario, chain))
        except RecordDropped:
            continue
        if "list_transactions" in calls:
            kinds.append(STATE["accounts"][calls["list_transactions"].arguments["account_id"]]["kind"])
    assert kinds and set(kinds) == {kind}


async def test_every_look_up_leads_to_the_step_after_it() -> None:
    scenario = story(FREEZE, PAY, {"tool": "list_disputes"})
    for chain in draw(scenario):
        grounded = await ground(scenario, chain)
        used = {
            source.call for call in grounded.calls for source in call.provenance.values() if source.kind == "output"
        }
        assert {number for number, name in enumerate(grounded.steps) if not name} <= used


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        pytest.param({"tool": "freeze_card", "where": {"status": ["melted"]}}, "scenario_unmet", id="where"),
        pytest.param(PAY | {"same_as": {"amount": "list_disputes.nothing"}}, "scenario_same_as", id="same_as"),
        pytest.param({"tool": "unfreeze_card", "where": {"status": ["active"]}}, "scenario_refused", id="refused"),
    ],
)
async def test_a_constraint_that_nothing_satisfies_is_the_reason(step: dict, reason: str) -> None:
    scenario = story({"tool": "list_disputes"}, step)
    with pytest.raises(RecordDropped) as dropped:
        await ground(scenario, draw(scenario, 1)[0])
    assert dropped.value.reason == reason
    assert f"step {step['tool']}" in dropped.value.detail


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_undone_but_by_a_change_of_mind(seed: int) -> None:
    freeze = FREEZE | {"arguments": {"reason": ["suspicious_payment"]}}
    steps = freeze, {"tool": "unfreeze_card", "same_as": {"card_id": "freeze_card.card_id"}}
    plain, changed = story(*steps), story(*steps, change_of_mind=True)
    with pytest.raises(RecordDropped) as dropped:
        await ground(plain, draw(plain, 1, seed=seed)[0])
    assert dropped.value.reason == "scenario_undone"
    calls = by_step(await ground(changed, draw(changed, 1, seed=seed)[0]))
    assert calls["freeze_card"].arguments["card_id"] == calls["unfreeze_card"].arguments["card_id"]


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ({"tool": "melt_card"}, "there is no tool 'melt_card'"),
        (FREEZE | {"arguments": {"why": ["lost"]}}, "arguments: freeze_card has no parameter 'why'"),
        (FREEZE | {"where": {"colour": ["red"]}}, "where: no result of any tool has a field 'colour'"),
        (
            FREEZE | {"same_as": {"card_id": "list_cards.wings"}},
            "same_as: list_cards has no parameter and no result field",
        ),
        (FREEZE | {"say": ["Stop {card}."]}, "freeze_card has no parameter 'card' for the slot in 'Stop {card}.'"),
    ],
    ids=["tool", "parameter", "where", "result_field", "slot"],
)
def test_a_book_is_checked_against_the_tools(step: dict, fault: str) -> None:
    book = ScenarioBook(scenarios=(story({"tool": "list_cards"}, step),))
    with pytest.raises(InputError, match=r"scenarios of bank: scenario story, step ") as error:
        check_scenarios(book, SPEC)
    assert fault in str(error.value)


def test_a_motive_asks_for_fields_that_there_are() -> None:
    motive = {"say": "It is mine.", "where": {"freeze_card.colour": ["red"]}}
    book = ScenarioBook(scenarios=(story(FREEZE, motives=["Hello.", motive]),))
    with pytest.raises(InputError, match=r"motive 'It is mine\.': freeze_card has no parameter.* field 'colour'"):
        check_scenarios(book, SPEC)


async def test_the_user_is_looked_up_once() -> None:
    scenario = story({"tool": "list_disputes"}, {"tool": "list_cards"}, {"tool": "find_customer_by_phone"})
    for chain in draw(scenario):
        grounded = await ground(scenario, chain)
        assert [call.tool for call in grounded.calls].count("find_customer_by_phone") == 1
        assert grounded.steps[-1] == "list_cards"
        assert grounded.skipped == ("find_customer_by_phone",)


async def test_optional_arguments_are_those_that_the_words_of_a_step_have() -> None:
    silent = {"tool": "list_transactions", "say": ["What happened on {account_id}?"]}
    telling = silent | {"say": ["Show me {direction} on {account_id}."]}
    given = {}
    for name, step in {"silent": silent, "telling": telling}.items():
        scenario = story(step, {"tool": "list_disputes"})
        steps = [by_step(await ground(scenario, chain))["list_transactions"] for chain in draw(scenario, 16)]
        given[name] = sum("direction" in call.arguments for call in steps)
    assert given["silent"] == 0
    assert given["telling"] > 0


@pytest.mark.parametrize(
    ("words", "known"),
    [({}, False), ({"say": ["It was in my coat, so free {card_id}."]}, True), ({"reasons": ["It was there."]}, True)],
)
def test_a_change_of_mind_needs_a_reason(words: dict, known: bool) -> None:
    back = {"tool": "unfreeze_card", "same_as": {"card_id": "freeze_card.card_id"}} | words
    book = ScenarioBook(scenarios=(story(FREEZE, back, change_of_mind=True),))
    if known:
        check_scenarios(book, SPEC)
    else:
        with pytest.raises(InputError, match="nothing says why the user changes their mind"):
            check_scenarios(book, SPEC)
