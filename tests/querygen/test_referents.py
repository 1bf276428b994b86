"""References of requests, read as a reader would, on executed chains of bundled environments."""

import random

import pytest
from executed import Chain, build_selector_key, said

from trajsmith.phrasing import ToolPhrases, Wording
from trajsmith.querygen.partition import find_goals
from trajsmith.querygen.request import RequestWriter
from trajsmith.records import RecordDropped
from trajsmith.verify import ReferenceCheck, build_gold_turn
from trajsmith.verify.spoken_turns import EntityNeed, SpokenCall, SpokenTurn

SEEDS = range(8)


def ask_plainly(chain, **templates):
    """The chain with one way to ask for each of these tools."""
    book = chain.wording.phrasebook
    tools = {
        name: book.tools[name].model_copy(update={"ask": (template,), "say": ()})
        for name, template in templates.items()
    }
    book = book.model_copy(update={"tools": {**book.tools, **tools}})
    chain.wording = Wording(book, chain.spec.tools)
    assert all(isinstance(phrases, ToolPhrases) for phrases in tools.values())
    return chain


def write_requests(chain, cuts, seed):
    """The requests of the turns; None if no words were found."""
    writer = RequestWriter(chain.wording, chain.calls, chain.known, chain.initial, random.Random(seed), chain.now)
    try:
        return [
            writer.write(start, stop, find_goals(chain.calls, start, stop), withhold=False).text for start, stop in cuts
        ]
    except RecordDropped as dropped:
        assert dropped.reason.startswith("ambiguous_reference:")
        return None


def find_faults(chain, cuts, queries, open_keys=()):
    check = ReferenceCheck(chain.wording, chain.initial, chain.now)
    for (start, stop), text in zip(cuts, queries, strict=True):
        check.read(build_gold_turn(text, chain.calls[start:stop], start, chain.calls, open_keys))
    return [(fault.kind, fault.turn) for fault in check.faults]


async def read_orders(chain):
    customer = next(
        customer
        for customer in chain.state["customers"].values()
        if sum(order["customer_id"] == customer["customer_id"] for order in chain.state["orders"].values()) > 2
    )
    await chain.call("find_customer_by_email", email=said(customer["email"], "email"))
    await chain.call("list_customer_orders", customer_id=chain.take(0, "$.customer_id"))
    return sorted(chain.calls[1].result["result"], key=lambda row: row["placed_at"])


@pytest.fixture
async def orders():
    """Two turns: an order is placed; then an older one is looked at that was the latest when the list was read."""
    chain = ask_plainly(await Chain("retail").start(), get_order="check what is in {order_id}")
    latest = (await read_orders(chain))[-1]
    sku = next(product["sku"] for product in chain.state["products"].values() if product["in_stock"] > 2)
    await chain.call("place_order", customer_id=chain.take(0, "$.customer_id"), sku=said(sku, "sku"))
    pick = chain.take(1, "$.result[*].order_id", latest, "largest", "placed_at")
    await chain.call("get_order", order_id=pick)
    return chain, ((0, 3), (3, 4))


async def test_the_most_recent_order_is_the_one_just_placed(orders):
    chain, cuts = orders
    queries = ["Please order one for me.", "Now check my most recent order."]
    assert find_faults(chain, cuts, queries) == [("wrong_referent", 1)]
    for seed in SEEDS:
        written = write_requests(chain, cuts, seed)
        assert written is None or "most recent" not in written[1]


@pytest.mark.parametrize("words", ["that order", "the new order", "the same order"])
async def test_that_order_is_the_one_just_placed(orders, words):
    chain, cuts = orders
    queries = ["Please order one for me.", f"What is in {words}?"]
    assert find_faults(chain, cuts, queries) == [("wrong_referent", 1)]


@pytest.fixture
async def two_events():
    """Two events are looked at in one turn, and again in the next."""
    chain = await Chain("calendar").start()
    titles = [event["title"] for event in chain.state["events"].values() if event["starts_at"] > chain.state["now"]]
    first, second = [title for title in dict.fromkeys(titles) if titles.count(title) == 1][:2]
    for title in (first, second):
        await chain.call("find_events", title=said(title, f"title of {title}"))
    picks = [chain.take(index, "$.result[*].event_id", chain.calls[index].result["result"][0]) for index in (0, 1)]
    for pick in picks * 2:
        await chain.call("get_event", event_id=pick)
    return chain, ((0, 4), (4, 6)), (first, second)


async def test_the_event_from_before_stands_for_one_event_only(two_events):
    chain, cuts, (first, second) = two_events
    opening = f'Who comes to "{first}"? And who comes to "{second}"?'
    twice = "Who comes to the appointment from before? And where is the appointment from before?"
    assert ("unresolved_reference", 1) in find_faults(chain, cuts, [opening, twice])
    for seed in SEEDS:
        written = write_requests(chain, cuts, seed)
        assert written is None or written[1].count("from before") <= 1


@pytest.fixture
async def event_after_new_one():
    """An event is looked up and moved, another one is made, and the first one gets a guest."""
    chain = ask_plainly(await Chain("calendar").start(), get_event="find out who comes to {event_id}")
    titles = [event["title"] for event in chain.state["events"].values() if event["starts_at"] > chain.state["now"]]
    title = next(title for title in titles if titles.count(title) == 1)
    calendar = next(of["calendar_name"] for of in chain.state["calendars"].values() if of["kind"] == "private")
    await chain.call("find_events", title=said(title, "title"))
    pick = chain.take(0, "$.result[*].event_id", chain.calls[0].result["result"][0])
    await chain.call("get_event", event_id=pick)
    values = {"title": "Picnic", "day": f"{chain.now.year}-06-07", "start_time": "06:15", "minutes": 30}
    spoken = {name: said(value, f"new {name}") for name, value in {**values, "calendar_name": calendar}.items()}
    await chain.call("create_event", **spoken)
    await chain.call("get_event", event_id=pick)
    return chain, ((0, 2), (2, 3), (3, 4)), title


async def test_the_event_after_another_was_made_is_the_new_one(event_after_new_one):
    chain, cuts, title = event_after_new_one
    queries = [f'Who comes to "{title}"?', 'Please add "Picnic" to my calendar.', "Who comes to the appointment?"]
    assert find_faults(chain, cuts, queries) == [("wrong_referent", 2)]
    named = [*queries[:2], f'Who comes to "{title}"?']
    assert find_faults(chain, cuts, named) == []
    for seed in SEEDS:
        written = write_requests(chain, cuts, seed)
        assert written is None or title in written[2] or "from before" in written[2] or "tomorrow at" in written[2]


@pytest.fixture
async def payments():
    """Money goes into a goal from one of several accounts, and then to a payee from the same one."""
    chain = await Chain("bank").start()
    ask_plainly(chain, add_to_savings_goal="add {amount|money} to {goal_id}", pay_payee="pay {payee_id} {amount|money}")
    accounts = chain.state["accounts"].values()
    customer, account = next(
        (customer, account)
        for customer in chain.state["customers"].values()
        for account in accounts
        if account["customer_id"] == customer["customer_id"] and account["balance"] > 200
        if account["kind"] == "current"
        and any(payee["customer_id"] == customer["customer_id"] for payee in chain.state["payees"].values())
    )
    await chain.call("find_customer_by_phone", phone=said(customer["phone"], "phone"))
    who = chain.take(0, "$.customer_id")
    for tool in ("list_accounts", "list_savings_goals", "list_payees"):
        await chain.call(tool, customer_id=who)
    row = next(row for row in chain.calls[1].result["result"] if row["account_id"] == account["account_id"])
    pick = chain.take(1, "$.result[*].account_id", row, field="name")
    goal, payee = (chain.calls[index].result["result"][0] for index in (2, 3))
    goal_id = chain.take(2, "$.result[*].goal_id", goal, field="title")
    await chain.call("add_to_savings_goal", account_id=pick, goal_id=goal_id, amount=said(10.0, "saved"))
    payee_id = chain.take(3, "$.result[*].payee_id", payee, field="name")
    await chain.call("pay_payee", account_id=pick, payee_id=payee_id, amount=said(11.0, "paid"))
    return chain, ((0, 5), (5, 6)), (row["name"], goal["title"], payee["name"])


async def test_a_payment_names_its_account_or_the_agent_asks(payments):
    chain, cuts, (account, goal, payee) = payments
    opening = f"Please put £10.00 into my {goal} goal from my {account}."
    silent = f"Please pay {payee} £11.00."
    assert find_faults(chain, cuts, [opening, silent]) == [("unnamed_value", 1)]
    assert find_faults(chain, cuts, [opening, f"Please pay {payee} £11.00 from the same account."]) == []
    for seed in SEEDS:
        written = write_requests(chain, cuts, seed)
        assert written is not None
        assert "same account" in written[1] or "that account" in written[1] or account in written[1]


async def test_what_the_agent_asks_for_is_named_by_the_answer(payments):
    chain, cuts, (_account, goal, _payee) = payments
    check = ReferenceCheck(chain.wording, chain.initial, chain.now)
    _, source = chain.take(1, "$.result[*].account_id", chain.calls[1].result["result"][0], field="name")
    key = build_selector_key(1, chain.calls[4].provenance["account_id"].selectors[0])
    assert source.call == 1
    turn = build_gold_turn(f"Please put £10.00 into my {goal} goal.", chain.calls[:5], 0, chain.calls, {key})
    assert check.read(turn) == []
    assert len(find_faults(chain, cuts[:1], [f"Please put £10.00 into my {goal} goal."])) == 1


async def test_a_superlative_is_not_told_from_a_list_that_was_cut():
    chain = await Chain("retail").start()
    shown = (await chain.call("search_products"))["result"]
    dearest = max(shown, key=lambda row: row["price"])
    assert len(shown) < len(chain.state["products"])
    pick = chain.take(0, "$.result[*].sku", dearest, "largest", "price")
    await chain.call("get_product", sku=pick)
    words = ["Is the most expensive product in stock?"]
    assert find_faults(chain, ((0, 2),), words) == [("superlative_on_cut_list", 0)]
    assert all(write_requests(chain, ((0, 2),), seed) is None for seed in SEEDS)


async def test_a_superlative_is_told_from_a_cut_list_that_is_sorted_by_it():
    chain = await Chain("retail").start()
    shown = (await chain.call("search_products"))["result"]
    pick = chain.take(0, "$.result[*].sku", min(shown, key=lambda row: row["price"]), "smallest", "price")
    await chain.call("get_product", sku=pick)
    assert find_faults(chain, ((0, 2),), ["Is the cheapest product in stock?"]) == []


async def test_two_things_that_fit_alike_are_not_told_apart():
    chain = await Chain("retail").start()
    rows = await read_orders(chain)
    twins = [row for row in rows if [other["status"] for other in rows].count(row["status"]) > 1]
    pick = chain.take(1, "$.result[*].order_id", twins[0], field="placed_at")
    await chain.call("get_order", order_id=pick)
    text = f"My email is x@example.com. What is in the {twins[0]['status']} order?"
    assert find_faults(chain, ((0, 3),), [text]) == [("unresolved_reference", 0)]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("Please pay £5 from an account of mine.", ["unnamed_value"]),
        ("Please pay £5 from any current account.", ["unnamed_value"]),
        ("Please pay £5 from the account.", []),
        ("Please pay £5.", []),
    ],
)
async def test_any_of_a_kind_is_not_the_one_that_a_field_has_told(text, faults):
    chain = await Chain("bank").start()
    check = ReferenceCheck(chain.wording, None, chain.now)
    paid = SpokenCall(0, "pay_payee", {"amount": 3}, {"account_id": "A7", "amount": 3}, "write", True)
    check.read(SpokenTurn("Please pay £3.", [paid], [], frozenset({0})))
    again = SpokenCall(1, "pay_payee", {"account_id": "A7", "amount": 5}, None, "write", True)
    need = EntityNeed(1, "account_id", "account_id", "A7", None, None, must_be_named=True)
    assert [fault.kind for fault in check.read(SpokenTurn(text, [again], [need], frozenset({1})))] == faults
