"""Each check on a shop with one fault, and all of them on a sound one."""

import copy
from typing import Any

import pytest
from corner_shop import (
    TOOLS,
    Play,
    Refuse,
    Reopened,
    Shop,
    Tool,
    cancel_order,
    changed,
    get_customer,
    initial,
    place_order,
    row,
    set_note,
    summary,
    text,
)
from examining import calls, found, report_on

from trajsmith.envcheck import CheckPlan
from trajsmith.records import JsonObject


async def test_a_sound_shop_gives_no_finding() -> None:
    report = await report_on(Reopened(policy="A customer can have at most 3 orders that are open."), plan=CheckPlan())
    assert report.findings == ()
    assert report.score == 1.0
    assert {check.outcome for check in report.checks} <= {"passed", "skipped", "nothing to see"}
    assert all(tool.succeeded >= 4 for tool in report.tools)


# Single calls


def breaks_at_zero_stock(play: Play, product_id: str) -> JsonObject:
    product = row(play, "products", product_id)
    return {**product, "share": 1 / product["stock"]}


def says_nothing(play: Play, order_id: str) -> JsonObject:
    try:
        return cancel_order(play, order_id)
    except Refuse:
        raise Refuse("error") from None


def reports_errors_as_results(play: Play, order_id: str) -> Any:
    try:
        return cancel_order(play, order_id)
    except Refuse as error:
        return f"Database error: {error}"


def without_total(play: Play, **arguments: Any) -> JsonObject:
    return {name: value for name, value in place_order(play, **arguments).items() if name != "total"}


def counts_before_it_looks(play: Play, **arguments: Any) -> JsonObject:
    play.state["counters"]["order"] += 1
    try:
        return place_order(play, **arguments)
    finally:
        play.state["counters"]["order"] -= 0


def notes_who_looks(play: Play, customer_id: str) -> JsonObject:
    play.state["counters"]["order"] += 1
    return get_customer(play, customer_id)


def never_writes(play: Play, order_id: str, note: str) -> JsonObject:
    row(play, "orders", order_id)
    return {"order_id": order_id, "note": note}


def sometimes_does_nothing(play: Play, order_id: str, note: str) -> JsonObject:
    if row(play, "orders", order_id)["status"] == "sent":
        return {"order_id": order_id, "note": note}
    return set_note(play, order_id, note)


def never_succeeds(play: Play, order_id: str) -> JsonObject:
    raise Refuse(f"there is no customer {order_id}")


def any_product(play: Play, product_id: str) -> JsonObject:
    return copy.deepcopy(play.state["products"].get(product_id) or next(iter(play.state["products"].values())))


@pytest.mark.parametrize(
    ("check", "tool", "fault", "sequence"),
    [
        ("crash", "get_product", breaks_at_zero_stock, ["get_product"]),
        ("refusal_reason", "cancel_order", says_nothing, ["cancel_order"]),
        ("unmarked_refusal", "cancel_order", reports_errors_as_results, ["cancel_order"]),
        ("output_schema", "place_order", without_total, ["place_order"]),
        ("refused_change", "place_order", counts_before_it_looks, ["place_order"]),
        ("effect", "get_customer", notes_who_looks, ["get_customer"]),
        ("writes", "set_note", never_writes, ["set_note"]),
        ("silent_write", "set_note", sometimes_does_nothing, ["set_note"]),
        ("reachable", "cancel_order", never_succeeds, ["cancel_order"]),
        ("unknown", "get_product", any_product, ["get_product"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_fault_that_one_call_shows(check: str, tool: str, fault: Any, sequence: list[str]) -> None:
    findings = await found(Shop({tool: fault}), check)
    assert [(finding.check, finding.tool) for finding in findings] == [(check, tool)]
    assert calls(findings[0]) == sequence


async def test_a_crash_is_told_with_its_arguments_and_error() -> None:
    (finding,) = await found(Shop({"get_product": breaks_at_zero_stock}), "crash")
    assert finding.severity == "error"
    assert "ZeroDivisionError" in finding.message
    assert finding.case is not None
    assert set(finding.case.steps[0].arguments) == {"product_id"}


class LoggingShop(Shop):
    """A shop whose states hold a log that begins with an error."""

    async def states(self, seed: int) -> list[JsonObject]:
        return [{**state, "log": "Error: the printer is out of paper"} for state in await super().states(seed)]


def reads_the_log(play: Play, product_id: str) -> Any:
    row(play, "products", product_id)
    return "Error: the printer is out of paper"


async def test_a_text_of_the_state_that_begins_with_error_is_a_result() -> None:
    assert await found(LoggingShop({"get_product": reads_the_log}), "unmarked_refusal") == []
    (finding,) = await found(Shop({"get_product": reads_the_log}), "unmarked_refusal")
    assert finding.tool == "get_product" and "out of paper" in finding.seen


async def test_a_tool_that_succeeds_in_one_initial_state_is_reachable() -> None:
    """That state is none of those from which every tool is played."""

    def list_prices(state: JsonObject) -> JsonObject:
        return {key: product["price"] for key, product in state["products"].items()}

    def succeeds_in_one_state(play: Play, order_id: str) -> JsonObject:
        if list_prices(play.state) != list_prices(initial(5)):
            raise Refuse("this is closed")
        return cancel_order(play, order_id)

    assert await found(Shop({"cancel_order": succeeds_in_one_state}), "reachable") == []


def opens_a_file(play: Play, product_id: str) -> JsonObject:
    raise PermissionError("the sandbox does not allow open (shop.py:36)")


async def test_a_tool_that_the_sandbox_always_forbids_is_a_warning_and_costs_score() -> None:
    report = await report_on(Shop({"get_product": opens_a_file}), "crash", "reachable")
    (finding,) = report.findings
    assert (finding.severity, finding.tool) == ("warning", "get_product")
    assert finding.message == "get_product cannot run in the sandbox: it does not allow open (shop.py:36)"
    scores = {tool.name: tool.score for tool in report.tools}
    assert scores.pop("get_product") < 0.5 and set(scores.values()) == {1.0}


def says_that_the_service_is_out(play: Play, product_id: str) -> JsonObject:
    raise Refuse("service unavailable: the sandbox does not allow open (shop.py:36)")


async def test_a_tool_that_hides_that_the_sandbox_forbids_it_costs_score_too() -> None:
    report = await report_on(Shop({"get_product": says_that_the_service_is_out}), "crash", "reachable")
    (finding,) = report.findings
    assert (finding.severity, finding.tool) == ("warning", "get_product")
    assert finding.message == "get_product cannot run in the sandbox: it does not allow open (shop.py:36)"


# What holds in all initial states


def wrong_key(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    play.state["orders"][f"X{made['order_id']}"] = play.state["orders"].pop(made["order_id"])
    return made


def unknown_owner(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    play.state["orders"][made["order_id"]]["customer_id"] = made["order_id"]
    return made


def other_form(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    order = play.state["orders"].pop(made["order_id"])
    order["order_id"] = name = f"order number {play.state['counters']['order']}"
    order["lines"][0]["line_id"] = f"{name}-1"
    play.state["orders"][name] = order
    play.state["customers"][order["customer_id"]]["order_ids"][-1] = name
    return summary(order)


def sells_what_is_not_there(play: Play, **arguments: Any) -> JsonObject:
    product = row(play, "products", arguments["product_id"])
    product["stock"] += 20
    try:
        return place_order(play, **arguments)
    finally:
        product["stock"] -= 20


def total_for_one_more(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    order = play.state["orders"][made["order_id"]]
    order["total"] = round(order["total"] + order["lines"][0]["price"], 2)
    return summary(order)


def forgets_the_index(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    play.state["customers"][arguments["customer_id"]]["order_ids"].remove(made["order_id"])
    return made


def forgets_the_day(play: Play, order_id: str) -> JsonObject:
    cancel_order(play, order_id)
    order = row(play, "orders", order_id)
    order["cancelled_on"] = None
    return summary(order)


def total_as_text(play: Play, **arguments: Any) -> JsonObject:
    made = place_order(play, **arguments)
    play.state["orders"][made["order_id"]]["total"] = str(made["total"])
    return made


@pytest.mark.parametrize(
    ("check", "tool", "fault", "topic"),
    [
        ("references", "place_order", wrong_key, "goes by its order_id"),
        ("references", "place_order", unknown_owner, "customer_id is a key of customers"),
        ("identifiers", "place_order", other_form, "the form W#"),
        ("bounds", "place_order", sells_what_is_not_there, "stock is never negative"),
        ("totals", "place_order", total_for_one_more, "quantity x price"),
        ("indexes", "place_order", forgets_the_index, "order_ids lists the orders"),
        ("copies", "cancel_order", forgets_the_day, "cancelled_on has a value exactly if"),
        ("state_schema", "place_order", total_as_text, "orders.total"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
async def test_a_broken_fact(check: str, tool: str, fault: Any, topic: str) -> None:
    findings = await found(Shop({tool: fault}), check)
    assert {finding.tool for finding in findings} == {tool}
    assert any(topic in finding.message for finding in findings)
    assert all(calls(finding) == [tool] for finding in findings)


# What the environment says of itself


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"about": ""}, "no description"),
        ({"parameters": {"customer_id": {"type": "strange"}}}, "no valid JSON Schema"),
        ({"required": ("customer_id", "ghost")}, "requires ghost"),
    ],
    ids=["description", "type", "required"],
)
async def test_schemas(more: dict[str, Any], words: str) -> None:
    shop = Shop(tools=changed("get_customer", **more), checks_arguments=False)
    findings = [one for one in (await report_on(shop, "schema")).findings if one.tool == "get_customer"]
    assert any(words in finding.message for finding in findings)


async def test_parameters_without_a_word_are_noted() -> None:
    shop = Shop(tools=changed("get_customer", parameters={"customer_id": {"type": "string"}}))
    (finding,) = (await report_on(shop, "schema")).findings
    assert (finding.severity, finding.tool) == ("note", "get_customer")


async def test_a_required_argument_that_is_not_required() -> None:
    def place(play: Play, customer_id: str, product_id: str, quantity: int = 1, note: str = "") -> JsonObject:
        return place_order(play, customer_id, product_id, quantity, note)

    (finding,) = await found(Shop({"place_order": place}, checks_arguments=False), "signature")
    assert "requires quantity, and succeeds without it" in finding.message


async def test_a_state_that_does_not_fit_its_schema() -> None:
    def strange(seed: int) -> JsonObject:
        state = initial(seed)
        state["products"]["P10"]["stock"] = "many"
        return state

    (finding,) = await found(Shop(states=strange), "start")
    assert "'many' is not of type 'integer'" in finding.seen


async def test_an_environment_without_states_has_a_report() -> None:
    class Empty(Shop):
        async def states(self, seed: int) -> list[JsonObject]:
            return []

    report = await report_on(Empty())
    assert report.score == 0.0
    assert [finding.check for finding in report.findings] == ["start"]


# Fairness


async def test_an_idempotent_write_is_only_noted_where_the_house_allows_it() -> None:
    def again(play: Play, order_id: str, note: str) -> JsonObject:
        row(play, "orders", order_id)["note"] = note
        return {"order_id": order_id, "note": note}

    def credit(play: Play, customer_id: str, amount: float) -> JsonObject:
        return {"customer_id": customer_id, "credit": row(play, "customers", customer_id)["credit"]}

    shop = Shop({"set_note": again, "add_credit": credit})
    assert [finding.tool for finding in await found(shop, "silent_write")] == []


async def test_a_discount_does_not_break_a_total() -> None:
    def discount(play: Play, order_id: str) -> JsonObject:
        order = row(play, "orders", order_id)
        order["total"] = round(order["total"] * 0.9, 2)
        return summary(order)

    tool = Tool(discount, "Take ten percent off.", {"order_id": text("Order number.")}, ("order_id",))
    shop = Shop(tools={**TOOLS, "discount_order": tool})
    assert await found(shop, "totals") == []


async def test_what_is_moved_elsewhere_is_not_missed() -> None:
    def archive(play: Play, order_id: str) -> JsonObject:
        order = row(play, "orders", order_id)
        play.state["archive"][order_id] = play.state["orders"].pop(order_id)
        return summary(order)

    def with_archive(seed: int) -> JsonObject:
        return {**initial(seed), "archive": {}}

    tool = Tool(archive, "Put an order away.", {"order_id": text("Order number.")}, ("order_id",), destructive=True)
    shop = Shop(tools={**TOOLS, "archive_order": tool}, states=with_archive)
    assert await found(shop, "references") == []
