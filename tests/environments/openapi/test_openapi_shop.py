"""What the operations of the shop's and the desk's documents do."""

from typing import Any

import pytest
from plays import program, state_of

from trajsmith.environments.adapters.openapi.program import OpenApiProgram, OpenApiSession
from trajsmith.records import EnvironmentFault, canonical_json


@pytest.fixture(scope="module")
def shop() -> OpenApiProgram:
    return program("shop.yaml")


@pytest.fixture(scope="module")
def desk() -> OpenApiProgram:
    return program("desk.json")


def begin(made: OpenApiProgram) -> tuple[OpenApiSession, dict[str, Any], bytes]:
    state = made.states(1)[0]
    start = canonical_json(state)
    return made.start(start), state, start


def done(play: OpenApiSession, tool: str, **arguments: Any) -> Any:
    result = play.call(tool, arguments)
    assert result.ok, result.content
    return result.content


def refused(play: OpenApiSession, tool: str, **arguments: Any) -> Any:
    result = play.call(tool, arguments)
    assert result.error == "refused", result
    return result.content


def test_tools_say_what_the_document_says(shop: OpenApiProgram) -> None:
    tool = shop.spec.tool("list_customers")
    assert set(tool.parameters) == {"page", "per_page", "city", "q", "sort"}, (
        "credentials and headers are no parameters"
    )
    assert tool.description == "List customers"
    assert tool.annotations.read_only_hint is True and not tool.declares_write
    assert shop.spec.tool("delete_customer").annotations.destructive_hint is True
    assert shop.spec.tool("place_order").annotations.read_only_hint is False
    assert "id" not in shop.spec.tool("replace_customer").parameters, "readOnly"
    assert "password" in shop.spec.tool("create_customer").parameters, "writeOnly"
    output = shop.spec.tool("create_customer").output_schema or {}
    assert "password" not in output["properties"] and "$ref" not in str(output)
    assert shop.spec.tool("list_addresses").output_schema == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": shop.spec.tool("add_address").output_schema}},
        "required": ["result"],
    }


def test_what_is_left_out_says_why(shop: OpenApiProgram, desk: OpenApiProgram) -> None:
    reasons = shop.built.left_out | desk.built.left_out
    assert reasons == {
        "GET /orders/{orderId}/invoice": "answers application/pdf, which is no JSON",
        "GET /products/popular": "nothing says which of the products it shows",
        "POST /orders/{orderId}/teleport": "nothing says what it makes: the body is no record",
        "POST /tickets/{ticket_id}/attachments": "takes a file (multipart/form-data)",
        "POST /tickets/{ticket_id}/escalate": "no property of a ticket says what 'escalate' does to it",
        "GET /stats": "stats would have to be computed, and nothing says how",
    }
    assert "GET /orders/{orderId}/invoice: left out: answers application/pdf, which is no JSON" in shop.notes
    assert "GET /customers: parameter 'expand' is left out: nothing says what it means" in shop.notes
    assert "POST /orders/{orderId}/cancel: sets status to 'cancelled': the value that 'cancel' leads to" in shop.notes


def test_create_get_change_delete(shop: OpenApiProgram) -> None:
    play, _, start = begin(shop)
    made = done(play, "create_customer", name="Ada", email="ada@example.com", password="secret1")
    assert made == {"id": 6, "name": "Ada", "email": "ada@example.com", "createdAt": state_of(play, start)["now"]}
    assert done(play, "get_customer", customerId=6) == made
    changed = done(play, "replace_customer", customerId=6, name="Ada L", email="ada@example.com", city="Graz")
    assert changed == {**made, "name": "Ada L", "city": "Graz"}
    assert "city" not in done(play, "replace_customer", customerId=6, name="Ada", email="a@example.com"), "PUT replaces"
    assert done(play, "delete_customer", customerId=6) == "Deleted."
    assert refused(play, "get_customer", customerId=6)["detail"] == "customer not found: 6"
    assert done(play, "create_customer", name="Bo", email="bo@example.com")["id"] == 7, "no id is given out twice"


def test_refusals_have_the_documents_shape_and_leave_the_state(shop: OpenApiProgram) -> None:
    play, state, _ = begin(shop)
    error = refused(play, "place_order", customer_id=999, items=[{"productSku": "XXX-0000", "quantity": 1}])
    assert error["status"] == 404 and error["title"] == "customer not found: 999"
    result = play.call("create_customer", {"name": "", "email": "a@example.com"})
    assert result.error == "invalid_arguments" and result.content["status"] == 400
    assert (
        play.call("create_customer", {"name": "A", "email": "a@example.com", "extra": 1}).error == "invalid_arguments"
    )
    assert play.call("no_such_tool", {}).error == "unknown_tool"
    assert play.call("list_customers", {}, "user").error == "unknown_tool"
    owner = next(iter(state["orders"].values()))["customer_id"]
    assert "still used by order" in refused(play, "delete_customer", customerId=owner)["detail"]
    assert play.changes() == []


def test_lists_filter_search_sort_and_page(shop: OpenApiProgram) -> None:
    play, state, _ = begin(shop)
    customers = list(state["customers"].values())
    page = done(play, "list_customers", per_page=2, page=3)
    assert [one["id"] for one in page["data"]] == [5]
    assert page["meta"] == {"total": 5, "page": 3, "per_page": 2}
    city = next(one["city"] for one in customers if "city" in one)
    found = done(play, "list_customers", city=city)["data"]
    assert found and all(one["city"] == city for one in found)
    word = customers[2]["name"].split()[0]
    assert customers[2]["id"] in [one["id"] for one in done(play, "list_customers", q=word.upper())["data"]]
    names = [one["name"] for one in done(play, "list_customers", sort="-name")["data"]]
    assert names == sorted(names, reverse=True)
    order = state["orders"]["ord_1001"]
    mine = done(play, "list_orders", customer_id=order["customer_id"], limit=1, offset=0)
    assert mine["items"][0]["customer_id"] == order["customer_id"] and len(mine["items"]) == 1
    every = done(play, "list_orders_of_customer", customerId=order["customer_id"])["result"]
    assert mine["total"] == len(every)
    later = done(play, "list_orders", created_after="2026-01-01")["items"]
    assert all(one["created_at"] >= "2026-01-01" for one in later)


def test_products_by_range_flag_tag_and_cursor(shop: OpenApiProgram) -> None:
    play, state, _ = begin(shop)
    products = state["products"].values()
    middle = sorted(one["price"] for one in products)[2]
    assert {one["sku"] for one in done(play, "search_products", min_price=middle)["products"]} == {
        one["sku"] for one in products if one["price"] >= middle
    }
    assert all(one["in_stock"] is False for one in done(play, "search_products", in_stock=False)["products"])
    tag = next(one["tags"][0] for one in products if one.get("tags"))
    assert all(tag in one["tags"] for one in done(play, "search_products", tag=tag)["products"])
    seen, cursor = [], None
    while True:
        page = done(play, "search_products", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [one["sku"] for one in page["products"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(state["products"]) and len(seen) == len(set(seen))
    assert "unknown cursor" in refused(play, "search_products", cursor="nowhere")["error"]


def test_what_stands_below_a_record_belongs_to_it(shop: OpenApiProgram) -> None:
    play, _, start = begin(shop)
    customer = done(play, "create_customer", name="Ada", email="ada@example.com")["id"]
    assert done(play, "list_addresses", customerId=customer) == {"result": []}
    address = done(play, "add_address", customerId=customer, street="1 Mill Lane", city="Graz")
    assert done(play, "list_addresses", customerId=customer) == {"result": [address]}
    refused(play, "remove_address", customerId=1, addressId=address["id"])
    assert done(play, "get_preferences", customerId=customer).keys() >= {"newsletter"}
    assert done(play, "change_preferences", customerId=customer, newsletter=True, language="de") == {
        "newsletter": True,
        "language": "de",
    }
    done(play, "delete_customer", customerId=customer)
    state = state_of(play, start)
    assert address["id"] not in state["addresses"] and str(customer) not in state["preferences"]


def test_an_order_is_placed_changed_and_cancelled(shop: OpenApiProgram) -> None:
    play, state, _ = begin(shop)
    sku = next(iter(state["products"]))
    order = done(play, "place_order", customer_id=1, items=[{"productSku": sku, "quantity": 2}])
    assert order["id"] == "ord_1006" and order["status"] == "pending"
    assert done(play, "change_order", orderId="ord_1006", note="Ring twice")["items"] == order["items"], "PATCH keeps"
    assert done(play, "cancel_order", orderId="ord_1006", reason="late")["status"] == "cancelled"
    assert done(play, "get_order", orderId="ord_1006")["note"] == "Ring twice"
    error = refused(play, "place_order", customer_id=1, items=[{"productSku": "ZZZ-9999", "quantity": 1}])
    assert error["title"] == "product not found: ZZZ-9999"


def test_verbs_set_what_the_document_says(desk: OpenApiProgram) -> None:
    play, state, _ = begin(desk)
    assert done(play, "tickets_close", ticket_id=1001, resolution="Fixed", notify=True) == "Ticket closed."
    ticket = done(play, "get_tickets_by_ticket_id", ticket_id=1001)["ticket"]
    assert (ticket["state"], ticket["resolution"], "notify" in ticket) == ("closed", "Fixed", False)
    assert done(play, "tickets_reopen", ticket_id=1001)["state"] == "open"
    done(play, "tickets_lock", ticket_id=1001)
    assert done(play, "get_tickets_by_ticket_id", ticket_id=1001)["ticket"]["locked"] is True
    done(play, "tickets_unlock", ticket_id=1001)
    assert done(play, "get_tickets_by_ticket_id", ticket_id=1001)["ticket"]["locked"] is False
    agent = next(iter(state["agents"]))
    assert done(play, "tickets_assign", ticket_id=1001, assignee=agent)["assignee"] == state["agents"][agent]
    assert refused(play, "tickets_assign", ticket_id=1001, assignee="nobody") == {
        "error": {"code": "not_found", "message": "agent not found: nobody"}
    }


def test_records_inside_records_are_the_records_themselves(desk: OpenApiProgram) -> None:
    play, state, start = begin(desk)
    agent = next(iter(state["agents"]))
    comment = done(play, "comments_create", ticket_id=1002, text="Hello", author={"username": agent})
    assert comment["author"] == state["agents"][agent]
    assert state_of(play, start)["comments"][str(comment["id"])]["author"] == {"@ref": f"agents/{agent}"}
    refused(play, "comments_create", ticket_id=1002, text="Hello", author={"username": "nobody"})
    found = done(play, "tickets_list", assignee=state["tickets"]["1001"]["assignee"]["@ref"].split("/")[1])
    assert 1001 in [ticket["id"] for ticket in found["tickets"]] and found["count"] == len(found["tickets"])
    assert {one["state"] for one in done(play, "tickets_list", state=["open", "closed"])["tickets"]} <= {
        "open",
        "closed",
    }
    ordered = [one["id"] for one in done(play, "tickets_list", sort_by="id", order="desc")["tickets"]]
    assert ordered == sorted(ordered, reverse=True)
    assert refused(play, "tickets_list", sort_by="colour")["error"].startswith("sort_by: cannot sort")


def test_membership_is_not_ownership(desk: OpenApiProgram) -> None:
    play, state, _ = begin(desk)
    watching = state["tickets"]["1001"]["@watchers"]
    other = next(agent for agent in state["agents"] if agent not in watching)
    done(play, "watchers_add", ticket_id=1001, username=other)
    names = [agent["username"] for agent in done(play, "watchers_list", ticket_id=1001)["result"]]
    assert sorted(names) == sorted([*watching, other])
    done(play, "watchers_remove", ticket_id=1001, username=other)
    refused(play, "watchers_remove", ticket_id=1001, username=other)
    assert done(play, "agents_get", username=other)["username"] == other, "only the membership went away"
    assert done(play, "delete_tickets_by_ticket_id", ticket_id=1001) == {"deleted": True, "id": 1001}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("orders"), "a state has exactly the parts"),
        (lambda state: state.update(more={}), "a state has exactly the parts"),
        (lambda state: state.update(now=5), "now must be a time"),
        (lambda state: state.update(customers=[]), "customers must be an object of records"),
        (lambda state: state["customers"]["1"].update(id=2), "customers/1: its id is 2"),
        (lambda state: state["customers"]["1"].update(name=""), "customers/1: name:"),
        (lambda state: state["orders"]["ord_1001"].update(customer_id=77), "no customers/77"),
    ],
)
def test_a_state_that_does_not_fit_is_named(shop: OpenApiProgram, change: Any, words: str) -> None:
    state = shop.states(1)[0]
    change(state)
    with pytest.raises(EnvironmentFault, match=words) as caught:
        shop.start(canonical_json(state))
    assert caught.value.kind == "state"


def test_states_have_sizes_and_are_the_same_every_time(shop: OpenApiProgram) -> None:
    states = shop.states(5)
    assert [len(state["customers"]) for state in states] == [5, 5, 20]
    assert states == program("shop.yaml").states(5) != shop.states(6)
    assert states[0]["customers"]["1"]["name"] == "Mira Holt", "the document's example comes first"
