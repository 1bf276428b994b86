"""Back office of an online shop."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from trajsmith.environments.library.retail.results import (
    Cancellation,
    CatalogueEntry,
    OrderChange,
    OrderSummary,
    PlacedOrder,
)
from trajsmith.environments.library.retail.seeds import make_state
from trajsmith.environments.library.retail.state import (
    Address,
    CancelReason,
    Coupon,
    Customer,
    Order,
    OrderLine,
    OrderStatus,
    Product,
    RetailState,
    Return,
    ReturnReason,
    Shipment,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, ToolError

RETURN_DAYS = {"standard": 30, "silver": 45, "gold": 60}


ENTRY_FIELDS = set(CatalogueEntry.model_fields)


class Retail(Environment[RetailState]):
    """Back office of an online shop: customers, orders, shipments, returns and coupons."""

    domain = "commerce/retail"
    policy = """
    # Rules of the shop

    1. Only orders that are pending or being processed can be cancelled; the whole amount is refunded.
    2. The shipping address can be changed only while an order is pending.
    3. Delivered items can be returned within 30 days of the order (silver customers 45, gold customers 60).
       Nothing can be returned twice.
    4. A coupon applies to pending orders only, one per order, until its last day, at or above its minimum total;
       a single-use coupon works once per customer.
    5. New orders take at most 10 of one item and never more than is in stock.
    6. Store credit can pay for a pending order only up to the order's total and the customer's balance.
    7. A gift message has at most 200 characters and can be set until the order ships.
    """

    @classmethod
    def seed_state(cls, size: str, seed: int) -> RetailState:
        return make_state(size, seed)

    @tool(effect="read")
    def find_customer_by_email(self, email: str) -> Customer:
        """Find the customer account that belongs to an email address, with the address that new orders go to.

        Args:
            email: Email address of the account.
        """
        for customer in self.state.customers.values():
            if customer.email == email.strip().lower():
                return customer
        raise ToolError(f"no customer with email {email}")

    @tool(effect="read")
    def list_customer_orders(self, customer_id: str, status: OrderStatus | None = None) -> list[OrderSummary]:
        """List the orders of a customer, newest first.

        Args:
            customer_id: Customer account.
            status: Only orders in this status.
        """
        self.lookup(self.state.customers, customer_id, "customer")
        orders = [
            order
            for order in self.state.orders.values()
            if order.customer_id == customer_id and status in (None, order.status)
        ]
        return [
            self._summary(order)
            for order in sorted(orders, key=lambda order: (order.placed_at, order.order_id), reverse=True)
        ]

    @tool(effect="read")
    def get_order(self, order_id: str) -> Order:
        """Show all details of an order; its total is what is left to pay after coupon and store credit.

        Args:
            order_id: Order number, for example "W10012".
        """
        return self.lookup(self.state.orders, order_id, "order")

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="a cancelled order cannot be brought back"),
    )
    def cancel_order(self, order_id: str, reason: CancelReason) -> Cancellation:
        """Cancel an order that has not shipped and refund it.

        Args:
            order_id: Order number.
            reason: Why the customer cancels.
        """
        order = self.lookup(self.state.orders, order_id, "order")
        if order.status not in ("pending", "processing"):
            raise ToolError(f"order {order_id} is already {order.status}, so it can no longer be cancelled")
        for line in order.lines:
            self.state.products[line.sku].in_stock += line.quantity
        order.status = "cancelled"
        return Cancellation(order_id=order_id, status=order.status, refund_amount=order.total, reason=reason)

    @tool(effect="write", confirm="never")
    def change_shipping_address(self, order_id: str, street: str, city: str, postal_code: str) -> OrderChange:
        """Send a pending order to another address.

        Args:
            order_id: Order number.
            street: Street with house number.
            city: City or town.
            postal_code: Postal code.
        """
        order = self._pending(order_id)
        address = Address(street=street, city=city, postal_code=postal_code)
        if address == order.shipping_address:
            raise ToolError(f"order {order_id} already goes to that address")
        order.shipping_address = address
        return self._change(order)

    @tool(effect="write", confirm="never")
    def set_gift_message(
        self,
        order_id: str,
        message: Annotated[
            str,
            Field(
                max_length=200,
                examples=[
                    "Happy birthday, with love from all of us!",
                    "Congratulations on the new home!",
                    "Thank you for everything",
                    "Enjoy it, and see you soon!",
                    "Get well soon!",
                    "For the best aunt in the world",
                    "Happy anniversary, you two!",
                ],
            ),
        ],
    ) -> OrderChange:
        """Put a gift message on an order that has not shipped.

        Args:
            order_id: Order number.
            message: Text of the card, at most 200 characters.
        """
        order = self.lookup(self.state.orders, order_id, "order")
        if order.status not in ("pending", "processing"):
            raise ToolError(f"order {order_id} is already {order.status}, so it takes no gift message any more")
        if order.gift_message == message:
            raise ToolError(f"order {order_id} already has this gift message")
        order.gift_message = message
        return self._change(order)

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            shown={"single_use": (True,)}, because="a single-use coupon is used up and does not come back"
        ),
    )
    def apply_coupon(self, order_id: str, coupon_code: str) -> OrderChange:
        """Apply a coupon to a pending order and lower its total.

        Args:
            order_id: Order number.
            coupon_code: Code of the coupon.
        """
        order = self._pending(order_id)
        coupon = self._usable_coupon(coupon_code, order)
        order.coupon_code = coupon.code
        order.total = round(order.total * (100 - coupon.percent_off) / 100, 2)
        coupon.used_by.append(order.customer_id)
        return self._change(order)

    @tool(effect="read")
    def list_coupons(
        self, minimum_percent: Annotated[int, Field(ge=0, le=100, examples=[5, 10, 15])] = 0
    ) -> list[Coupon]:
        """List the coupons that are valid today.

        Args:
            minimum_percent: Only coupons with at least this discount in percent.
        """
        today = self.state.now.date()
        return [
            coupon
            for coupon in self.state.coupons.values()
            if coupon.valid_until >= today and coupon.percent_off >= minimum_percent
        ]

    @tool(
        effect="write",
        confirm=ConfirmationRule(
            above={"amount": 15}, because="store credit that is used cannot be paid back to the account"
        ),
    )
    def pay_with_store_credit(
        self, order_id: str, amount: Annotated[float, Field(ge=0.01, examples=[5.0, 10.0, 20.0])]
    ) -> OrderChange:
        """Lower the open total of a pending order with the customer's store credit.

        Args:
            order_id: Order number.
            amount: Amount to use, in pounds.
        """
        order = self._pending(order_id)
        customer = self.state.customers[order.customer_id]
        if amount > customer.store_credit:
            raise ToolError(f"only £{customer.store_credit:.2f} of store credit is left")
        if amount > order.total:
            raise ToolError(f"the total of the order is only £{order.total:.2f}")
        customer.store_credit = round(customer.store_credit - amount, 2)
        order.total = round(order.total - amount, 2)
        return self._change(order)

    @tool(effect="read")
    def track_shipment(self, order_id: str) -> Shipment:
        """Show where the parcel of an order is; an expected day may have passed if the parcel is late.

        Args:
            order_id: Order number.
        """
        self.lookup(self.state.orders, order_id, "order")
        for shipment in self.state.shipments.values():
            if shipment.order_id == order_id:
                return shipment
        raise ToolError(f"order {order_id} has not shipped yet")

    @tool(effect="read")
    def search_products(
        self,
        category: Annotated[
            str | None, Field(examples=["kitchen", "home office", "outdoor", "toys", "bathroom"])
        ] = None,
        max_price: Annotated[float | None, Field(gt=0, examples=[30.0, 60.0, 100.0, 200.0])] = None,
        in_stock_only: bool = False,
        page: Annotated[int, Field(ge=1)] = 1,
    ) -> list[CatalogueEntry]:
        """Search the catalogue, cheapest first, at most 8 products on a page.

        Args:
            category: Category of the catalogue.
            max_price: Highest price in pounds.
            in_stock_only: Leave out what is sold out.
            page: Page to show; dearer products are on later ones.
        """
        products = [
            product
            for product in self.state.products.values()
            if (category is None or product.category == category.lower())
            and (max_price is None or product.price <= max_price)
            and (product.in_stock > 0 or not in_stock_only)
        ]
        shown = sorted(products, key=lambda product: (product.price, product.sku))[8 * (page - 1) : 8 * page]
        return [CatalogueEntry.model_validate(product.model_dump(include=ENTRY_FIELDS)) for product in shown]

    @tool(effect="read")
    def get_product(self, sku: str) -> Product:
        """Show price, stock and warranty of a product.

        Args:
            sku: Stock keeping unit of the product.
        """
        return self.lookup(self.state.products, sku, "product")

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="the customer is charged for it"))
    def place_order(self, customer_id: str, sku: str, quantity: Annotated[int, Field(ge=1, le=10)] = 1) -> PlacedOrder:
        """Order a product for a customer, sent to the address of the account.

        Args:
            customer_id: Customer account.
            sku: Product to order.
            quantity: How many.
        """
        customer = self.lookup(self.state.customers, customer_id, "customer")
        product = self.lookup(self.state.products, sku, "product")
        if quantity > product.in_stock:
            if not product.in_stock:
                raise ToolError(f"the {product.name} is sold out")
            raise ToolError(f"only {product.in_stock} of the {product.name} are in stock")
        product.in_stock -= quantity
        number = self.state.counters["order"] = self.state.counters.get("order", 0) + 1
        line = OrderLine(
            line_id=f"L{10000 + number}-1",
            sku=sku,
            product_name=product.name,
            quantity=quantity,
            unit_price=product.price,
        )
        order = Order(
            order_id=f"W{10000 + number}",
            customer_id=customer_id,
            placed_at=self.state.now,
            status="pending",
            lines=[line],
            shipping_address=customer.address.model_copy(),
            coupon_code=None,
            gift_message=None,
            total=round(quantity * product.price, 2),
        )
        self.state.orders[order.order_id] = order
        placed = {"order_id": order.order_id, "product_name": product.name, "quantity": quantity}
        return PlacedOrder(**placed, total=order.total, status=order.status)

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="an item can be returned only once"))
    def request_return(
        self, line_id: str, reason: ReturnReason, quantity: Annotated[int, Field(ge=1, le=10)] = 1
    ) -> Return:
        """Ask for the return of a delivered item.

        Args:
            line_id: Line of the order that goes back.
            reason: Why it goes back.
            quantity: How many of it.
        """
        order, line = self._line(line_id)
        if quantity > line.quantity:
            raise ToolError(f"only {line.quantity} of the {line.product_name} were ordered")
        self._check_returnable(order, line)
        number = self.state.counters["return"] = self.state.counters.get("return", 0) + 1
        request = Return(
            return_id=f"R{700 + number}",
            order_id=order.order_id,
            line_id=line_id,
            product_name=line.product_name,
            quantity=quantity,
            reason=reason,
            status="requested",
            requested_at=self.state.now,
            refund_amount=round(quantity * line.unit_price, 2),
        )
        self.state.returns[request.return_id] = request
        return request

    @tool(effect="read")
    def list_returns(self, customer_id: str) -> list[Return]:
        """List the returns of a customer.

        Args:
            customer_id: Customer account.
        """
        self.lookup(self.state.customers, customer_id, "customer")
        returns = [
            request
            for request in self.state.returns.values()
            if self.state.orders[request.order_id].customer_id == customer_id
        ]
        return sorted(returns, key=lambda request: request.return_id)

    @tool(effect="write", confirm="never")
    def update_contact(
        self,
        customer_id: str,
        phone: Annotated[str | None, Field(min_length=5, examples=["+44 7700 900123", "+44 7700 900456"])] = None,
        newsletter: bool | None = None,
    ) -> Customer:
        """Change the phone number or the newsletter choice of an account.

        Args:
            customer_id: Customer account.
            phone: New phone number.
            newsletter: True to receive the newsletter, false to stop it.
        """
        customer = self.lookup(self.state.customers, customer_id, "customer")
        if phone is None and newsletter is None:
            raise ToolError("give a phone number or a newsletter choice")
        if phone in (None, customer.phone) and newsletter in (None, customer.newsletter):
            raise ToolError("the account already has these contact details")
        customer.phone = phone or customer.phone
        customer.newsletter = customer.newsletter if newsletter is None else newsletter
        return customer

    def _change(self, order: Order) -> OrderChange:
        return OrderChange(
            order_id=order.order_id,
            status=order.status,
            shipping_address=order.shipping_address,
            gift_message=order.gift_message,
            coupon_code=order.coupon_code,
            total=order.total,
        )

    def _summary(self, order: Order) -> OrderSummary:
        items = ", ".join(f"{line.quantity} x {line.product_name}" for line in order.lines)
        return OrderSummary(
            order_id=order.order_id,
            placed_at=order.placed_at.date().isoformat(),
            status=order.status,
            items=items,
            total=order.total,
        )

    def _pending(self, order_id: str) -> Order:
        order = self.lookup(self.state.orders, order_id, "order")
        if order.status != "pending":
            raise ToolError(f"order {order_id} is already {order.status}, and that works only while it is pending")
        return order

    def _usable_coupon(self, code: str, order: Order) -> Coupon:
        coupon = self.lookup(self.state.coupons, code.upper(), "coupon")
        if order.coupon_code is not None:
            raise ToolError(f"order {order.order_id} already has the coupon {order.coupon_code}")
        if coupon.valid_until < self.state.now.date():
            raise ToolError(f"the coupon {coupon.code} ended on {coupon.valid_until}")
        if order.total < coupon.minimum_total:
            raise ToolError(f"the coupon {coupon.code} needs a total of at least £{coupon.minimum_total:.2f}")
        if coupon.single_use and order.customer_id in coupon.used_by:
            raise ToolError(f"the coupon {coupon.code} works once, and it has already been used on this account")
        return coupon

    def _line(self, line_id: str) -> tuple[Order, OrderLine]:
        for order in self.state.orders.values():
            for line in order.lines:
                if line.line_id == line_id:
                    return order, line
        raise ToolError(f"order line not found: {line_id}")

    def _check_returnable(self, order: Order, line: OrderLine) -> None:
        if order.status != "delivered":
            raise ToolError(f"order {order.order_id} is {order.status}, and only delivered items can be returned")
        days = RETURN_DAYS[self.state.customers[order.customer_id].tier]
        if self.state.now - order.placed_at > timedelta(days=days):
            raise ToolError(f"the order was placed more than {days} days ago, and it can no longer be returned")
        if any(request.line_id == line.line_id for request in self.state.returns.values()):
            raise ToolError(f"{line.product_name} of order {order.order_id} is already being returned")


__all__ = ["Retail"]
