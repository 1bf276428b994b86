"""A small service whose calls are recorded: what it does is known, so a clone can be compared with it."""

import random
from typing import Any

from trajsmith.envgen.traces.code import RenderedClone, render_clone
from trajsmith.envgen.traces.infer import Clone, infer_clone
from trajsmith.envgen.traces.recordings import CallRecording, RecordedDialogue, TracedCall

STATUSES = ("placed", "shipped", "cancelled")
KINDS = ("books", "games", "tools")


class Shop:
    """Products by kind, customers with a balance, and orders that are placed, refused and cancelled."""

    def __init__(self) -> None:
        rng = random.Random(7)
        self.products = {
            f"P{n}": {"product_id": f"P{n}", "name": f"Item {n}", "price": rng.randint(3, 40)} for n in range(12)
        }
        self.kinds = {f"P{n}": KINDS[n % 3] for n in range(12)}
        self.customers = {
            f"C{n}": {"customer_id": f"C{n}", "email": f"c{n}@example.com", "balance": rng.randint(50, 300)}
            for n in range(8)
        }
        self.orders = {
            f"O{n}": {
                "order_id": f"O{n}", "customer_id": f"C{n % 8}", "product_id": f"P{n % 12}", "quantity": 1 + n % 3,
                "total": 10 + n, "status": STATUSES[n % 2],
            }
            for n in range(20)
        }  # fmt: skip
        self.number = 100

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, bool]:
        result = getattr(self, tool)(**arguments)
        failed = isinstance(result, str) and result.startswith("Error: ")
        return (dict(result) if isinstance(result, dict) else result), failed

    def list_products(self, kind: str) -> Any:
        return [dict(one) for key, one in self.products.items() if self.kinds[key] == kind]

    def get_customer(self, customer_id: str) -> Any:
        return self.customers.get(customer_id) or f"Error: customer {customer_id} not found"

    def get_order(self, order_id: str) -> Any:
        return self.orders.get(order_id) or f"Error: order {order_id} not found"

    def place_order(self, customer_id: str, product_id: str, quantity: int) -> Any:
        total = self.products[product_id]["price"] * quantity + 5
        if total > self.customers[customer_id]["balance"]:
            return "Error: the balance is too low"
        self.number += 1
        order = {
            "order_id": f"O{self.number}", "customer_id": customer_id, "product_id": product_id, "quantity": quantity,
            "total": total, "status": "placed",
        }  # fmt: skip
        self.orders[order["order_id"]] = order
        self.customers[customer_id] = {
            **self.customers[customer_id],
            "balance": self.customers[customer_id]["balance"] - total,
        }
        return order

    def cancel_order(self, order_id: str) -> Any:
        order = self.orders[order_id]
        if order["status"] != "placed":
            return f"Error: order {order_id} is {order['status']} and cannot be cancelled"
        self.orders[order_id] = {**order, "status": "cancelled"}
        return self.orders[order_id]


def record_shop(dialogues: int = 60, seed: int = 0) -> CallRecording:
    """Record dialogues, each from the same initial state."""
    recorded = []
    for number in range(dialogues):
        rng, shop, calls = random.Random(f"{seed}:{number}"), Shop(), list[TracedCall]()

        def make(tool: str, calls: list[TracedCall] = calls, shop: Shop = shop, **arguments: Any) -> Any:
            result, failed = shop.call(tool, arguments)
            calls.append(TracedCall(tool, arguments, result, failed))
            return result

        customer, order, kind = f"C{rng.randrange(8)}", f"O{rng.randrange(20)}", rng.choice(KINDS)
        make("get_customer", customer_id=customer)
        products = make("list_products", kind=kind)
        made = make(
            "place_order",
            customer_id=customer,
            product_id=rng.choice(products)["product_id"],
            quantity=rng.randint(1, 8),
        )
        make("get_customer", customer_id=customer)
        make("get_order", order_id=order)
        make("cancel_order", order_id=order)
        make("get_order", order_id=order)
        if isinstance(made, dict):
            make("get_order", order_id=made["order_id"])
        recorded.append(RecordedDialogue(f"shop:{number}", calls, f"t{number}", float(number % 3 > 0)))
    return CallRecording(recorded)


def clone_shop(recording: CallRecording) -> tuple[Clone, RenderedClone]:
    clone = infer_clone(recording)
    return clone, render_clone(clone, "shop_clone", "Clone of a shop", "a test")
