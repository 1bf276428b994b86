"""Checks that need more than one call, or compare what is given, kept and answered."""

from typing import Any

import pytest
from corner_shop import (
    Play,
    Refuse,
    Reopened,
    Shop,
    add_credit,
    cancel_order,
    get_customer,
    get_product,
    initial,
    list_orders,
    place_order,
    row,
    set_note,
    summary,
)
from examining import calls, found, report_on

from trajsmith.records import JsonObject

# Answers, arguments, amounts, lists, limits


def answers_with_old_total(play: Play, **arguments: Any) -> JsonObject:
    return {**place_order(play, **arguments), "total": 0.0 if arguments["quantity"] % 2 else 1.0}


def answers_a_name_that_is_not_there(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    play.state["customers"][arguments["customer_id"]]["order_ids"].remove(made["order_id"])
    return summary(play.state["orders"].pop(made["order_id"]))


def drops_the_note(play: Play, **arguments: Any) -> JsonObject:
    return place_order(play, **{**arguments, "note": ""})


def one_more(play: Play, customer_id: str, amount: float) -> JsonObject:
    if amount > 500:
        return add_credit(play, customer_id, amount)
    customer = row(play, "customers", customer_id)
    customer["credit"] = round(customer["credit"] + amount + 1, 2)
    return {"customer_id": customer_id, "credit": customer["credit"]}


def lists_five(play: Play, customer_id: str, status: str | None = None) -> JsonObject:
    row(play, "customers", customer_id)
    own = [order for order in play.state["orders"].values() if order["customer_id"] == customer_id]
    return {"orders": [summary(order) for order in own if status in (None, order["status"])][:5]}


def lists_three(play: Play, customer_id: str, status: str | None = None) -> JsonObject:
    return {"orders": list_orders(play, customer_id, status)["orders"][:3]}


def lists_any_status(play: Play, customer_id: str, status: str | None = None) -> JsonObject:
    return list_orders(play, customer_id, None if status == "cancelled" else status)


def leaves_out_the_last(play: Play, customer_id: str, status: str | None = None) -> JsonObject:
    return {"orders": list_orders(play, customer_id, status)["orders"][:-1]}


def refuses_the_limit(play: Play, **arguments: Any) -> JsonObject:
    product = row(play, "products", arguments["product_id"])
    if arguments["quantity"] >= product["stock"]:
        raise Refuse(f"only {product['stock']} of {product['name']} are in stock")
    return place_order(play, **arguments)


def gives_one_beyond(play: Play, customer_id: str, amount: float) -> JsonObject:
    if amount > 501:
        raise Refuse("a customer can be given at most 500 pounds at a time")
    customer = row(play, "customers", customer_id)
    customer["credit"] = round(customer["credit"] + amount, 2)
    return {"customer_id": customer_id, "credit": customer["credit"]}


@pytest.mark.parametrize(
    ("check", "tool", "fault"),
    [
        ("answers", "place_order", answers_with_old_total),
        ("answered_names", "place_order", answers_a_name_that_is_not_there),
        ("arguments", "place_order", drops_the_note),
        ("lost_text", "place_order", drops_the_note),
        ("amounts", "add_credit", one_more),
        ("filters", "list_orders", lists_any_status),
        ("completeness", "list_orders", leaves_out_the_last),
        ("boundaries", "place_order", refuses_the_limit),
        ("boundaries", "add_credit", gives_one_beyond),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_given_and_answered(check: str, tool: str, fault: Any) -> None:
    findings = await found(Shop({tool: fault}), check)
    assert {(finding.check, finding.tool) for finding in findings} == {(check, tool)}
    assert all(calls(finding)[-1] == tool for finding in findings)


def many_orders(seed: int) -> JsonObject:
    """One customer has most of the orders."""
    state = initial(seed)
    for order in list(state["orders"].values())[:7]:
        state["customers"][order["customer_id"]]["order_ids"].remove(order["order_id"])
        order["customer_id"] = "C100"
        state["customers"]["C100"]["order_ids"].append(order["order_id"])
    return state


@pytest.mark.parametrize(("fault", "words"), [(lists_five, "gives more"), (lists_three, "gives one less")])
async def test_lists_are_as_long_as_is_said(fault: Any, words: str) -> None:
    (finding,) = await found(Shop({"list_orders": fault}, states=many_orders), "list_length")
    assert words in finding.message
    assert calls(finding) == ["list_orders"]


async def test_a_stated_limit_is_tried_out() -> None:
    def takes_four(play: Play, **arguments: Any) -> JsonObject:
        try:
            return place_order(play, **arguments)
        except Refuse as refusal:
            own = [o for o in play.state["orders"].values() if o["customer_id"] == arguments["customer_id"]]
            if "at most" not in str(refusal) or sum(order["status"] == "open" for order in own) > 3:
                raise
        parked = next(order for order in own if order["status"] == "open")
        parked["status"] = "sent"
        try:
            return place_order(play, **arguments)
        finally:
            parked["status"] = "open"

    policy = "A customer can have at most 3 orders that are open."
    (finding,) = await found(Shop({"place_order": takes_four}, policy=policy), "stated_limits")
    assert finding.seen == "4 were made"
    assert calls(finding) == ["place_order"] * 4


async def test_refusals_state_the_numbers_of_the_policy() -> None:
    policy = "1. A customer can be given at most 501 pounds at a time."
    (finding,) = await found(Shop(policy=policy), "stated_numbers")
    assert finding.tool == "add_credit"
    assert "501" in finding.expected


# Doing things twice, taking them back, and what is left beside the state


def cancels_again(play: Play, order_id: str) -> JsonObject:
    order = row(play, "orders", order_id)
    if order["status"] == "cancelled":
        order["status"] = "open"
    return cancel_order(play, order_id)


def keeps_the_stock(play: Play, order_id: str) -> JsonObject:
    order = row(play, "orders", order_id)
    made = cancel_order(play, order_id)
    for line in order["lines"]:
        play.state["products"][line["product_id"]]["stock"] -= line["quantity"]
    return made


def takes_no_stock(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    play.state["products"][arguments["product_id"]]["stock"] += arguments["quantity"]
    return made


async def test_what_is_cancelled_cannot_be_cancelled_again() -> None:
    (finding,) = await found(Shop({"cancel_order": cancels_again}), "twice")
    assert calls(finding) == ["cancel_order", "cancel_order"]


@pytest.mark.parametrize(
    ("tool", "fault", "words"),
    [
        ("cancel_order", keeps_the_stock, "moved by -"),
        ("place_order", takes_no_stock, "making it had not moved it"),
    ],
    ids=["keeps", "never took"],
)
async def test_cancelling_gives_back_what_ordering_took(tool: str, fault: Any, words: str) -> None:
    (finding,) = await found(Shop({tool: fault}), "undo")
    assert words in finding.seen
    assert calls(finding) == ["place_order", "cancel_order"]


def remembers_beside(play: Play, order_id: str, note: str) -> JsonObject:
    if play.beside.get(order_id):
        raise Refuse("a note can be written only once")
    made = set_note(play, order_id, note)
    play.beside[order_id] = True
    return made


def reads_an_old_index(play: Play, customer_id: str, status: str | None = None) -> JsonObject:
    kept = play.beside.setdefault(customer_id, [])
    kept = kept or play.beside[customer_id]
    if not kept:
        kept += [name for name, order in play.state["orders"].items() if order["customer_id"] == customer_id]
    row(play, "customers", customer_id)
    found = [play.state["orders"][name] for name in kept if status in (None, play.state["orders"][name]["status"])]
    return {"orders": [summary(order) for order in found[:4]]}


@pytest.mark.parametrize(
    ("tool", "fault", "sequence"),
    [
        ("set_note", remembers_beside, ["set_note", "reload", "set_note"]),
        ("list_orders", reads_an_old_index, ["list_orders", "place_order", "reload", "list_orders"]),
    ],
    ids=["unsaved field", "stale index"],
)
async def test_saving_and_loading_changes_nothing(tool: str, fault: Any, sequence: list[str]) -> None:
    findings = [finding for finding in await found(Shop({tool: fault}), "save_load") if finding.tool == tool]
    assert len(findings) == 1
    assert calls(findings[0]) == sequence


def counts_in_the_module(play: Play, **arguments: Any) -> JsonObject:
    play.world.shared["order"] = play.world.shared.get("order", 200) + 1
    play.state["counters"]["order"] = play.world.shared["order"]
    return place_order(play, **arguments)


def keeps_the_first_answer(play: Play, product_id: str) -> JsonObject:
    kept: JsonObject = play.world.shared.setdefault(product_id, get_product(play, product_id))
    return kept


def by_the_clock(play: Play, order_id: str) -> JsonObject:
    made = cancel_order(play, order_id)
    play.state["orders"][order_id]["cancelled_on"] = f"{2026 + 10 * play.world.shift}-03-20"
    return made


def by_the_hash_seed(play: Play, customer_id: str) -> JsonObject:
    return {**get_customer(play, customer_id), "label": f"seed {play.world.hash_seed % 2 and play.world.hash_seed > 2}"}


@pytest.mark.parametrize(
    ("check", "tool", "fault"),
    [
        ("determinism", "place_order", counts_in_the_module),
        ("isolation", "get_product", keeps_the_first_answer),
        ("clock", "cancel_order", by_the_clock),
        ("process", "get_customer", by_the_hash_seed),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_the_same_calls_give_the_same_everywhere(check: str, tool: str, fault: Any) -> None:
    again = ("determinism", "clock", "process", "isolation")
    findings = await found(Reopened({tool: fault}), *again)
    assert {(finding.check, finding.tool) for finding in findings} == {(check, tool)}
    assert calls(findings[0])[-1] == tool


async def test_checks_that_need_another_process_are_skipped_with_the_reason() -> None:
    report = await report_on(Shop(), "clock", "process")
    assert {check.outcome for check in report.checks} == {"skipped"}
    assert all("another process" in check.reason for check in report.checks)


async def test_without_restore_nothing_is_saved_and_loaded() -> None:
    report = await report_on(Shop(can_restore=False), "save_load", "round_trip", "determinism")
    outcomes = {check.name: check.outcome for check in report.checks}
    assert outcomes == {"save_load": "skipped", "round_trip": "skipped", "determinism": "passed"}
