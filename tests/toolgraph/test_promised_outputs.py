"""Tools that declare no outputs: what they give is told by their names, their descriptions and their siblings."""

from typing import Any

import pytest

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import build_graph

STRING = {"type": "string"}


def spec(name: str, parameters: dict[str, Any] | None = None, description: str = "", server: str = "shop") -> ToolSpec:
    """A tool as most MCP servers list it: no output schema. All parameters are required."""
    properties = parameters or {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(server=server, name=name, description=description, input_schema=schema)


def flows(*tools: ToolSpec) -> set[tuple[str, str]]:
    return {
        (edge.source.split(".")[1], edge.target.split(".")[1])
        for edge in build_graph(list(tools)).edges
        if edge.weight >= 2
    }


def kind(parameter: str, *tools: ToolSpec) -> str:
    return next(node.kind for node in build_graph(list(tools)).parameters if node.parameter == parameter)


CANCEL = spec("cancel_order", {"order_id": STRING}, "Cancel an order.")


@pytest.mark.parametrize(
    "giver",
    [
        pytest.param(spec("list_orders", {}, "List the orders of the shop."), id="a-list"),
        pytest.param(spec("search_orders", {"text": STRING}, "Search orders by a text."), id="a-search"),
        pytest.param(spec("create_order", {"product": STRING}, "Create an order."), id="what-makes-one"),
        pytest.param(
            spec("get_customer", {"email": STRING}, "Details of a customer, including their orders."),
            id="a-description-that-says-so",
        ),
    ],
)
def test_an_identifier_comes_from_who_gives_such_things(giver: ToolSpec) -> None:
    assert (giver.name, "cancel_order") in flows(giver, CANCEL)
    assert kind("order_id", giver, CANCEL) == "internal"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(spec("list_shops", {"city": STRING}, "List shops in a city."), id="a-list-of-other-things"),
        pytest.param(spec("delete_order", {"order_id": STRING}, "Delete an order."), id="what-asks-for-it-itself"),
        pytest.param(spec("list_orders", {}, "List orders.", server="desk"), id="another-server"),
    ],
)
def test_nothing_flows_from_tools_that_do_not_give_it(other: ToolSpec) -> None:
    orders = spec("search_orders", {"text": STRING}, "Search orders by a text.")
    assert {source for source, target in flows(orders, other, CANCEL) if target == "cancel_order"} == {orders.name}


def test_a_booking_names_what_a_search_has_shown() -> None:
    search = spec("SearchHotel", {"city": STRING}, "Find a hotel at a given location.")
    book = spec("ReserveHotel", {"hotel_name": STRING, "check_in_date": STRING}, "Reserve a selected hotel.")
    assert ("SearchHotel", "ReserveHotel") in flows(search, book)
    assert kind("hotel_name", search, book) == "internal"
    assert kind("check_in_date", search, book) == "external"


def test_a_token_goes_to_other_servers() -> None:
    token = spec("GetUserToken", {"username": STRING, "password": STRING}, "Get the user token.", server="account")
    alarm = spec("AddAlarm", {"token": STRING, "time": STRING}, "Set an alarm.", server="alarm")
    assert flows(token, alarm) == {("GetUserToken", "AddAlarm")}
    assert kind("token", token, alarm) == "internal"


def test_a_token_that_many_servers_promise_stays_in_its_suite() -> None:
    alarm = spec("AddAlarm", {"token": STRING, "time": STRING}, "Set an alarm.", server="acme_alarm")
    own = spec("GetUserToken", {"username": STRING, "password": STRING}, "Get the user token.", server="acme_account")
    others = [
        own.model_copy(update={"server": f"maker{number}_account", "name": f"GetUserToken{number}"})
        for number in range(9)
    ]
    assert flows(*others[:3], alarm) == {(f"GetUserToken{number}", "AddAlarm") for number in range(3)}
    assert flows(*others, alarm) == set()
    assert flows(*others, own, alarm) == {("GetUserToken", "AddAlarm")}


@pytest.mark.parametrize("name", ["book_doctor", "make_appointment", "place_order"])
def test_who_orders_chooses_by_name(name: str) -> None:
    search = spec("search_doctors", {"city": STRING}, "Find doctors.")
    tool = spec(name, {"doctor_name": STRING, "patient": STRING}, "Arrange it.")
    assert kind("doctor_name", tool, search) == "internal"


def test_the_id_of_the_person_who_asks_is_known_unless_a_look_up_finds_them() -> None:
    profile = spec("get_profile", {"customer_id": STRING}, "Get the profile of a customer.")
    find = spec("find_customer_by_email", {"email": STRING}, "Find a customer by e-mail address.")
    assert kind("customer_id", profile) == "external"
    assert kind("customer_id", profile, find) == "internal"


def test_the_path_of_a_promised_output_is_the_whole_result() -> None:
    promised = spec("list_orders", {}, "List the orders of the shop.")
    declared = promised.model_copy(
        update={
            "output_schema": {
                "type": "object",
                "properties": {
                    "orders": {"type": "array", "items": {"type": "object", "properties": {"order_id": STRING}}}
                },
            }
        }
    )
    (guess,), (sure,) = build_graph([promised, CANCEL]).edges, build_graph([declared, CANCEL]).edges
    assert (guess.links[0].output, sure.links[0].output) == ("$", "$.orders[*].order_id")
