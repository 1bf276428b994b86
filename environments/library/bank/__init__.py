"""Customer desk of a retail bank."""

from datetime import date
from typing import Annotated

from pydantic import Field

from trajsmith.environments.library.bank import rules
from trajsmith.environments.library.bank.seeds import make_state
from trajsmith.environments.library.bank.state import (
    Account,
    BankState,
    Customer,
    Direction,
    Dispute,
    DisputeReason,
    FreezeReason,
    Frequency,
    Payee,
    SavingsGoal,
    StandingOrder,
    Transaction,
    TransactionKind,
)
from trajsmith.environments.library.bank.views import (
    AccountRow,
    CardRow,
    DisputeRow,
    GoalDeposit,
    PayeeRow,
    Payment,
    Profile,
    StandingOrderRow,
    TransactionRow,
    account_row,
    card_row,
    dispute_row,
    order_row,
    payee_row,
    transaction_row,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

LARGE_AMOUNT = ConfirmationRule(above={"amount": 100}, because="the bank cannot call back what it has sent")
LARGE_STANDING_ORDER = ConfirmationRule(above={"amount": 100})
BLOCKING = ConfirmationRule(
    arguments={"reason": ("lost", "stolen")}, because="a card that is reported lost or stolen is blocked for good"
)
PaymentAmount = Annotated[float, Field(ge=0.01, examples=[15.0, 24.5, 40.0, 65.0, 80.0, 120.0, 180.0, 250.0])]
RegularAmount = Annotated[float, Field(ge=1.0, examples=[20.0, 35.0, 45.0, 60.0, 90.0, 125.0, 150.0])]
GoalAmount = Annotated[float, Field(ge=1.0, examples=[10.0, 25.0, 30.0, 50.0, 75.0, 100.0])]
Reference = Annotated[
    str,
    Field(
        max_length=18,
        examples=["dinner Friday", "birthday gift", "invoice 2214", "train tickets", "deposit", "football fees"],
    ),
]
RecipientName = Annotated[
    str,
    Field(
        min_length=2,
        examples=[
            "Maple Street Dental",
            "Judith Carver",
            "Seaview Storage",
            "Tom Hallett",
            "Willow Garden Services",
            "Corinne Bright",
            "Kelso Piano Lessons",
        ],
    ),
]
RecipientAccount = Annotated[
    str,
    Field(
        pattern=r"^\d{8}$",
        examples=["90417736", "83520914", "96641208", "88103572", "92275061", "85946317", "97730425"],
    ),
]


class Bank(Environment[BankState]):
    """Customer desk of a retail bank: accounts, cards, payees, standing orders, savings goals and disputes."""

    domain = "finance/banking"
    policy = """
    # Rules of the bank

    1. A payment never takes a current account beyond its arranged overdraft, nor a savings account below its
       minimum balance; card payments that are still pending are kept aside.
    2. All payments that a customer makes to payees on one day stay within the customer's daily transfer limit. Money
       put into the customer's own savings goals does not count.
    3. For 24 hours after a payee was added (the cooling-off), that payee can get at most £200.00 in total. At most 3
       payees can be added within 24 hours, and the same account number is not saved twice.
    4. Standing orders run from current accounts only, one per payee, at most for the daily transfer limit. The first
       payment is tomorrow at the earliest and after the payee's cooling-off, and at most a year ahead.
    5. A standing order cannot be cancelled on the day of its next payment.
    6. A card reported lost or stolen is blocked for good. Cards frozen for any other reason can be unfrozen.
    7. Only booked card payments of the last 60 days can be disputed, each once. If the customer did not make the
       payment, the card that was used must be frozen or blocked first.
    8. A savings goal never holds more than its target.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> BankState:
        return make_state(size, seed)

    @tool(effect="read")
    def find_customer_by_phone(self, phone: str) -> Profile:
        """Find a customer by phone number, with the daily transfer limit and what is left of it today.

        Args:
            phone: Phone number that the bank has for the customer.
        """
        for customer in self.state.customers.values():
            if _digits(customer.phone) == _digits(phone):
                return Profile(**customer.model_dump(), left_today=rules.compute_left_today(self.state, customer))
        raise ToolError(f"no customer with phone number {phone}")

    @tool(effect="read")
    def list_accounts(self, customer_id: str) -> list[AccountRow]:
        """List a customer's accounts with the balance and what can be spent.

        Args:
            customer_id: Customer of the bank.
        """
        self._customer(customer_id)
        return [account_row(self.state, account) for account in rules.accounts_of(self.state, customer_id)]

    @tool(effect="read")
    def list_transactions(
        self, account_id: str, direction: Direction | None = None, page: Annotated[int, Field(ge=1)] = 1
    ) -> list[TransactionRow]:
        """List the transactions of an account, newest first, at most 8 on a page.

        Args:
            account_id: Account to look at.
            direction: Only money that came in, or only money that went out.
            page: Page to show; older transactions are on later ones.
        """
        self._account(account_id)
        matches = [
            transaction
            for transaction in reversed(self.state.transactions.values())
            if transaction.account_id == account_id and direction in (None, transaction.direction)
        ]
        newest = sorted(matches, key=lambda transaction: transaction.booked_at, reverse=True)
        return [transaction_row(transaction) for transaction in newest[8 * (page - 1) : 8 * page]]

    @tool(effect="read")
    def list_cards(self, customer_id: str) -> list[CardRow]:
        """List a customer's cards and whether they can be used.

        Args:
            customer_id: Customer of the bank.
        """
        self._customer(customer_id)
        owned = {account.account_id for account in rules.accounts_of(self.state, customer_id)}
        return [card_row(self.state, card) for card in self.state.cards.values() if card.account_id in owned]

    @tool(effect="write", confirm=BLOCKING)
    def freeze_card(self, card_id: str, reason: FreezeReason) -> CardRow:
        """Stop a card from being used; a lost or stolen card is blocked for good.

        Args:
            card_id: Card to stop.
            reason: Why it must not be used.
        """
        card = self.lookup(self.state.cards, card_id, "card")
        lasting = reason in ("lost", "stolen")
        if card.status == "blocked":
            raise ToolError(f"the card ending in {card.last_digits} is already blocked")
        if card.status == "frozen" and not lasting:
            raise ToolError(f"the card ending in {card.last_digits} is already frozen")
        card.status = "blocked" if lasting else "frozen"
        card.freeze_reason = reason
        return card_row(self.state, card)

    @tool(effect="write", confirm="never")
    def unfreeze_card(self, card_id: str) -> CardRow:
        """Make a frozen card usable again.

        Args:
            card_id: Card that is frozen.
        """
        card = self.lookup(self.state.cards, card_id, "card")
        if card.status == "blocked":
            reason = card.freeze_reason or "lost"
            raise ToolError(f"the card ending in {card.last_digits} was reported {reason} and stays blocked")
        if card.status == "active":
            raise ToolError(f"the card ending in {card.last_digits} is not frozen")
        card.status = "active"
        card.freeze_reason = None
        return card_row(self.state, card)

    @tool(effect="read")
    def list_payees(self, customer_id: str) -> list[PayeeRow]:
        """List the people and companies that a customer has saved for payments.

        Args:
            customer_id: Customer of the bank.
        """
        self._customer(customer_id)
        payees = sorted(rules.payees_of(self.state, customer_id), key=lambda payee: payee.name)
        return [payee_row(self.state, payee) for payee in payees]

    @tool(effect="write", confirm="never")
    def add_payee(
        self, customer_id: str, recipient_name: RecipientName, recipient_account: RecipientAccount
    ) -> PayeeRow:
        """Save a person or company for payments.

        Args:
            customer_id: Customer who will pay.
            recipient_name: Name of the person or company.
            recipient_account: Their account number, 8 digits.
        """
        self._customer(customer_id)
        rules.check_new_payee(self.state, customer_id, recipient_account)
        payee = Payee(
            payee_id=self.new_id("payee", "P{:d}"),
            customer_id=customer_id,
            name=recipient_name,
            account_number=recipient_account,
            added_at=self.state.now,
        )
        self.state.payees[payee.payee_id] = payee
        return payee_row(self.state, payee)

    @tool(effect="write", confirm=LARGE_AMOUNT)
    def pay_payee(self, account_id: str, payee_id: str, amount: PaymentAmount, reference: Reference = "") -> Payment:
        """Pay a saved payee at once.

        Args:
            account_id: Account that the money comes from.
            payee_id: Who gets the money.
            amount: Amount in pounds.
            reference: Short text that the payee sees.
        """
        account = self._account(account_id)
        payee = self._own_payee(account, payee_id)
        customer = self.state.customers[account.customer_id]
        amount = round(amount, 2)
        rules.check_payment(self.state, customer, payee, amount)
        self._spend(account, amount, "transfer", f"{payee.name} {reference}".strip(), payee)
        return Payment(
            payee_name=payee.name,
            amount=amount,
            account_name=account.name,
            balance=account.balance,
            left_today=rules.compute_left_today(self.state, customer),
        )

    @tool(effect="read")
    def list_standing_orders(self, customer_id: str) -> list[StandingOrderRow]:
        """List a customer's active standing orders, the next payment first.

        Args:
            customer_id: Customer of the bank.
        """
        self._customer(customer_id)
        orders = [
            order
            for order in self.state.standing_orders.values()
            if order.status == "active" and self.state.accounts[order.account_id].customer_id == customer_id
        ]
        return [order_row(self.state, order) for order in sorted(orders, key=lambda order: order.next_on)]

    @tool(effect="write", confirm=LARGE_STANDING_ORDER)
    def set_up_standing_order(
        self, account_id: str, payee_id: str, amount: RegularAmount, frequency: Frequency, first_on: date
    ) -> StandingOrderRow:
        """Pay a saved payee regularly.

        Args:
            account_id: Current account that the money comes from.
            payee_id: Who gets the money.
            amount: Amount of each payment in pounds.
            frequency: How often the payment goes out.
            first_on: Day of the first payment.
        """
        account = self._account(account_id)
        payee = self._own_payee(account, payee_id)
        rules.check_standing_order(self.state, account, payee, amount, first_on)
        order = StandingOrder(
            standing_order_id=self.new_id("standing_order", "S{:d}"),
            account_id=account_id,
            payee_id=payee_id,
            amount=round(amount, 2),
            frequency=frequency,
            next_on=first_on,
            status="active",
        )
        self.state.standing_orders[order.standing_order_id] = order
        return order_row(self.state, order)

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="a cancelled standing order cannot be brought back"),
    )
    def cancel_standing_order(self, standing_order_id: str) -> StandingOrderRow:
        """Stop a standing order for good.

        Args:
            standing_order_id: Standing order to stop.
        """
        order = self.lookup(self.state.standing_orders, standing_order_id, "standing order")
        if order.status == "cancelled":
            raise ToolError("this standing order is already cancelled")
        if order.next_on <= self.state.now.date():
            raise ToolError("the next payment goes out today, and it can be cancelled only from tomorrow on")
        order.status = "cancelled"
        return order_row(self.state, order)

    @tool(effect="read")
    def list_savings_goals(self, customer_id: str) -> list[SavingsGoal]:
        """List what a customer is saving for and how far they are.

        Args:
            customer_id: Customer of the bank.
        """
        self._customer(customer_id)
        return [goal for goal in self.state.goals.values() if goal.customer_id == customer_id]

    @tool(effect="write", confirm="never")
    def add_to_savings_goal(self, account_id: str, goal_id: str, amount: GoalAmount) -> GoalDeposit:
        """Put money from an account into a savings goal.

        Args:
            account_id: Account that the money comes from.
            goal_id: Savings goal that gets the money.
            amount: Amount in pounds.
        """
        account = self._account(account_id)
        goal = self.lookup(self.state.goals, goal_id, "savings goal")
        if goal.customer_id != account.customer_id:
            raise ToolError("the savings goal and the account belong to different customers")
        amount = round(amount, 2)
        missing = round(goal.target - goal.saved, 2)
        if amount > missing:
            raise ToolError(f"{goal.title} needs only £{missing:,.2f} more to reach its target")
        self._spend(account, amount, "savings", f"Saved for {goal.title}")
        goal.saved = round(goal.saved + amount, 2)
        return GoalDeposit(
            title=goal.title,
            amount=amount,
            saved=goal.saved,
            target=goal.target,
            account_name=account.name,
            balance=account.balance,
        )

    @tool(
        effect="write",
        confirm=ConfirmationRule(always=True, because="a dispute cannot be withdrawn and is possible once per payment"),
    )
    def dispute_transaction(self, transaction_id: str, reason: DisputeReason) -> DisputeRow:
        """Ask for the money of a card payment back.

        Args:
            transaction_id: Card payment that is wrong.
            reason: What is wrong with it.
        """
        transaction = self.lookup(self.state.transactions, transaction_id, "transaction")
        rules.check_dispute(self.state, transaction, reason)
        dispute = Dispute(
            dispute_id=self.new_id("dispute", "D{:d}"),
            transaction_id=transaction_id,
            reason=reason,
            opened_on=self.state.now.date(),
            status="open",
        )
        self.state.disputes[dispute.dispute_id] = dispute
        return dispute_row(self.state, dispute)

    @tool(effect="read")
    def list_disputes(self, customer_id: str) -> list[DisputeRow]:
        """List the card payments that a customer has disputed and what came of it, newest first.

        Args:
            customer_id: Customer of the bank.
        """
        self._customer(customer_id)
        owned = {account.account_id for account in rules.accounts_of(self.state, customer_id)}
        disputes = [
            dispute
            for dispute in self.state.disputes.values()
            if self.state.transactions[dispute.transaction_id].account_id in owned
        ]
        disputes.sort(key=lambda dispute: dispute.opened_on, reverse=True)
        return [dispute_row(self.state, dispute) for dispute in disputes]

    # Finding

    def _customer(self, customer_id: str) -> Customer:
        return self.lookup(self.state.customers, customer_id, "customer")

    def _account(self, account_id: str) -> Account:
        return self.lookup(self.state.accounts, account_id, "account")

    def _own_payee(self, account: Account, payee_id: str) -> Payee:
        payee = self.lookup(self.state.payees, payee_id, "payee")
        if payee.customer_id != account.customer_id:
            raise ToolError(f"{payee.name} is not among the payees of this account's owner")
        return payee

    # Doing

    def _spend(
        self, account: Account, amount: float, kind: TransactionKind, text: str, payee: Payee | None = None
    ) -> None:
        """Take money from an account if its rules allow it, and book the transaction."""
        rules.check_covered(self.state, account, amount)
        account.balance = round(account.balance - amount, 2)
        transaction = Transaction(
            transaction_id=self.new_id("transaction", "T{:d}"),
            account_id=account.account_id,
            card_id=None,
            payee_id=payee.payee_id if payee else None,
            booked_at=self.state.now,
            kind=kind,
            direction="out",
            description=text,
            amount=amount,
            status="booked",
        )
        self.state.transactions[transaction.transaction_id] = transaction


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


__all__ = ["Bank"]
