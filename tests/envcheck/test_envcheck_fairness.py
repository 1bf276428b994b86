"""What looks wrong and is not, beside what is: lists, look-ups, new names, loading, order, null."""

from typing import Any

import pytest
from corner_shop import (
    TOOLS,
    Play,
    Refuse,
    Session,
    Shop,
    Tool,
    changed,
    get_product,
    initial,
    number,
    row,
    set_note,
    summary,
    text,
)
from examining import calls, found, report_on

from trajsmith.envcheck import CheckPlan
from trajsmith.envcheck.checks.unknown_identifiers import is_empty_result
from trajsmith.envcheck.row_links import RowLink, match_column
from trajsmith.records import EnvironmentFault, JsonObject


def with_tool(name: str, tool: Tool) -> dict[str, Tool]:
    return {**TOOLS, name: tool}


def reading(run: Any, about: str, required: tuple[str, ...] = (), **parameters: JsonObject) -> Tool:
    return Tool(run, about, parameters, required, reads=True)


# Lists


def alike(play: Play, product_id: str) -> JsonObject:
    row(play, "products", product_id)
    return {"products": [one for name, one in play.state["products"].items() if name != product_id]}


async def test_what_is_asked_about_is_not_among_its_likes() -> None:
    tool = reading(alike, "List the other products.", ("product_id",), product_id=text("Product."))
    assert await found(Shop(tools=with_tool("list_similar", tool)), "completeness") == []


async def test_a_default_is_a_filter_like_any_other_value() -> None:
    def by_status(play: Play, status: str = "sent") -> JsonObject:
        return {"orders": [summary(order) for order in play.state["orders"].values() if order["status"] == status]}

    status = text("Status.", enum=["open", "sent", "cancelled"], default="sent")
    shop = Shop(tools=with_tool("find_orders", reading(by_status, "Find orders by their status.", status=status)))
    assert await found(shop, "completeness") == []


def only_open(play: Play, customer_id: str, open_only: bool = False) -> JsonObject:
    row(play, "customers", customer_id)
    own = [order for order in play.state["orders"].values() if order["customer_id"] == customer_id]
    marked = [{**summary(order), "open": order["status"] == "open"} for order in own]
    return {"orders": [order for order in marked if order["open"] or not open_only]}


def mostly_open(play: Play, customer_id: str, open_only: bool = False) -> JsonObject:
    return only_open(play, customer_id, open_only and customer_id != "C100")


@pytest.mark.parametrize(("run", "expected"), [(only_open, []), (mostly_open, ["show_orders"])], ids=["sound", "not"])
async def test_only_means_only(run: Any, expected: list[str]) -> None:
    tool = reading(
        run, "Show orders.", ("customer_id", "open_only"), customer_id=text("Customer."), open_only={"type": "boolean"}
    )
    report = await report_on(Shop(tools=with_tool("show_orders", tool)), "filters", plan=CheckPlan(seeds=8, starts=4))
    assert [finding.tool for finding in report.findings] == expected


# Names that are not there


def by_name(play: Play, name: str) -> JsonObject:
    return {"asked": name, "customers": [one for one in play.state["customers"].values() if one["name"] == name]}


def by_name_or_any(play: Play, name: str) -> JsonObject:
    return {"customers": by_name(play, name)["customers"] or list(play.state["customers"].values())[:1]}


@pytest.mark.parametrize(("run", "expected"), [(by_name, []), (by_name_or_any, ["look_up"])], ids=["none", "any"])
async def test_a_look_up_by_what_nobody_is_called_finds_nobody(run: Any, expected: list[str]) -> None:
    tool = reading(run, "Look a customer up by name.", ("name",), name=text("Full name."))
    findings = await found(Shop(tools=with_tool("look_up", tool)), "unknown")
    assert [finding.tool for finding in findings] == expected


async def test_the_name_of_what_is_made_need_not_be_there() -> None:
    def add(play: Play, product_id: str, name: str) -> JsonObject:
        play.state["products"][product_id] = {"product_id": product_id, "name": name, "price": 1.0, "stock": 1}
        return get_product(play, product_id)

    def rename(play: Play, customer_id: str, name: str) -> JsonObject:
        row(play, "customers", customer_id)["name"] = name
        return {"customer_id": customer_id, "name": name}

    tool = Tool(add, "Add or replace a product.", {"product_id": text("Number."), "name": NAME}, ("product_id", "name"))
    parameters = {"customer_id": text("Customer."), "name": NAME}
    other = Tool(rename, "Give a customer another name.", parameters, ("customer_id", "name"))
    shop = Shop(tools={**TOOLS, "add_product": tool, "rename_customer": other})
    assert await found(shop, "unknown") == []


NAME = text("Name of the product.", minLength=3)


def test_an_answer_that_finds_nothing_may_say_what_was_asked() -> None:
    assert is_empty_result({"query": "x", "limit": 10, "rows": []})
    assert is_empty_result([])
    assert is_empty_result({"found": None})
    assert not is_empty_result({"query": "x", "rows": [{"id": 1}]})
    assert not is_empty_result({"name": "x"})


def test_a_column_of_a_longer_name_is_meant_if_there_is_one() -> None:
    own = RowLink("own", "room_id", "rooms", target="rooms")
    assert match_column("until_day", own, {"valid_until_day": "x", "day": "y"}) == "valid_until_day"
    assert match_column("until_day", own, {"valid_until_day": "x", "old_until_day": "y"}) is None
    assert match_column("day", own, {"first_day": "x"}) is None, "one word says too little"


# Taking away


async def test_what_is_taken_away_does_not_arrive() -> None:
    def remove(play: Play, customer_id: str, order_ids: list[str]) -> JsonObject:
        customer = row(play, "customers", customer_id)
        left = [name for name in customer["order_ids"] if name not in order_ids]
        if left == customer["order_ids"]:
            raise Refuse("the customer has none of these orders")
        customer["order_ids"] = left
        return {"left": len(left)}

    ids = {"type": "array", "items": {"type": "string"}, "description": "Order numbers."}
    parameters = {"customer_id": text("Customer."), "order_ids": ids}
    tool = Tool(remove, "Remove orders from a customer's list.", parameters, tuple(parameters))
    assert await found(Shop(tools=with_tool("remove_orders", tool)), "arguments") == []


# Starting, saving and loading


class Odd(Shop):
    """A shop whose sessions load in their own way."""

    kind: type[Session] = Session

    async def open(self) -> Session:
        return self.kind(self)


class Renaming(Session):
    """Brings an old form of states to the new one."""

    async def reset(self, state: JsonObject) -> None:
        await super().reset({("orders" if name == "old_orders" else name): part for name, part in state.items()})


class Losing(Session):
    async def reset(self, state: JsonObject) -> None:
        await super().reset({name: part for name, part in state.items() if name != "old_orders"} | {"orders": {}})


class Sorting(Session):
    """Keeps the objects of a state without their order."""

    async def reset(self, state: JsonObject) -> None:
        by_name = {name: dict(sorted(part.items())) if name == "orders" else part for name, part in state.items()}
        await super().reset(by_name)


def old_form(seed: int) -> JsonObject:
    return {("old_orders" if name == "orders" else name): part for name, part in initial(seed).items()}


@pytest.mark.parametrize(("kind", "count"), [(Renaming, 0), (Losing, 1)], ids=["renamed", "lost"])
async def test_a_part_that_gets_a_new_name_is_not_lost(kind: type[Session], count: int) -> None:
    shop = Odd(states=old_form)
    shop.kind = kind
    assert len(await found(shop, "start")) == count


async def test_the_order_of_objects_is_no_state() -> None:
    def newest(play: Play, customer_id: str, limit: int) -> JsonObject:
        row(play, "customers", customer_id)
        own = [order for order in play.state["orders"].values() if order["customer_id"] == customer_id]
        return {"orders": [summary(order) for order in own[::-1][:limit]]}

    def first(play: Play) -> JsonObject:
        return summary(next(iter(play.state["orders"].values())))

    tools = with_tool(
        "list_newest",
        reading(
            newest,
            "List.",
            ("customer_id", "limit"),
            customer_id=text("Customer."),
            limit=number("At most.", minimum=1),
        ),
    )
    shop = Odd(tools={**tools, "show_first": reading(first, "Show the first order.")}, states=mixed)
    shop.kind = Sorting
    assert await found(shop, "save_load") == []


def mixed(seed: int) -> JsonObject:
    state = initial(seed)
    return {**state, "orders": dict(reversed(state["orders"].items()))}


class Strict(Session):
    """Does not load what its own tools have stored."""

    async def reset(self, state: JsonObject) -> None:
        if any(order["note"] == "odd" for order in state["orders"].values()):
            raise EnvironmentFault("state", "shop", "an order has an odd note")
        await super().reset(state)

    async def rollback(self, checkpoint: tuple[JsonObject, dict[str, Any]]) -> None:
        await self.reset(checkpoint[0])


async def test_a_state_that_cannot_be_loaded_again_does_not_end_the_examination() -> None:
    def odd(play: Play, order_id: str, note: str) -> JsonObject:
        row(play, "orders", order_id)["note"] = "odd"
        return {"order_id": order_id}

    shop = Odd({"set_note": odd})
    shop.kind = Strict
    report = await report_on(shop)
    assert report.stopped == ""
    assert ("round_trip", "set_note") in {(finding.check, finding.tool) for finding in report.findings}


async def test_null_is_right_where_the_state_schema_says_so() -> None:
    def close(play: Play) -> JsonObject:
        if play.state["cashier"] is None:
            raise Refuse("nobody is at the till")
        play.state["cashier"] = None
        return {"open": False}

    def opened(seed: int) -> JsonObject:
        return {**initial(seed), "cashier": "Ada"}

    async def findings(schema: JsonObject) -> list[str | None]:
        shop = Shop(tools=with_tool("close_till", Tool(close, "Close the till.", {}, ())), states=opened)
        properties = {**shop.made.state_schema["properties"], "cashier": schema}
        shop.made = shop.made.model_copy(update={"state_schema": {"type": "object", "properties": properties}})
        return [finding.tool for finding in await found(shop, "state_schema")]

    assert await findings({"anyOf": [{"type": "string"}, {"type": "null"}]}) == []
    assert await findings({"type": "string"}) == ["close_till"]


# How much a finding weighs


async def test_a_null_in_an_answer_is_a_warning() -> None:
    def unknown_total(play: Play, order_id: str, note: str) -> JsonObject:
        set_note(play, order_id, note)
        return {**summary(row(play, "orders", order_id)), "total": None}

    output = TOOLS["place_order"].output
    (finding,) = await found(Shop(tools=changed("set_note", run=unknown_total, output=output)), "output_schema")
    assert (finding.severity, calls(finding)) == ("warning", ["set_note"])


async def test_a_write_that_was_never_possible_is_noted_where_there_are_few_states() -> None:
    def never(play: Play, customer_id: str) -> JsonObject:
        row(play, "customers", customer_id)
        return {"receipt": 0}

    def same(seed: int) -> JsonObject:
        return initial(0)

    tool = Tool(never, "Pay out.", {"customer_id": text("Customer.")}, ("customer_id",))
    for states, severity in ((same, "note"), (initial, "warning")):
        report = await report_on(Shop(tools=with_tool("pay_out", tool), states=states), "writes")
        assert [(one.tool, one.severity) for one in report.findings] == [("pay_out", severity)]
