"""Generator of the shop's initial states."""

import random
from datetime import datetime, timedelta

from trajsmith.environments.library import _people
from trajsmith.environments.library.retail.state import (
    Address,
    Coupon,
    Customer,
    Order,
    OrderLine,
    OrderStatus,
    Product,
    RetailState,
    Return,
    Shipment,
)
from trajsmith.records import derive_seed

CUSTOMERS = {"small": 8, "medium": 24, "large": 700}
CATALOGUE: dict[str, tuple[tuple[str, float, int], ...]] = {
    "kitchen": (
        ("Copper Kettle", 49.9, 24),
        ("Cast Iron Skillet", 39.5, 60),
        ("Burr Coffee Grinder", 89.0, 24),
        ("Bamboo Cutting Board", 24.9, 6),
        ("Digital Kitchen Scale", 29.0, 12),
        ("Stoneware Dinner Set", 119.0, 12),
    ),
    "home office": (
        ("Standing Desk", 399.0, 60),
        ("Mesh Office Chair", 249.0, 36),
        ("LED Desk Lamp", 45.0, 24),
        ("Monitor Arm", 79.0, 24),
        ("Walnut Desk Organizer", 34.5, 6),
        ("Noise Cancelling Headset", 159.0, 24),
    ),
    "outdoor": (
        ("Two Person Tent", 189.0, 24),
        ("Down Sleeping Bag", 149.0, 24),
        ("Trekking Pole Set", 69.0, 12),
        ("Camping Stove", 54.0, 24),
        ("Dry Bag", 22.0, 6),
        ("Headlamp", 38.0, 24),
    ),
    "toys": (
        ("Wooden Train Set", 59.0, 12),
        ("Marble Run", 44.0, 12),
        ("World Map Puzzle", 27.0, 6),
        ("Beginner Telescope", 129.0, 24),
        ("Building Block Set", 36.0, 12),
        ("Balance Bike", 99.0, 24),
    ),
    "bathroom": (
        ("Linen Towel Set", 56.0, 6),
        ("Shaving Mirror", 33.0, 12),
        ("Teak Bath Mat", 48.0, 12),
        ("Rain Shower Head", 72.0, 24),
        ("Soap Dispenser", 19.0, 6),
        ("Laundry Basket", 41.0, 6),
    ),
}
CARRIERS = ("Northwind Parcel", "SwiftPost", "BlueVan")
STATUSES: tuple[OrderStatus, ...] = ("pending", "processing", "shipped", "delivered", "cancelled")
BASKET: tuple[OrderStatus, ...] = ("pending", "delivered", "delivered")
"""Orders that every customer has; a few others come on top."""
AGES: dict[OrderStatus, tuple[int, int]] = {
    "pending": (0, 2),
    "processing": (1, 5),
    "shipped": (2, 4),
    "delivered": (7, 36),
    "cancelled": (2, 80),
}
"""Days since an order in a status was placed, from and to; none is as young as its parcel."""


def make_state(size: str, seed: int) -> RetailState:
    """A shop of the given size; the same seed gives the same shop."""
    rng = random.Random(derive_seed("retail", size, seed))
    now = datetime(2026, rng.randrange(1, 13), rng.randrange(1, 28), rng.randrange(8, 19), rng.choice((0, 15, 30, 45)))
    state = RetailState(now=now, seed=seed)
    _add_products(state, rng, copies=1 if size != "large" else 10)
    _add_coupons(state, rng)
    for person in _people.people(rng, CUSTOMERS[size]):
        customer = _add_customer(state, rng, person)
        statuses = [*BASKET, *rng.choices(STATUSES, k=rng.choice((0, 1, 1, 2)))]
        for status in rng.sample(statuses, len(statuses)):
            _add_order(state, rng, customer, status)
    return state


def _add_products(state: RetailState, rng: random.Random, copies: int) -> None:
    number = 0
    for copy in range(copies):
        series = "" if copy == 0 else f" Series {copy + 1}"
        for category, items in CATALOGUE.items():
            for name, price, warranty in items:
                number += 1
                sku = f"SKU-{1000 + number * 7}"
                stock = rng.choice((0, 2, 5, 9, 14, 30))
                state.products[sku] = Product(
                    sku=sku,
                    name=name + series,
                    category=category,
                    price=round(price * (1 + copy * 0.15), 2),
                    in_stock=stock,
                    restock_date=_people.day_after(rng, state.now, 40) if stock == 0 else None,
                    warranty_months=warranty,
                    rating=round(rng.uniform(3.1, 4.9), 1),
                )


def _add_coupons(state: RetailState, rng: random.Random) -> None:
    offers = (
        ("WELCOME10", 10, 0.0, True),
        ("SPRING15", 15, 30.0, False),
        ("BIGCART20", 20, 120.0, True),
        ("OLDTIMER5", 5, 0.0, False),
    )
    for code, percent, minimum, single in offers:
        days = rng.randrange(5, 60) if code != "OLDTIMER5" else -rng.randrange(3, 40)
        state.coupons[code] = Coupon(
            code=code,
            percent_off=percent,
            minimum_total=minimum,
            single_use=single,
            used_by=[],
            valid_until=(state.now + timedelta(days=days)).date(),
        )


def _add_customer(state: RetailState, rng: random.Random, person: _people.Person) -> Customer:
    number = state.counters["customer"] = state.counters.get("customer", 0) + 1
    street, city, postal_code = _people.street_address(rng)
    customer = Customer(
        customer_id=f"C{2000 + number}",
        name=person.name,
        email=person.email,
        phone=person.phone,
        address=Address(street=street, city=city, postal_code=postal_code),
        tier=rng.choice(("standard", "standard", "silver", "gold")),
        store_credit=rng.choice((0.0, 10.0, 20.0, 25.0, 40.0)),
        newsletter=rng.random() < 0.5,
    )
    state.customers[customer.customer_id] = customer
    return customer


def _add_order(state: RetailState, rng: random.Random, customer: Customer, status: OrderStatus) -> None:
    number = state.counters["order"] = state.counters.get("order", 0) + 1
    placed_at = state.now - timedelta(minutes=rng.randrange(*(days * 24 * 60 for days in AGES[status])))
    chosen = rng.sample(list(state.products.values()), rng.choice((1, 1, 2, 3)))
    lines = [
        OrderLine(
            line_id=f"L{10000 + number}-{place}",
            sku=product.sku,
            product_name=product.name,
            quantity=rng.choice((1, 1, 1, 2, 3)),
            unit_price=product.price,
        )
        for place, product in enumerate(chosen, 1)
    ]
    order = Order(
        order_id=f"W{10000 + number}",
        customer_id=customer.customer_id,
        placed_at=placed_at,
        status=status,
        lines=lines,
        shipping_address=customer.address.model_copy(),
        coupon_code=None,
        gift_message=None,
        total=round(sum(line.quantity * line.unit_price for line in lines), 2),
    )
    state.orders[order.order_id] = order
    if status in ("shipped", "delivered"):
        _add_shipment(state, rng, order)
    if status == "delivered" and rng.random() < 0.45:
        _add_return(state, rng, order)


def _add_shipment(state: RetailState, rng: random.Random, order: Order) -> None:
    number = state.counters["shipment"] = state.counters.get("shipment", 0) + 1
    shipped = order.placed_at.date() + timedelta(days=1)
    expected = shipped + timedelta(days=rng.randrange(2, 6))
    if order.status == "shipped":
        expected = max(expected, state.now.date())
    delivered = min(expected, state.now.date()) if order.status == "delivered" else None
    state.shipments[f"TRK{500000 + number * 13}"] = Shipment(
        tracking_number=f"TRK{500000 + number * 13}",
        order_id=order.order_id,
        carrier=rng.choice(CARRIERS),
        shipped_on=shipped,
        expected_on=expected,
        delivered_on=delivered,
        last_location=order.shipping_address.city if delivered else rng.choice(_people.CITIES)[0] + " depot",
    )


def _add_return(state: RetailState, rng: random.Random, order: Order) -> None:
    number = state.counters["return"] = state.counters.get("return", 0) + 1
    line = rng.choice(order.lines)
    state.returns[f"R{700 + number}"] = Return(
        return_id=f"R{700 + number}",
        order_id=order.order_id,
        line_id=line.line_id,
        product_name=line.product_name,
        quantity=1,
        reason=rng.choice(("damaged", "wrong_item", "not_as_described", "changed_mind")),
        status=rng.choice(("requested", "approved", "received", "refunded")),
        requested_at=order.placed_at + (state.now - order.placed_at) / 2,
        refund_amount=line.unit_price,
    )
