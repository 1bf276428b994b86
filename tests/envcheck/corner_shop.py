"""A small sound shop as an environment of plain functions, in which tests put one fault at a time."""

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
from jsonschema import Draft202012Validator

from trajsmith.environments import ToolResult
from trajsmith.phrasing import Phrasebook, ScenarioBook
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, JsonObject, ToolSpec, compute_state_digest

NAMES = ("Ada Brook", "Ben Cole", "Cleo Dunn", "Dev Ellis", "Eva Frost", "Finn Gale")
GOODS = ("Lamp", "Chair", "Kettle", "Mirror", "Basket", "Clock", "Stool", "Rug")


class Refuse(Exception):
    """A tool refuses."""


@dataclass
class World:
    """What a process has beside the states: its clock and hash seed, and what code keeps in modules."""

    shift: int = 0
    hash_seed: int = 0
    shared: dict[str, Any] = field(default_factory=dict)
    """Module-level state."""


@dataclass
class Play:
    """One session: its state, and what code keeps beside it."""

    world: World
    state: JsonObject
    beside: dict[str, Any] = field(default_factory=dict)


Run = Callable[..., Any]


@dataclass(frozen=True)
class Tool:
    """A tool: what it says, and what it does."""

    run: Run
    about: str
    parameters: JsonObject
    required: tuple[str, ...]
    reads: bool | None = False
    destructive: bool = False
    output: JsonObject | None = None

    def spec(self, name: str) -> ToolSpec:
        schema = {"type": "object", "properties": self.parameters, "required": list(self.required)}
        return ToolSpec.model_validate(
            {
                "server": "shop",
                "name": name,
                "description": self.about,
                "inputSchema": {**schema, "additionalProperties": False},
                "outputSchema": self.output,
                "annotations": {"readOnlyHint": self.reads, "destructiveHint": self.destructive},
            }
        )


def text(about: str, **more: Any) -> JsonObject:
    return {"type": "string", "description": about, **more}


def number(about: str, kind: str = "integer", **more: Any) -> JsonObject:
    return {"type": kind, "description": about, **more}


# The sound tools


def row(play: Play, table: str, key: str) -> JsonObject:
    found: JsonObject | None = play.state[table].get(key)
    if found is None:
        raise Refuse(f"there is no {table[:-1]} {key}")
    return found


def get_customer(play: Play, customer_id: str) -> JsonObject:
    return copy.deepcopy(row(play, "customers", customer_id))


def list_orders(play: Play, customer_id: str, status: str | None = None) -> JsonObject:
    row(play, "customers", customer_id)
    own = [order for order in play.state["orders"].values() if order["customer_id"] == customer_id]
    found = [order for order in own if status in (None, order["status"])]
    return {"orders": [summary(order) for order in found[:4]]}


def summary(order: JsonObject) -> JsonObject:
    return {name: order[name] for name in ("order_id", "customer_id", "status", "total")}


def get_product(play: Play, product_id: str) -> JsonObject:
    return copy.deepcopy(row(play, "products", product_id))


def place_order(play: Play, customer_id: str, product_id: str, quantity: int, note: str = "") -> JsonObject:
    customer, product = row(play, "customers", customer_id), row(play, "products", product_id)
    if quantity > product["stock"]:
        raise Refuse(f"only {product['stock']} of {product['name']} are in stock")
    open_orders = [one for one in play.state["orders"].values() if one["customer_id"] == customer_id]
    if sum(order["status"] == "open" for order in open_orders) >= 3:
        raise Refuse("a customer can have at most 3 orders that are open")
    play.state["counters"]["order"] += 1
    order_id = f"W{play.state['counters']['order']}"
    line = {"line_id": f"{order_id}-1", "product_id": product_id, "quantity": quantity, "price": product["price"]}
    play.state["orders"][order_id] = {
        "order_id": order_id,
        "customer_id": customer_id,
        "status": "open",
        "note": note,
        "placed_on": play.state["now"][:10],
        "cancelled_on": None,
        "lines": [line],
        "total": round(quantity * product["price"], 2),
    }
    product["stock"] -= quantity
    customer["order_ids"].append(order_id)
    return summary(play.state["orders"][order_id])


def cancel_order(play: Play, order_id: str) -> JsonObject:
    order = row(play, "orders", order_id)
    if order["status"] != "open":
        raise Refuse(f"order {order_id} is {order['status']} and not open any more")
    for line in order["lines"]:
        play.state["products"][line["product_id"]]["stock"] += line["quantity"]
    order["status"], order["cancelled_on"] = "cancelled", play.state["now"][:10]
    return summary(order)


def add_credit(play: Play, customer_id: str, amount: float) -> JsonObject:
    customer = row(play, "customers", customer_id)
    if amount > 500:
        raise Refuse("a customer can be given at most 500 pounds at a time")
    customer["credit"] = round(customer["credit"] + amount, 2)
    return {"customer_id": customer_id, "credit": customer["credit"]}


def set_note(play: Play, order_id: str, note: str) -> JsonObject:
    order = row(play, "orders", order_id)
    if order["note"] == note:
        raise Refuse(f"order {order_id} has this note already")
    order["note"] = note
    return {"order_id": order_id, "note": note}


ORDER = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"}, "customer_id": {"type": "string"},
        "status": {"type": "string"}, "total": {"type": "number"},
    },
    "required": ["order_id", "customer_id", "status", "total"],
}  # fmt: skip
CUSTOMER_ID = text("Customer.")
ORDER_ID = text("Order number.")
STATUS = text("Only orders in this status.", enum=["open", "sent", "cancelled"])
NOTE = text("A few words for the packer.", minLength=3, maxLength=60)

TOOLS: dict[str, Tool] = {
    "get_customer": Tool(get_customer, "Show a customer.", {"customer_id": CUSTOMER_ID}, ("customer_id",), reads=True),
    "list_orders": Tool(
        list_orders,
        "List the orders of a customer, at most 4.",
        {"customer_id": CUSTOMER_ID, "status": STATUS},
        ("customer_id",),
        reads=True,
    ),
    "get_product": Tool(get_product, "Show a product.", {"product_id": text("Product.")}, ("product_id",), reads=True),
    "place_order": Tool(
        place_order,
        "Order a product for a customer.",
        {
            "customer_id": CUSTOMER_ID,
            "product_id": text("Product."),
            "quantity": number("How many.", minimum=1, maximum=12),
            "note": NOTE,
        },
        ("customer_id", "product_id", "quantity"),
        output=ORDER,
    ),
    "cancel_order": Tool(
        cancel_order, "Cancel an open order.", {"order_id": ORDER_ID}, ("order_id",), destructive=True, output=ORDER
    ),
    "add_credit": Tool(
        add_credit,
        "Give a customer credit.",
        {"customer_id": CUSTOMER_ID, "amount": number("Pounds.", minimum=1, maximum=900)},
        ("customer_id", "amount"),
    ),
    "set_note": Tool(set_note, "Write a note on an order.", {"order_id": ORDER_ID, "note": NOTE}, ("order_id", "note")),
}


def initial(seed: int) -> JsonObject:
    """A state in which everything is as it should be."""
    rng = random.Random(seed)
    products = {
        f"P{10 + number}": {
            "product_id": f"P{10 + number}",
            "name": name,
            "price": round(rng.uniform(3, 90), 2),
            "stock": rng.randrange(0, 12),
        }
        for number, name in enumerate(GOODS)
    }
    customers: JsonObject = {
        f"C{100 + number}": {
            "customer_id": f"C{100 + number}",
            "name": name,
            "credit": round(rng.uniform(0, 60), 2),
            "order_ids": [],
        }
        for number, name in enumerate(NAMES)
    }
    orders: JsonObject = {}
    for number in range(12):
        order_id, product = f"W{50 + number}", products[rng.choice(list(products))]
        customer_id, quantity = rng.choice(list(customers)), rng.randrange(1, 5)
        status = rng.choice(("open", "sent", "sent", "cancelled"))
        day = f"2026-03-{rng.randrange(1, 19):02d}"
        line = {
            "line_id": f"{order_id}-1",
            "product_id": product["product_id"],
            "quantity": quantity,
            "price": product["price"],
        }
        orders[order_id] = {
            "order_id": order_id,
            "customer_id": customer_id,
            "status": status,
            "note": "",
            "placed_on": day,
            "cancelled_on": day if status == "cancelled" else None,
            "lines": [line],
            "total": round(quantity * product["price"], 2),
        }
        customers[customer_id]["order_ids"].append(order_id)
    counters = {"order": 61}
    return {
        "now": "2026-03-20T10:00:00", "counters": counters, "customers": customers, "products": products,
        "orders": orders,
    }  # fmt: skip


def table(**fields: str | list[str]) -> JsonObject:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return {
        "type": "object",
        "additionalProperties": {"type": "object", "properties": properties, "required": list(properties)},
    }


STATE_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "now": {"type": "string"},
        "counters": {"type": "object", "additionalProperties": {"type": "integer"}},
        "customers": table(customer_id="string", name="string", credit="number", order_ids="array"),
        "products": table(product_id="string", name="string", price="number", stock="integer"),
        "orders": table(
            order_id="string", customer_id="string", status="string", note="string", placed_on="string",
            cancelled_on=["string", "null"], lines="array", total="number",
        ),
    },
}  # fmt: skip


def copied(value: JsonObject) -> JsonObject:
    copy: JsonObject = orjson.loads(orjson.dumps(value))
    return copy


class Session:
    """A session that trusts its tools: what they do to the state is done, whatever they say."""

    def __init__(self, shop: "Shop") -> None:
        self.spec = shop.made
        self._shop = shop
        self._play = Play(shop.world, {})

    async def reset(self, state: JsonObject) -> None:
        self._play = Play(self._shop.world, copied(state))

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        known = self._shop.tools.get(tool)
        if known is None:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        if self._shop.checks_arguments and not self._shop.validators[tool].is_valid(arguments):
            return ToolResult.refusal("invalid_arguments", "these arguments do not fit the schema")
        try:
            return ToolResult(known.run(self._play, **arguments))
        except Refuse as refusal:
            return ToolResult.refusal("refused", str(refusal))
        except Exception as error:
            raise EnvironmentFault("crash", "shop", f"{type(error).__name__}: {error}", tool) from error

    async def snapshot(self) -> JsonObject:
        return copied(self._play.state)

    async def state_hash(self) -> str:
        return compute_state_digest(self._play.state)

    async def checkpoint(self) -> tuple[JsonObject, dict[str, Any]]:
        return copied(self._play.state), copied(self._play.beside)

    async def rollback(self, checkpoint: tuple[JsonObject, dict[str, Any]]) -> None:
        self._play = Play(self._shop.world, *map(copied, checkpoint))

    async def close(self) -> None:
        self._play = Play(self._shop.world, {})


class Shop:
    """The shop as a source; `faulty` tools take the place of sound ones."""

    name = "shop"
    isolation = "in the tests"
    notes: tuple[str, ...] = ()
    phrasebook = Phrasebook()
    scenarios = ScenarioBook()

    def __init__(
        self,
        faulty: dict[str, Run] | None = None,
        tools: dict[str, Tool] | None = None,
        policy: str = "",
        states: Callable[[int], JsonObject] = initial,
        can_restore: bool = True,
        checks_arguments: bool = True,
        world: World | None = None,
    ) -> None:
        self.world = world or World()
        self.tools = tools or {
            name: replace(tool, run=(faulty or {}).get(name, tool.run)) for name, tool in TOOLS.items()
        }
        self.checks_arguments = checks_arguments
        self._states = states
        self.made = EnvironmentSpec(
            name="shop",
            version="1",
            description="A shop.",
            policy=policy,
            tools=tuple(tool.spec(name) for name, tool in self.tools.items()),
            state_schema=STATE_SCHEMA,
            source="test:shop",
            can_restore=can_restore,
        )
        self.validators = {tool.name: Draft202012Validator(tool.input_schema) for tool in self.made.tools}
        self._arguments = (None, self.tools, policy, states, can_restore, checks_arguments)

    async def spec(self) -> EnvironmentSpec:
        return self.made

    async def states(self, seed: int) -> list[JsonObject]:
        return [self._states(seed)]

    async def open(self) -> Session:
        return Session(self)


class Reopened(Shop):
    """A shop that can be started again elsewhere: elsewhere is a world of its own."""

    def reopen(self, hash_seed: int, shift: int) -> Shop:
        return Shop(*self._arguments, world=World(shift, hash_seed))


def changed(name: str, **more: Any) -> dict[str, Tool]:
    """The sound tools, one of which says something else of itself."""
    return {**TOOLS, name: replace(TOOLS[name], **more)}
