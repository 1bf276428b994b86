"""What the bank knows: customers, accounts, cards, transactions, payees, standing orders, savings goals, disputes."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

AccountKind = Literal["current", "savings"]
CardKind = Literal["debit", "virtual"]
CardStatus = Literal["active", "frozen", "blocked"]
FreezeReason = Literal["misplaced", "not_in_use", "suspicious_payment", "lost", "stolen"]
TransactionKind = Literal["card", "transfer", "standing_order", "savings", "deposit"]
TransactionStatus = Literal["pending", "booked"]
Direction = Literal["in", "out"]
Frequency = Literal["weekly", "monthly", "quarterly"]
StandingOrderStatus = Literal["active", "cancelled"]
DisputeReason = Literal["not_my_payment", "charged_twice", "goods_not_received", "wrong_amount"]
DisputeStatus = Literal["open", "in_review", "refunded", "rejected"]


class Customer(StateModel):
    customer_id: str
    name: str
    phone: str
    email: str
    city: str
    daily_transfer_limit: float


class Account(StateModel):
    account_id: str
    customer_id: str
    name: str
    kind: AccountKind
    account_number: str
    balance: float
    overdraft_limit: float
    minimum_balance: float


class Card(StateModel):
    card_id: str
    account_id: str
    kind: CardKind
    last_digits: str
    expires_on: date
    status: CardStatus
    freeze_reason: FreezeReason | None


class Payee(StateModel):
    payee_id: str
    customer_id: str
    name: str
    account_number: str
    added_at: datetime


class Transaction(StateModel):
    transaction_id: str
    account_id: str
    card_id: str | None
    payee_id: str | None
    booked_at: datetime
    kind: TransactionKind
    direction: Direction
    description: str
    amount: float
    status: TransactionStatus


class StandingOrder(StateModel):
    standing_order_id: str
    account_id: str
    payee_id: str
    amount: float
    frequency: Frequency
    next_on: date
    status: StandingOrderStatus


class SavingsGoal(StateModel):
    goal_id: str
    customer_id: str
    title: str
    target: float
    saved: float


class Dispute(StateModel):
    dispute_id: str
    transaction_id: str
    reason: DisputeReason
    opened_on: date
    status: DisputeStatus


class BankState(EnvironmentState):
    customers: dict[str, Customer] = {}
    accounts: dict[str, Account] = {}
    cards: dict[str, Card] = {}
    payees: dict[str, Payee] = {}
    transactions: dict[str, Transaction] = {}
    standing_orders: dict[str, StandingOrder] = {}
    goals: dict[str, SavingsGoal] = {}
    disputes: dict[str, Dispute] = {}
