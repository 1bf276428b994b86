"""A small native environment as source text, with tools that misbehave in every way a worker must survive."""

from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.records import JsonObject

SHOP = '''
import itertools
import random
import time
import uuid
from datetime import datetime

from trajsmith import Environment, EnvironmentState, StateModel, ToolError, tool

COUNT = itertools.count()


class Order(StateModel):
    item: str
    price: float = 1.0


class ShopState(EnvironmentState):
    orders: dict[str, Order] = {}


class Shop(Environment[ShopState]):
    """A shop."""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> ShopState:
        orders = {f"W{n}": Order(item=f"item {n}") for n in range(3)}
        return ShopState(now=datetime(2026, 1, 1), seed=seed, orders=orders)

    @tool(effect="read")
    def get_order(self, order_id: str) -> Order:
        """Read an order."""
        return self.lookup(self.state.orders, order_id, "order")

    @tool(effect="write")
    def set_price(self, order_id: str, price: float) -> Order:
        """Change a price."""
        order = self.lookup(self.state.orders, order_id, "order")
        order.price = price
        if price < 0:
            raise ToolError("a price must not be negative")
        return order

    @tool(effect="write")
    def add_order(self, item: str) -> str:
        """Add an order."""
        name = self.new_id("order", "N{:d}")
        self.state.orders[name] = Order(item=item)
        return name

    @tool(effect="write")
    def stamp(self) -> str:
        """Add an order that has the time and a random number in it."""
        name = f"{datetime.now().isoformat()} {uuid.uuid4()} {random.random()}"
        self.state.orders[name] = Order(item="stamped")
        return name

    @tool(effect="read")
    def misbehave(self, how: str, size: int = 0) -> dict:
        """Do something bad."""
        if how == "spin":
            while True:
                pass
        if how == "swallow":
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
        if how == "spin in C":
            return {"sum": sum(range(10**12))}
        if how == "power":
            return {"length": len(str(10 ** (10**8)))}
        if how == "regex":
            import re
            return {"match": str(re.match("(a+)+$", "a" * 40 + "b"))}
        if how == "memory":
            return {"length": len(bytearray(4 << 30))}
        if how == "recursion":
            return self.misbehave(how, size + 1)
        if how == "exit":
            raise SystemExit(3)
        if how == "_exit":
            import os
            os._exit(5)
        if how == "large":
            return {"text": "x" * size}
        if how == "nan":
            return {"number": float("nan")}
        if how == "infinity":
            return {"number": [1.0, {"deep": float("inf")}]}
        if how == "null":
            return {"number": None}
        if how == "surrogate":
            return {"text": "\\ud800"}
        if how == "bytes":
            return {"text": b"abc", "raw": object()}
        if how == "cycle":
            loop: dict = {}
            loop["loop"] = loop
            return loop
        if how == "deep":
            found: dict = {}
            for _ in range(2000):
                found = {"d": found}
            return found
        if how == "evil exception":
            class Evil(Exception):
                def __str__(self):
                    while True:
                        pass
            raise Evil
        if how == "busy":
            return {"sum": sum(range(size))}
        if how == "count":
            return {"count": next(COUNT)}
        if how == "print":
            print("x" * 100_000)
            return {"printed": True}
        if how == "sleep":
            time.sleep(3600)
            return {"slept": True}
        if how == "blame the user":
            from trajsmith.records import InputError
            raise InputError("not mine")
        if how == "blame the run":
            from trajsmith.records import RunError
            raise RunError("not mine")
        raise RuntimeError(how)
'''


def shop(source: str = SHOP, *, own_process: bool = False, **settings: object) -> SandboxSource:
    """The shop in a sandbox; more settings of the sandbox by name."""
    chosen: JsonObject = {"call_seconds": 0.3, "wall_seconds": 5.0, **settings}
    payload: JsonObject = {"source": source, "file": "shop.py", "cls": "", "sizes": {"small": 1}}
    return SandboxSource("shop", "native", payload, SandboxSettings.model_validate(chosen), own_process=own_process)
