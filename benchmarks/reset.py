"""What a fresh state costs: tables that are copied on touch beside states that are validated as a whole.

    .venv/bin/python benchmarks/reset.py

One process, one core, CPU time, best of 3. The state is that of a small shop: users and products (flat records), and
orders with their lines; the play is that of `NativeProgram`, without a session or a sandbox around it.
"""

import gc
import platform
import time
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import orjson
from rich.console import Console
from rich.table import Table

from trajsmith.environments import Environment, EnvironmentState, StateModel, ToolError, tool
from trajsmith.environments.native_program import NativeEpisode, NativeProgram

SIZES = {"10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000}


class ShopUser(StateModel):
    user_id: str
    name: str
    email: str
    city: str
    credit: float
    since: datetime


class Product(StateModel):
    product_id: str
    title: str
    price: float
    stock: int
    colour: Literal["red", "green", "blue"]


class Line(StateModel):
    product_id: str
    quantity: int
    price: float


class Order(StateModel):
    order_id: str
    user_id: str
    status: Literal["pending", "shipped", "cancelled"]
    placed_at: datetime
    lines: list[Line]


class ShopState(EnvironmentState):
    users: dict[str, ShopUser] = {}
    products: dict[str, Product] = {}
    orders: dict[str, Order] = {}


class Shop(Environment[ShopState]):
    """A shop."""

    @tool(effect="read")
    def get_user(self, user_id: str) -> ShopUser:
        """Look a user up."""
        return self.lookup(self.state.users, user_id, "user")

    @tool(effect="read")
    def get_order(self, order_id: str) -> Order:
        """Look an order up."""
        return self.lookup(self.state.orders, order_id, "order")

    @tool(effect="read")
    def find_products(self, colour: str, most: float) -> list[Product]:
        """Products of a colour up to a price, the cheapest five."""
        products = [one for one in self.state.products.values() if one.colour == colour and one.price <= most]
        return sorted(products, key=lambda one: one.price)[:5]

    @tool(effect="read")
    def list_orders(self, user_id: str) -> list[Order]:
        """All orders of a user."""
        return [order for order in self.state.orders.values() if order.user_id == user_id]

    @tool(effect="write")
    def move(self, user_id: str, city: str) -> ShopUser:
        """Change where a user lives."""
        user = self.lookup(self.state.users, user_id, "user")
        user.city = city
        return user

    @tool(effect="write")
    def order(self, user_id: str, product_id: str, quantity: int) -> Order:
        """Order a product."""
        user = self.lookup(self.state.users, user_id, "user")
        product = self.lookup(self.state.products, product_id, "product")
        if product.stock < quantity:
            raise ToolError(f"only {product.stock} left")
        product.stock -= quantity
        line = Line(product_id=product_id, quantity=quantity, price=product.price)
        order = Order(
            order_id=self.new_id("order", "N{:05d}"),
            user_id=user.user_id,
            status="pending",
            placed_at=self.state.now,
            lines=[line],
        )
        self.state.orders[order.order_id] = order
        return order

    @tool(effect="write")
    def cancel(self, order_id: str) -> Order:
        """Cancel an order."""
        order = self.lookup(self.state.orders, order_id, "order")
        if order.status != "pending":
            raise ToolError(f"the order is {order.status}")
        order.status = "cancelled"
        for line in order.lines:
            self.state.products[line.product_id].stock += line.quantity
        return order


def shop_state(size: int) -> bytes:
    """A state of about `size` bytes of JSON."""
    count = max(4, size // 700)
    users = {
        f"U{i:05d}": ShopUser(
            user_id=f"U{i:05d}",
            name=f"Person Number {i}",
            email=f"person{i}@example.org",
            city="Lisbon",
            credit=i / 4,
            since=datetime(2025, 1, 1 + i % 28),
        )
        for i in range(count)
    }
    products = {
        f"P{i:05d}": Product(
            product_id=f"P{i:05d}",
            title=f"Thing number {i} for the house",
            price=1 + i % 90,
            stock=40,
            colour=("red", "green", "blue")[i % 3],
        )
        for i in range(count)
    }
    orders = {
        f"X{i:05d}": Order(
            order_id=f"X{i:05d}",
            user_id=f"U{i % count:05d}",
            status="pending",
            placed_at=datetime(2025, 3, 1 + i % 28, 9),
            lines=[Line(product_id=f"P{(i + j) % count:05d}", quantity=1 + j, price=3.5) for j in range(2)],
        )
        for i in range(count)
    }
    state = ShopState(now=datetime(2026, 1, 1), users=users, products=products, orders=orders)
    return state.model_dump_json().encode()


KEYED: list[tuple[str, dict[str, Any]]] = [
    ("get_user", {"user_id": "U00001"}),
    ("order", {"user_id": "U00001", "product_id": "P00002", "quantity": 2}),
    ("move", {"user_id": "U00001", "city": "Porto"}),
    ("cancel", {"order_id": "X00001"}),
    ("get_user", {"user_id": "U00003"}),
]


class EagerPlay:
    """The same class on a state that is validated as a whole; nothing is sealed, and a look dumps everything."""

    def __init__(self, state: Any) -> None:
        self.shop = Shop(ShopState.model_validate(state))

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return self.shop.call(name, arguments)

    def changes(self) -> bytes:
        return self.shop.dump()


def best(job: Callable[[], Any], count: int) -> float:
    """Microseconds of CPU per run of a job, best of 3."""
    job()
    seconds = []
    for _ in range(3):
        gc.collect()
        start = time.process_time_ns()
        for _ in range(count):
            job()
        seconds.append((time.process_time_ns() - start) / count / 1000)
    return min(seconds)


def play_keyed(play: Any) -> Any:
    for name, arguments in KEYED:
        play.call(name, arguments)
    return play


def memory(start: Callable[[], Any], count: int = 10) -> float:
    """KB that a play holds after five keyed calls."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    plays = [play_keyed(start()) for _ in range(count)]
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held / len(plays) / 1024


def measure(size: int) -> list[tuple[str, float, float]]:
    """Rows of: what, eager, copy on touch."""
    state = shop_state(size)
    payload = orjson.loads(state)
    program = NativeProgram(Shop)

    def lazy() -> NativeEpisode:
        return program.start(state)

    def eager() -> EagerPlay:
        return EagerPlay(payload)

    def scanned(play: Any) -> None:
        play.call("find_products", {"colour": "red", "most": 3})
        play.call("list_orders", {"user_id": "U00001"})

    def looked(play: Any) -> None:
        play.call("move", {"user_id": "U00001", "city": "Porto"})
        play.call("move", {"user_id": "U00001", "city": "Lagos"})
        play.changes()

    few = max(3, 2_000_000 // size)
    warm, warm_eager = lazy(), eager()
    scanned(warm)
    rows: list[tuple[str, float, float]] = [
        ("reset, us", best(eager, few), best(lazy, 5000)),
        ("reset and 5 keyed calls, us", best(lambda: play_keyed(eager()), few), best(lambda: play_keyed(lazy()), 1000)),
        ("reset and 2 scans, us", best(lambda: scanned(eager()), few), best(lambda: scanned(lazy()), few)),
        ("2 scans again, us", best(lambda: scanned(warm_eager), 20), best(lambda: scanned(warm), 20)),
    ]
    fresh, fresh_eager = lazy(), eager()
    arguments: dict[str, Any]
    for label, name, arguments in (
        ("keyed read, us", "get_user", {"user_id": "U00001"}),
        ("keyed read of a nested record, us", "get_order", {"order_id": "X00001"}),
        ("refused write, us", "order", {"user_id": "U00001", "product_id": "P00002", "quantity": 900}),
    ):
        rows.append(
            (
                label,
                best(lambda n=name, a=arguments: fresh_eager.call(n, a), few),  # type: ignore[misc]
                best(lambda n=name, a=arguments: fresh.call(n, a), 2000),  # type: ignore[misc]
            )
        )
    rows += [
        ("2 keyed writes and a look, us", best(lambda: looked(fresh_eager), few), best(lambda: looked(fresh), 2000)),
        ("memory after 5 keyed calls, KB", memory(eager, 2), memory(lazy)),
    ]
    return rows


def main() -> None:
    out = Console(width=max(Console().width, 110))
    table = Table("what", title=f"Python {platform.python_version()}, {platform.machine()}: eager | copy on touch")
    measured = {label: measure(size) for label, size in SIZES.items()}
    for label in measured:
        table.add_column(f"{label} eager", justify="right")
        table.add_column("on touch", justify="right", style="bold")
    for number, (operation, _, _) in enumerate(measured["1 MB"]):
        values = [f"{value:,.1f}" for rows in measured.values() for value in rows[number][1:]]
        table.add_row(operation, *values)
    out.print(table)


if __name__ == "__main__":
    main()
