"""References that people shorten: to what they have just seen, to today, and to the only thing of its kind."""

import random

import pytest
from executed import Chain, said
from test_referents import ask_plainly, read_orders, write_requests

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.text_values import TextValues
from trajsmith.querygen.partition import find_goals
from trajsmith.querygen.request import RequestWriter, is_identity

SEEDS = range(8)


async def read_line(chain, row):
    """An order is picked by its items, and its first line is returned."""
    pick = chain.take(1, "$.result[*].order_id", row, "equals", "items")
    await chain.call("get_order", order_id=pick)
    line = chain.calls[2].result["lines"][0]
    selector = chain.take(2, "$.lines[*].line_id", line, "equals", "product_name")[1].selectors[0]
    value, source = chain.take(2, "$.lines[*].line_id", line, "equals", "product_name")
    selectors = (selector.model_copy(update={"rows": "$.lines"}),)
    line_id = value, source.model_copy(update={"selectors": selectors})
    await chain.call("request_return", line_id=line_id, reason=said("changed_mind", "reason"))
    return line["product_name"]


@pytest.fixture
async def returned():
    """An item goes back out of an order that holds nothing else."""
    for seed in range(1, 30):
        state = Chain("retail").cls.seed_state("medium", seed).model_dump(mode="json")
        chain = ask_plainly(await Chain("retail", state).start(), request_return="return {line_id}")
        for customer in state["customers"].values():
            chain.calls.clear()
            await chain.call("find_customer_by_email", email=said(customer["email"], "email"))
            await chain.call("list_customer_orders", customer_id=chain.take(0, "$.customer_id"))
            rows = chain.calls[1].result["result"]
            items = [row["items"] for row in rows]
            for row in rows:
                name = row["items"].split(" x ")[-1]
                alone = row["items"].startswith("1 x ") and ", " not in row["items"]
                if alone and row["status"] == "delivered" and sum(name in other for other in items) == 1:
                    try:
                        return chain, await read_line(chain, row)
                    except AssertionError:  # it has gone back already, or too much time has passed
                        await chain.start()
                        break
    raise AssertionError("no order with one item")


async def test_an_order_is_not_called_by_the_item_that_the_sentence_is_about(returned):
    chain, name = returned
    for seed in SEEDS:
        (text,) = write_requests(chain, ((0, 4),), seed)
        assert text.count(name) == 1, text


async def test_what_is_from_today_is_called_so():
    chain = ask_plainly(await Chain("retail").start(), get_order="check what is in {order_id}")
    latest = (await read_orders(chain))[-1]
    now = chain.now
    latest["placed_at"] = now.date().isoformat()
    pick = chain.take(1, "$.result[*].order_id", latest, "equals", "placed_at")
    await chain.call("get_order", order_id=pick)
    for seed in SEEDS:
        (text,) = write_requests(chain, ((0, 3),), seed)
        assert "today" in text
        assert f"{now.day} {now:%B}" not in text


def test_a_day_that_is_named_by_its_distance_is_read():
    wording = Chain("retail").now
    values = TextValues("my order from yesterday", wording.replace(month=3, day=1, year=2027))
    assert values.days == {(2, 28): {2027}}
    assert TextValues("my order from yesterday").days == {}


async def test_the_only_voucher_that_was_told_is_that_voucher():
    chain = ask_plainly(
        await Chain("travel").start(),
        list_vouchers="see my vouchers",
        use_voucher="use {voucher_code} for {booking_id}",
    )
    state = chain.state
    owner, voucher = next(
        (voucher["traveller_id"], voucher)
        for voucher in state["vouchers"].values()
        if sum(other["traveller_id"] == voucher["traveller_id"] for other in state["vouchers"].values()) == 1
        and any(
            trip["traveller_id"] == voucher["traveller_id"] and trip["status"] == "confirmed"
            for trip in state["bookings"].values()
        )
    )
    email = state["travellers"][owner]["email"]
    await chain.call("find_traveller", email=said(email, "email"))
    await chain.call("list_vouchers", traveller_id=chain.take(0, "$.traveller_id"))
    await chain.call("list_trips", traveller_id=chain.take(0, "$.traveller_id"))
    (row,) = chain.calls[1].result["result"]
    trip = next(trip for trip in chain.calls[2].result["result"] if trip["status"] == "confirmed")
    await chain.call(
        "use_voucher",
        voucher_code=chain.take(1, "$.result[*].voucher_code", row, "equals", "valid_until"),
        booking_id=chain.take(2, "$.result[*].booking_id", trip, "equals", "departs_at"),
    )
    for seed in SEEDS:
        _, text = write_requests(chain, ((0, 2), (2, 4)), seed)
        assert "that voucher" in text or " it " in text, text
        assert voucher["voucher_code"] not in text


async def test_whom_the_agent_is_to_find_is_not_kept_back():
    chain = await Chain("calendar").start()
    contact = next(iter(chain.state["contacts"].values()))
    await chain.call("find_contact", full_name=said(contact["full_name"], "name"))
    assert not is_identity(chain.calls[0], chain.wording)
    shop = await Chain("retail").start()
    customer = next(iter(shop.state["customers"].values()))
    await shop.call("find_customer_by_email", email=said(customer["email"], "email"))
    assert is_identity(shop.calls[0], shop.wording)


async def test_who_has_just_seen_a_list_says_which_of_its_things_they_mean():
    state = Chain("calendar").cls.seed_state("medium", 2).model_dump(mode="json")
    chain = await Chain("calendar", state).start()
    await chain.call("list_tasks")
    rows = chain.calls[0].result["result"]
    assert len(rows) > 1
    pick = chain.take(0, "$.result[*].task_id", rows[0], "equals", "task")
    await chain.call("complete_task", task_id=pick)
    for seed in SEEDS:
        rng = random.Random(seed)
        writer = RequestWriter(chain.wording, chain.calls, chain.known, chain.initial, rng, chain.now)
        writer.write(0, 1, find_goals(chain.calls, 0, 1), withhold=False)
        writer.write(1, 2, find_goals(chain.calls, 1, 2), withhold=True)
        assert not writer.asked


def test_wishes_to_check_something_are_those_of_who_wants_to_know():
    ask = get_language().grammar.ask_for_oneself
    assert ask("I'd like to check what's on in the hall.") == "I'd like to know what's on in the hall."
    assert ask("I want to go through my bills.") == "I want to see my bills."


async def test_nobody_lists_what_is_in_an_order_to_ask_what_is_in_it():
    chain = ask_plainly(await Chain("retail").start(), get_order="find out what is in {order_id}")
    rows = await read_orders(chain)
    row = next(row for row in rows if sum(row["items"] == other["items"] for other in rows) == 1)
    await chain.call("get_order", order_id=chain.take(1, "$.result[*].order_id", row, "equals", "items"))
    names = [line["product_name"] for line in chain.calls[2].result["lines"]]
    for seed in SEEDS:
        (text,) = write_requests(chain, ((0, 3),), seed)
        assert not any(name in text for name in names), text


async def test_what_was_listed_by_name_is_called_by_it_and_not_by_its_date():
    state = Chain("calendar").cls.seed_state("medium", 2).model_dump(mode="json")
    chain = ask_plainly(await Chain("calendar", state).start(), cancel_event="cancel {event_id}")
    await chain.call("list_events", days=said(7, "days"))
    rows = chain.calls[0].result["result"]
    row = next(row for row in rows if sum(row["title"] == other["title"] for other in rows) == 1)
    pick = chain.take(0, "$.result[*].event_id", row, "equals", "starts_at")
    await chain.call("cancel_event", event_id=pick)
    for seed in SEEDS:
        _, text = write_requests(chain, ((0, 1), (1, 2)), seed)
        assert row["title"].lower() in text.lower() or " it" in text or "that appointment" in text, text
        assert "at " + row["starts_at"][11:16] not in text
