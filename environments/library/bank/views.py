"""What the tools return where the stored entity alone would say too little or too much."""

from datetime import date

from trajsmith.environments.library.bank import rules
from trajsmith.environments.library.bank.state import (
    Account,
    AccountKind,
    BankState,
    Card,
    CardKind,
    CardStatus,
    Direction,
    Dispute,
    DisputeReason,
    DisputeStatus,
    Frequency,
    Payee,
    StandingOrder,
    StandingOrderStatus,
    Transaction,
    TransactionKind,
    TransactionStatus,
)
from trajsmith.environments.native import StateModel


class Profile(StateModel):
    customer_id: str
    name: str
    phone: str
    email: str
    city: str
    daily_transfer_limit: float
    left_today: float


class AccountRow(StateModel):
    account_id: str
    name: str
    kind: AccountKind
    balance: float
    available: float


class TransactionRow(StateModel):
    transaction_id: str
    booked_on: date
    description: str
    kind: TransactionKind
    direction: Direction
    amount: float
    status: TransactionStatus


class CardRow(StateModel):
    card_id: str
    kind: CardKind
    last_digits: str
    account_name: str
    status: CardStatus


class PayeeRow(StateModel):
    payee_id: str
    name: str
    account_number: str
    added_on: date
    in_cooling_off: bool


class StandingOrderRow(StateModel):
    standing_order_id: str
    payee_name: str
    amount: float
    frequency: Frequency
    next_on: date
    status: StandingOrderStatus


class DisputeRow(StateModel):
    dispute_id: str
    description: str
    amount: float
    reason: DisputeReason
    opened_on: date
    status: DisputeStatus


class Payment(StateModel):
    payee_name: str
    amount: float
    account_name: str
    balance: float
    left_today: float


class GoalDeposit(StateModel):
    title: str
    amount: float
    saved: float
    target: float
    account_name: str
    balance: float


def account_row(state: BankState, account: Account) -> AccountRow:
    return AccountRow(
        account_id=account.account_id,
        name=account.name,
        kind=account.kind,
        balance=account.balance,
        available=rules.compute_available(state, account),
    )


def payee_row(state: BankState, payee: Payee) -> PayeeRow:
    return PayeeRow(
        payee_id=payee.payee_id,
        name=payee.name,
        account_number=payee.account_number,
        added_on=payee.added_at.date(),
        in_cooling_off=rules.in_cooling_off(state, payee),
    )


def transaction_row(transaction: Transaction) -> TransactionRow:
    return TransactionRow(
        transaction_id=transaction.transaction_id,
        booked_on=transaction.booked_at.date(),
        description=transaction.description,
        kind=transaction.kind,
        direction=transaction.direction,
        amount=transaction.amount,
        status=transaction.status,
    )


def card_row(state: BankState, card: Card) -> CardRow:
    return CardRow(
        card_id=card.card_id,
        kind=card.kind,
        last_digits=card.last_digits,
        account_name=state.accounts[card.account_id].name,
        status=card.status,
    )


def order_row(state: BankState, order: StandingOrder) -> StandingOrderRow:
    return StandingOrderRow(
        standing_order_id=order.standing_order_id,
        payee_name=state.payees[order.payee_id].name,
        amount=order.amount,
        frequency=order.frequency,
        next_on=order.next_on,
        status=order.status,
    )


def dispute_row(state: BankState, dispute: Dispute) -> DisputeRow:
    transaction = state.transactions[dispute.transaction_id]
    return DisputeRow(
        dispute_id=dispute.dispute_id,
        description=transaction.description,
        amount=transaction.amount,
        reason=dispute.reason,
        opened_on=dispute.opened_on,
        status=dispute.status,
    )
