"""Generator of the bank's initial states."""

import random
from datetime import date, datetime, time, timedelta

from trajsmith.environments.library import _people
from trajsmith.environments.library.bank.state import (
    Account,
    AccountKind,
    BankState,
    Card,
    CardKind,
    CardStatus,
    Customer,
    Direction,
    Dispute,
    FreezeReason,
    Frequency,
    Payee,
    SavingsGoal,
    StandingOrder,
    Transaction,
    TransactionKind,
)
from trajsmith.records import derive_seed

CUSTOMERS = {"small": 4, "medium": 13, "large": 350}
FIRST_NUMBERS = {
    "customer": 510,
    "account": 2200,
    "card": 640,
    "payee": 3100,
    "transaction": 48000,
    "standing_order": 870,
    "goal": 90,
    "dispute": 400,
}
CURRENT_NAMES = ("Everyday Account", "Household Account", "Travel Account", "Bills Account", "Joint Account")
SAVINGS_NAMES = ("Rainy Day Saver", "Instant Saver", "Bonus Saver", "Green Saver")
MERCHANTS: tuple[tuple[str, float, float], ...] = (
    ("Corner Grocer", 6.0, 70.0),
    ("Freshway Supermarket", 15.0, 120.0),
    ("Luna Bakery", 3.0, 18.0),
    ("Metro Transit", 2.8, 24.0),
    ("Harbour Fish Bar", 11.0, 48.0),
    ("Pixel Games", 9.0, 65.0),
    ("Thornton Books", 8.0, 55.0),
    ("Velo Cycle Repair", 20.0, 140.0),
    ("Cloudstream TV", 7.99, 15.99),
    ("Peak Outdoor Gear", 25.0, 190.0),
    ("Petal and Stem", 14.0, 60.0),
    ("Swift Fuel", 30.0, 85.0),
    ("Home and Hearth", 18.0, 210.0),
    ("Blue Door Pharmacy", 4.0, 36.0),
    ("Kestrel Air", 59.0, 320.0),
    ("Ember Pizza", 10.0, 42.0),
)
KIOSKS = ("Station Kiosk", "Parkwell Garage", "Beanhouse Coffee", "Lido Tickets")
DEPOSITS = ("Salary", "Expense refund", "Tax refund", "Freelance invoice")
BILLERS: tuple[tuple[str, float], ...] = (
    ("Oakfield Lettings", 690.0),
    ("Brightwater Energy", 84.0),
    ("Northgate Council", 142.0),
    ("Clearline Broadband", 32.5),
    ("Riverside Gym", 29.0),
    ("Little Acorns Nursery", 260.0),
    ("Sunrise Insurance", 47.8),
    ("Hartwell Music School", 65.0),
    ("Paws and Claws Vets", 22.0),
    ("Valley Water", 38.4),
)
GOALS: tuple[tuple[str, float], ...] = (
    ("Summer holiday", 1800.0),
    ("New laptop", 1200.0),
    ("Wedding", 9000.0),
    ("House deposit", 25000.0),
    ("Emergency fund", 5000.0),
    ("Electric bike", 2400.0),
    ("Christmas presents", 600.0),
    ("Kitchen makeover", 7500.0),
)
FREQUENCIES: tuple[Frequency, ...] = ("weekly", "monthly", "monthly", "monthly", "quarterly")
MONTHLY = ("Oakfield Lettings", "Clearline Broadband", "Little Acorns Nursery", "Sunrise Insurance")
WEEKLY = ("Riverside Gym", "Hartwell Music School")
"""Billers that are paid every month, and those that may be paid every week."""
VIRTUAL_STATUSES: tuple[CardStatus, ...] = ("frozen", "frozen", "active", "blocked")
BACK_DAYS = {"weekly": 7, "monthly": 30, "quarterly": 91}


def make_state(size: str, seed: int) -> BankState:
    """A bank of the given size; the same seed gives the same bank."""
    rng = random.Random(derive_seed("bank", size, seed))
    hour, minute = rng.randrange(9, 18), rng.choice((0, 10, 25, 40, 50))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), hour, minute)
    state = BankState(now=now, seed=seed, counters=dict(FIRST_NUMBERS))
    taken: set[str] = set()
    for person in _people.people(rng, CUSTOMERS[size]):
        while person.phone in taken:
            person = person._replace(phone=f"{person.phone[:-6]}{rng.randrange(100000, 999999)}")
        taken.add(person.phone)
        _add_customer(state, rng, person)
    return state


def _next(state: BankState, kind: str, prefix: str) -> str:
    state.counters[kind] += 1
    return f"{prefix}{state.counters[kind]}"


def _digits(rng: random.Random, count: int) -> str:
    """Digits of an account or card number; the first is at most 7, so that no number given as an example is taken."""
    return f"{rng.randrange(10 ** (count - 1), 8 * 10 ** (count - 1))}"


def _add_customer(state: BankState, rng: random.Random, person: _people.Person) -> None:
    customer = Customer(
        customer_id=_next(state, "customer", "C"),
        name=person.name,
        phone=person.phone,
        email=person.email,
        city=rng.choice(_people.CITIES)[0],
        daily_transfer_limit=rng.choice((300.0, 500.0, 1000.0, 1500.0)),
    )
    state.customers[customer.customer_id] = customer
    current_names = rng.sample(CURRENT_NAMES, rng.choice((1, 1, 2)))
    current = [_add_account(state, rng, customer, "current", name) for name in current_names]
    savings = _add_account(state, rng, customer, "savings", rng.choice(SAVINGS_NAMES))
    _add_savings_history(state, rng, savings)
    for account in current:
        _add_card_history(state, rng, account)
    _add_disputes(state, rng, [account.account_id for account in current])
    _add_payees(state, rng, customer, current[0])
    for title, target in rng.sample(GOALS, rng.choice((1, 1, 2))):
        goal = SavingsGoal(
            goal_id=_next(state, "goal", "G"),
            customer_id=customer.customer_id,
            title=title,
            target=target,
            saved=round(target * rng.uniform(0.05, 0.8), 2),
        )
        state.goals[goal.goal_id] = goal


def _add_account(state: BankState, rng: random.Random, customer: Customer, kind: AccountKind, name: str) -> Account:
    overdraft = rng.choice((0.0, 250.0, 500.0, 800.0)) if kind == "current" else 0.0
    balance = rng.uniform(280, 3600) if kind == "current" else rng.uniform(700, 12000)
    if overdraft >= 500 and rng.random() < 0.15:
        balance = -rng.uniform(15, 140)
    account = Account(
        account_id=_next(state, "account", "A"),
        customer_id=customer.customer_id,
        name=name,
        kind=kind,
        account_number=_digits(rng, 8),
        balance=round(balance, 2),
        overdraft_limit=overdraft,
        minimum_balance=0.0 if kind == "current" else rng.choice((50.0, 100.0)),
    )
    state.accounts[account.account_id] = account
    return account


def _add_transaction(
    state: BankState,
    account: Account,
    moment: datetime,
    kind: TransactionKind,
    text: str,
    amount: float,
    direction: Direction = "out",
    card: Card | None = None,
    payee: Payee | None = None,
) -> Transaction:
    transaction = Transaction(
        transaction_id=_next(state, "transaction", "T"),
        account_id=account.account_id,
        booked_at=moment,
        kind=kind,
        card_id=card.card_id if card else None,
        payee_id=payee.payee_id if payee else None,
        direction=direction,
        description=text,
        amount=round(amount, 2),
        status="booked",
    )
    state.transactions[transaction.transaction_id] = transaction
    return transaction


def _add_savings_history(state: BankState, rng: random.Random, account: Account) -> None:
    interest = round(account.balance * rng.uniform(0.001, 0.003), 2)
    _add_transaction(state, account, _people.moment_before(rng, state.now, 30), "deposit", "Interest", interest, "in")
    title = rng.choice(("Moved to current account", "Moved to fixed deposit"))
    amount = rng.choice((40.0, 75.0, 150.0, 300.0))
    _add_transaction(state, account, _people.moment_before(rng, state.now, 80), "savings", title, amount)


def _add_card(state: BankState, rng: random.Random, account: Account, kind: CardKind, status: CardStatus) -> Card:
    reason: FreezeReason | None = None
    if status != "active":
        reason = rng.choice(("misplaced", "not_in_use") if status == "frozen" else ("lost", "stolen"))
    card = Card(
        card_id=_next(state, "card", "K"),
        account_id=account.account_id,
        kind=kind,
        last_digits=_digits(rng, 4),
        expires_on=date(state.now.year + rng.randrange(1, 4), rng.randrange(1, 13), 28),
        status=status,
        freeze_reason=reason,
    )
    state.cards[card.card_id] = card
    return card


def _add_card_history(state: BankState, rng: random.Random, account: Account) -> None:
    cards = [_add_card(state, rng, account, "debit", rng.choice(("active", "active", "active", "frozen")))]
    if rng.random() < 0.6:
        cards.append(_add_card(state, rng, account, "virtual", rng.choice(VIRTUAL_STATUSES)))
    for name, low, high in rng.sample(MERCHANTS, rng.choice((3, 4, 5))):
        moment = _people.moment_before(rng, state.now, 75)
        _add_transaction(state, account, moment, "card", name, rng.uniform(low, high), card=rng.choice(cards))
    if rng.random() < 0.4:
        moment = _people.moment_before(rng, state.now, 1)
        last = _add_transaction(state, account, moment, "card", rng.choice(KIOSKS), rng.uniform(3, 14), card=cards[0])
        last.status = "pending"
    income = rng.choice(DEPOSITS)
    amount = rng.uniform(1400, 3200) if income == "Salary" else rng.uniform(60, 480)
    _add_transaction(state, account, _people.moment_before(rng, state.now, 28), "deposit", income, amount, "in")


def _add_disputes(state: BankState, rng: random.Random, account_ids: list[str]) -> None:
    """At most one dispute of a customer's card payments that were booked at least three days ago."""
    old = state.now - timedelta(days=3)
    candidates = [
        transaction
        for transaction in state.transactions.values()
        if transaction.account_id in account_ids and transaction.kind == "card" and transaction.booked_at < old
    ]
    if not candidates or rng.random() < 0.25:
        return
    transaction = rng.choice(candidates)
    opened = transaction.booked_at.date() + timedelta(days=rng.randrange(1, 3))
    dispute = Dispute(
        dispute_id=_next(state, "dispute", "D"),
        transaction_id=transaction.transaction_id,
        opened_on=opened,
        reason=rng.choice(("charged_twice", "goods_not_received", "wrong_amount")),
        status=rng.choice(("open", "in_review", "in_review", "refunded", "rejected")),
    )
    state.disputes[dispute.dispute_id] = dispute


def _add_payee(state: BankState, rng: random.Random, customer: Customer, name: str, added_at: datetime) -> Payee:
    payee = Payee(
        payee_id=_next(state, "payee", "P"),
        customer_id=customer.customer_id,
        name=name,
        account_number=_digits(rng, 8),
        added_at=added_at,
    )
    state.payees[payee.payee_id] = payee
    return payee


def _add_payees(state: BankState, rng: random.Random, customer: Customer, account: Account) -> None:
    """Bills (some with a standing order), one friend, and now and then somebody added only today."""
    for number, (name, amount) in enumerate(rng.sample(BILLERS, rng.choice((2, 2, 3)))):
        added = state.now - timedelta(days=rng.randrange(120, 900), minutes=rng.randrange(600))
        payee = _add_payee(state, rng, customer, name, added)
        if number == 0 or rng.random() < 0.2:
            _add_standing_order(state, rng, account, payee, min(amount, customer.daily_transfer_limit))
    friends = _people.people(rng, 2)
    added = state.now - timedelta(days=rng.randrange(100, 700), minutes=rng.randrange(600))
    friend = _add_payee(state, rng, customer, friends[0].name, added)
    today = rng.random() < 0.35
    minutes = rng.randrange(5, 400) if today else rng.randrange(2000, 100000)
    moment = state.now - timedelta(minutes=minutes)
    amount = rng.choice((20.0, 35.0, 60.0, 120.0, 250.0))
    _add_transaction(state, account, moment, "transfer", friend.name, amount, payee=friend)
    if rng.random() < 0.5:
        _add_payee(state, rng, customer, friends[1].name, state.now - timedelta(minutes=rng.randrange(10, 1200)))


def _add_standing_order(state: BankState, rng: random.Random, account: Account, payee: Payee, amount: float) -> None:
    frequency = rng.choice(FREQUENCIES)
    if payee.name in MONTHLY or (frequency == "weekly" and payee.name not in WEEKLY):
        frequency = "monthly"
    reach = 7 if frequency == "weekly" else 28
    due_today = rng.random() < 0.12
    next_on = state.now.date() if due_today else _people.day_after(rng, state.now, reach)
    order = StandingOrder(
        standing_order_id=_next(state, "standing_order", "S"),
        account_id=account.account_id,
        payee_id=payee.payee_id,
        amount=amount,
        frequency=frequency,
        next_on=next_on,
        status="active",
    )
    state.standing_orders[order.standing_order_id] = order
    last = datetime.combine(next_on - timedelta(days=BACK_DAYS[frequency]), time(6, 0))
    if last < state.now:
        _add_transaction(state, account, last, "standing_order", payee.name, amount, payee=payee)
