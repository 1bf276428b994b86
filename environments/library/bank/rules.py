"""The bank's limits, computed from its state, and the checks that refuse what breaks a rule."""

from datetime import date, datetime, timedelta

from trajsmith.environments.library.bank.state import Account, BankState, Customer, DisputeReason, Payee, Transaction
from trajsmith.records import ToolError

COOLING_OFF = timedelta(hours=24)
COOLING_OFF_LIMIT = 200.0
DISPUTE_DAYS = 60
NEW_PAYEES_PER_DAY = 3


def accounts_of(state: BankState, customer_id: str) -> list[Account]:
    return [account for account in state.accounts.values() if account.customer_id == customer_id]


def payees_of(state: BankState, customer_id: str) -> list[Payee]:
    return [payee for payee in state.payees.values() if payee.customer_id == customer_id]


def compute_available(state: BankState, account: Account) -> float:
    """Return the amount that can be taken from an account; never below zero."""
    pending = sum(
        transaction.amount
        for transaction in state.transactions.values()
        if transaction.account_id == account.account_id and transaction.status == "pending"
    )
    left = round(account.balance + account.overdraft_limit - account.minimum_balance - pending, 2)
    return max(left, 0.0)


def paid_since(state: BankState, start: datetime, customer_id: str, payee: Payee | None = None) -> float:
    """Sum of a customer's payments since a moment, to one payee or to all."""
    owned = {account.account_id for account in accounts_of(state, customer_id)}
    return sum(
        transaction.amount
        for transaction in state.transactions.values()
        if transaction.kind == "transfer"
        and transaction.booked_at >= start
        and transaction.account_id in owned
        and (payee is None or transaction.payee_id == payee.payee_id)
    )


def compute_left_today(state: BankState, customer: Customer) -> float:
    """Return the rest of the daily transfer limit."""
    midnight = datetime.combine(state.now.date(), datetime.min.time())
    return round(customer.daily_transfer_limit - paid_since(state, midnight, customer.customer_id), 2)


def in_cooling_off(state: BankState, payee: Payee) -> bool:
    return state.now < payee.added_at + COOLING_OFF


def check_new_payee(state: BankState, customer_id: str, account_number: str) -> None:
    own = payees_of(state, customer_id)
    same = next((payee for payee in own if payee.account_number == account_number), None)
    if same is not None:
        raise ToolError(f"account number {account_number} is already saved as {same.name}")
    if sum(in_cooling_off(state, payee) for payee in own) >= NEW_PAYEES_PER_DAY:
        raise ToolError(f"only {NEW_PAYEES_PER_DAY} payees can be added within 24 hours")


def check_payment(state: BankState, customer: Customer, payee: Payee, amount: float) -> None:
    left = compute_left_today(state, customer)
    if amount > left:
        limit = customer.daily_transfer_limit
        if left == limit:
            raise ToolError(f"no more than £{limit:,.2f} can be sent in a day; the rest has to wait")
        raise ToolError(f"only £{left:,.2f} of the daily transfer limit of £{limit:,.2f} is left today")
    if in_cooling_off(state, payee):
        open_amount = round(COOLING_OFF_LIMIT - paid_since(state, payee.added_at, customer.customer_id, payee), 2)
        if amount > open_amount:
            free = "later today" if (payee.added_at + COOLING_OFF).date() == state.now.date() else "tomorrow"
            raise ToolError(
                f"{payee.name} was added less than 24 hours ago and can get no more than £{open_amount:,.2f} for now; "
                f"the rest can follow {free}"
            )


def check_covered(state: BankState, account: Account, amount: float) -> None:
    left = compute_available(state, account)
    if amount > left:
        floor = "overdraft limit" if account.kind == "current" else "minimum balance"
        raise ToolError(f"only £{left:,.2f} can be taken from {account.name} within its {floor}")


def check_standing_order(state: BankState, account: Account, payee: Payee, amount: float, first_on: date) -> None:
    limit = state.customers[account.customer_id].daily_transfer_limit
    today = state.now.date()
    free = (payee.added_at + COOLING_OFF).date()
    if account.kind != "current":
        raise ToolError(f"{account.name} is a savings account, and standing orders run from current accounts only")
    orders = state.standing_orders.values()
    if any(order.payee_id == payee.payee_id and order.status == "active" for order in orders):
        raise ToolError(f"there is already a standing order to {payee.name}")
    if amount > limit:
        raise ToolError(f"a standing order can be at most the daily transfer limit of £{limit:,.2f}")
    if not today < first_on <= today + timedelta(days=365):
        raise ToolError("the first payment must be tomorrow at the earliest and within a year")
    if first_on <= free:
        raise ToolError(f"{payee.name} is still in the cooling-off, so the first payment must be later than {free}")


def check_dispute(state: BankState, transaction: Transaction, reason: DisputeReason) -> None:
    if transaction.kind != "card" or transaction.card_id is None:
        raise ToolError(f"{transaction.description} is no card payment, and only card payments can be disputed")
    if transaction.status == "pending":
        raise ToolError(
            f"the payment to {transaction.description} is still pending and can be disputed only once it is booked"
        )
    if (state.now.date() - transaction.booked_at.date()).days > DISPUTE_DAYS:
        raise ToolError(f"the payment is older than {DISPUTE_DAYS} days and can no longer be disputed")
    if any(dispute.transaction_id == transaction.transaction_id for dispute in state.disputes.values()):
        raise ToolError(f"the payment to {transaction.description} has already been disputed")
    card = state.cards[transaction.card_id]
    if reason == "not_my_payment" and card.status == "active":
        raise ToolError(f"the card ending in {card.last_digits} must be frozen before this can be reported")
