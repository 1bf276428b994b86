"""The bank: each rule of its policy binds, and its tools work together."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.library.bank import Bank
from trajsmith.environments.library.bank.rules import compute_available, compute_left_today
from trajsmith.environments.library.bank.state import (
    Account,
    BankState,
    Card,
    Customer,
    Payee,
    SavingsGoal,
    StandingOrder,
    Transaction,
)
from trajsmith.grounding import is_list_cut
from trajsmith.grounding.list_limits import find_page_size

NOW = datetime(2026, 5, 12, 14, 0)
TOMORROW, IN_THREE_DAYS = "2026-05-13", "2026-05-15"


def account(account_id: str, kind: Any, balance: float, overdraft: float = 0.0, minimum: float = 0.0) -> Account:
    return Account(
        account_id=account_id,
        customer_id="C1",
        name=f"Account {account_id}",
        kind=kind,
        account_number="10000000",
        balance=balance,
        overdraft_limit=overdraft,
        minimum_balance=minimum,
    )


def payment(transaction_id: str, days_ago: int, **changes: Any) -> Transaction:
    made = Transaction(
        transaction_id=transaction_id,
        account_id="A1",
        card_id="K1",
        payee_id=None,
        kind="card",
        direction="out",
        booked_at=NOW - timedelta(days=days_ago),
        description="Luna Bakery",
        amount=10.0,
        status="booked",
    )
    return made.model_copy(update=changes)


@pytest.fixture
def bank() -> Bank:
    state = BankState(now=NOW, counters={"payee": 10, "transaction": 10})
    state.customers = {
        key: Customer(
            customer_id=key,
            name="Ida Holm",
            phone=phone,
            email="i@example.com",
            city="Larkhill",
            daily_transfer_limit=500.0,
        )
        for key, phone in (("C1", "+44 7111 222333"), ("C2", "+44 7111 222334"))
    }
    state.accounts = {
        "A1": account("A1", "current", 100.0, overdraft=300.0),
        "A2": account("A2", "savings", 900.0, minimum=100.0),
    }
    state.cards = {
        "K1": Card(
            card_id="K1",
            account_id="A1",
            kind="debit",
            last_digits="4821",
            expires_on=NOW.date(),
            status="active",
            freeze_reason=None,
        )
    }
    ages = {"P1": ("C1", 400), "P2": ("C1", 5 / 24), "P3": ("C2", 400)}
    state.payees = {
        key: Payee(
            payee_id=key,
            customer_id=owner,
            name=f"Payee {key}",
            account_number=f"2000000{key[1]}",
            added_at=NOW - timedelta(days=days),
        )
        for key, (owner, days) in ages.items()
    }
    state.transactions = {
        made.transaction_id: made
        for made in (
            payment("T1", 10),
            payment("T2", 60),
            payment("T3", 61),
            payment("T4", 0, status="pending", amount=40.0),
            payment("T5", 3, kind="deposit", direction="in", card_id=None),
        )
    }
    state.goals = {"G1": SavingsGoal(goal_id="G1", customer_id="C1", title="New laptop", target=1000.0, saved=900.0)}
    return Bank(state)


def refused(bank: Bank, tool: str, why: str, /, **arguments: Any) -> None:
    before = bank.dump()
    result = bank.call(tool, arguments)
    assert result.error == "refused"
    assert why in result.content["error"]
    assert bank.dump() == before


def passes(bank: Bank, tool: str, /, **arguments: Any) -> Any:
    result = bank.call(tool, arguments)
    assert result.ok, result.content
    return result.content


def test_a_payment_stays_within_the_overdraft_and_pending_money_is_kept_aside(bank: Bank) -> None:
    refused(bank, "pay_payee", "only £360.00 can be taken", account_id="A1", payee_id="P1", amount=360.01)
    assert passes(bank, "pay_payee", account_id="A1", payee_id="P1", amount=360.0)["balance"] == -260.0


def test_a_savings_account_keeps_its_minimum_balance(bank: Bank) -> None:
    bank.state.customers["C1"].daily_transfer_limit = 2000.0
    refused(bank, "pay_payee", "minimum balance", account_id="A2", payee_id="P1", amount=801.0)
    assert passes(bank, "pay_payee", account_id="A2", payee_id="P1", amount=800.0)["balance"] == 100.0


def test_payments_of_a_day_stay_within_the_transfer_limit_but_own_goals_do_not_count(bank: Bank) -> None:
    passes(bank, "pay_payee", account_id="A2", payee_id="P1", amount=450.0)
    refused(bank, "pay_payee", "only £50.00 of the daily transfer limit", account_id="A1", payee_id="P1", amount=51.0)
    passes(bank, "add_to_savings_goal", account_id="A2", goal_id="G1", amount=60.0)
    assert passes(bank, "pay_payee", account_id="A1", payee_id="P1", amount=50.0)["left_today"] == 0.0


def test_a_new_payee_gets_little_during_the_cooling_off(bank: Bank) -> None:
    passes(bank, "pay_payee", account_id="A1", payee_id="P2", amount=150.0)
    refused(bank, "pay_payee", "can get no more than £50.00 for now", account_id="A1", payee_id="P2", amount=50.01)
    bank.state.now += timedelta(hours=19)
    assert passes(bank, "pay_payee", account_id="A1", payee_id="P2", amount=50.01)["amount"] == 50.01


def test_three_new_payees_a_day_and_no_number_twice(bank: Bank) -> None:
    refused(
        bank,
        "add_payee",
        "already saved as Payee P1",
        customer_id="C1",
        recipient_name="Again",
        recipient_account="20000001",
    )
    for number in ("90000001", "90000002"):
        passes(bank, "add_payee", customer_id="C1", recipient_name="New One", recipient_account=number)
    refused(bank, "add_payee", "only 3 payees", customer_id="C1", recipient_name="More", recipient_account="90000003")
    more = passes(bank, "add_payee", customer_id="C2", recipient_name="More", recipient_account="90000003")
    assert more["payee_id"] in bank.state.payees


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"account_id": "A2"}, "current accounts only"),
        ({"amount": 500.5}, "at most the daily transfer limit of £500.00"),
        ({"first_on": "2026-05-12"}, "tomorrow at the earliest"),
        ({"first_on": "2027-05-13"}, "within a year"),
        ({"payee_id": "P2"}, "later than 2026-05-13"),
        ({"payee_id": "P3"}, "not among the payees"),
    ],
)
def test_standing_orders_have_limits(bank: Bank, changes: dict[str, Any], reason: str) -> None:
    good = {"account_id": "A1", "payee_id": "P1", "amount": 500.0, "frequency": "monthly", "first_on": TOMORROW}
    refused(bank, "set_up_standing_order", reason, **{**good, **changes})
    assert passes(bank, "set_up_standing_order", **good)["next_on"] == TOMORROW
    refused(bank, "set_up_standing_order", "already a standing order to Payee P1", **good)
    passes(bank, "set_up_standing_order", **{**good, "payee_id": "P2", "first_on": IN_THREE_DAYS})


def test_a_standing_order_is_not_cancelled_on_its_day(bank: Bank) -> None:
    bank.state.standing_orders["S1"] = StandingOrder(
        standing_order_id="S1",
        account_id="A1",
        payee_id="P1",
        amount=20.0,
        frequency="weekly",
        next_on=NOW.date(),
        status="active",
    )
    refused(bank, "cancel_standing_order", "goes out today", standing_order_id="S1")
    bank.state.standing_orders["S1"].next_on += timedelta(days=1)
    assert passes(bank, "cancel_standing_order", standing_order_id="S1")["status"] == "cancelled"
    refused(bank, "cancel_standing_order", "already cancelled", standing_order_id="S1")


def test_a_frozen_card_thaws_and_a_stolen_one_never_does(bank: Bank) -> None:
    refused(bank, "unfreeze_card", "is not frozen", card_id="K1")
    passes(bank, "freeze_card", card_id="K1", reason="misplaced")
    refused(bank, "freeze_card", "already frozen", card_id="K1", reason="not_in_use")
    assert passes(bank, "unfreeze_card", card_id="K1")["status"] == "active"
    assert passes(bank, "freeze_card", card_id="K1", reason="stolen")["status"] == "blocked"
    refused(bank, "unfreeze_card", "was reported stolen and stays blocked", card_id="K1")


@pytest.mark.parametrize(
    ("transaction_id", "why"), [("T3", "older than 60 days"), ("T4", "still pending"), ("T5", "no card payment")]
)
def test_only_recent_booked_card_payments_can_be_disputed_once(bank: Bank, transaction_id: str, why: str) -> None:
    refused(bank, "dispute_transaction", why, transaction_id=transaction_id, reason="wrong_amount")
    assert passes(bank, "dispute_transaction", transaction_id="T2", reason="wrong_amount")["reason"] == "wrong_amount"
    refused(bank, "dispute_transaction", "already been disputed", transaction_id="T2", reason="charged_twice")


def test_a_payment_that_the_customer_did_not_make_needs_a_stopped_card(bank: Bank) -> None:
    refused(bank, "dispute_transaction", "4821 must be frozen", transaction_id="T1", reason="not_my_payment")
    passes(bank, "freeze_card", card_id="K1", reason="suspicious_payment")
    dispute = passes(bank, "dispute_transaction", transaction_id="T1", reason="not_my_payment")
    assert dispute["reason"] == "not_my_payment"


def test_a_goal_never_holds_more_than_its_target(bank: Bank) -> None:
    refused(bank, "add_to_savings_goal", "needs only £100.00 more", account_id="A2", goal_id="G1", amount=100.5)
    assert passes(bank, "add_to_savings_goal", account_id="A2", goal_id="G1", amount=100.0)["saved"] == 1000.0


def test_a_customer_pays_somebody_new_and_sees_it(bank: Bank) -> None:
    customer_id = passes(bank, "find_customer_by_phone", phone="+44 (7111) 222333")["customer_id"]
    made = passes(
        bank, "add_payee", customer_id=customer_id, recipient_name="Judith Carver", recipient_account="83520914"
    )
    accounts = passes(bank, "list_accounts", customer_id=customer_id)["result"]
    payee_id, account_id = made["payee_id"], accounts[0]["account_id"]
    passes(bank, "pay_payee", account_id=account_id, payee_id=payee_id, amount=40.0, reference="birthday gift")
    newest = passes(bank, "list_transactions", account_id=account_id, direction="out")["result"][0]
    assert newest["description"] == "Judith Carver birthday gift"
    assert passes(bank, "find_customer_by_phone", phone="+447111222333")["left_today"] == 460.0
    assert "Judith Carver" in [row["name"] for row in passes(bank, "list_payees", customer_id=customer_id)["result"]]
    refused(bank, "find_customer_by_phone", "no customer with phone number", phone="+44 7000 000000")


@pytest.mark.parametrize("size", ["small", "medium", "large"])
def test_the_rules_hold_in_the_seed_states(size: str) -> None:
    state = Bank.seed_state(size, 3)
    assert Bank.seed_state(size, 3) == state != Bank.seed_state(size, 4)
    assert len({customer.phone for customer in state.customers.values()}) == len(state.customers)
    for owned in state.accounts.values() if size != "large" else ():
        assert compute_available(state, owned) > 0, f"{owned.account_id} is below its floor"
    for customer in state.customers.values() if size != "large" else ():
        assert compute_left_today(state, customer) >= 0, f"{customer.customer_id} is over the transfer limit"
    for made in state.transactions.values():
        assert made.booked_at <= state.now, f"{made.transaction_id} lies ahead"
        if made.payee_id is not None:
            assert state.payees[made.payee_id].added_at < made.booked_at, "paid before it was added"
        if made.card_id is not None:
            assert state.cards[made.card_id].account_id == made.account_id, "card of another account"
    for order in state.standing_orders.values():
        payee, source = state.payees[order.payee_id], state.accounts[order.account_id]
        assert order.next_on >= state.now.date(), f"{order.standing_order_id} is overdue"
        assert (source.kind, payee.customer_id) == ("current", source.customer_id), "standing order of a stranger"
    for dispute in state.disputes.values():
        disputed = state.transactions[dispute.transaction_id]
        assert disputed.kind == "card", f"{dispute.dispute_id} is about no card payment"
        assert disputed.booked_at.date() <= dispute.opened_on <= state.now.date(), "disputed before it was paid"
    assert all(goal.saved <= goal.target for goal in state.goals.values()), "a goal is overfull"


async def test_older_transactions_are_on_later_pages() -> None:
    cls = ENVIRONMENTS.get("bank")
    spec, state = cls.describe(), cls.seed_state("small", 1).model_dump(mode="json")
    session = NativeSession(cls, spec)
    await session.reset(state)
    counts = Counter(row["account_id"] for row in state["transactions"].values())
    account, count = counts.most_common(1)[0]
    assert count == 9
    pages = [
        (await session.call("list_transactions", {"account_id": account, **page})).content["result"]
        for page in ({}, {"page": 1}, {"page": 2}, {"page": 3})
    ]
    assert [len(page) for page in pages] == [8, 8, 1, 0] and pages[0] == pages[1]
    assert pages[2][0]["booked_on"] <= pages[1][-1]["booked_on"]
    assert not (await session.call("list_transactions", {"account_id": account, "page": 0})).ok
    tool = spec.tool("list_transactions")
    assert find_page_size(tool) == 8
    assert is_list_cut(tool, {"account_id": account, "page": 1}, {"result": pages[0]}, "$.result")
    assert not is_list_cut(tool, {"account_id": account, "page": 2}, {"result": pages[2]}, "$.result")
