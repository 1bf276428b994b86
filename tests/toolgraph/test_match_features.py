"""Every feature of a link, on the smallest example that shows what it means; and every term's say in the score."""

from typing import Any

import numpy as np
import pytest

from trajsmith.records import ToolSpec
from trajsmith.toolgraph.candidates import find_cross_server_pairs, find_home_pairs
from trajsmith.toolgraph.endpoint_table import build_table
from trajsmith.toolgraph.link_model import FREE, PRIOR, compute_link_terms, load_link_model
from trajsmith.toolgraph.link_scoring import compute_link_features
from trajsmith.toolgraph.match import REASONS, score_pairs, sort_by_server

STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def spec(name: str, inputs: dict[str, Any] | None = None, output: Any = None, **more: Any) -> ToolSpec:
    """A tool; `output` is a schema, or the fields of an object."""
    inputs = inputs or {}
    if isinstance(output, dict) and "type" not in output:
        output = {"type": "object", "properties": output}
    schema = {"type": "object", "properties": inputs, "required": more.pop("required", list(inputs))}
    return ToolSpec(
        server=more.get("server", "shop"),
        name=name,
        description=more.get("description", ""),
        input_schema=schema,
        output_schema=output,
    )


def said(text: str, kind: str = "string") -> dict[str, Any]:
    return {"type": kind, "description": text}


def rows(name: str, **fields: Any) -> dict[str, Any]:
    """An object with a list of objects."""
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": {"type": "object", "properties": fields}}},
    }


def measured(tools: list[ToolSpec], source: str, target: str, output: str, parameter: str) -> dict[str, float]:
    """Features of one link; all 0 if it was dropped as hopeless."""
    table = build_table(sort_by_server(tools))
    home, far = find_home_pairs(table), find_cross_server_pairs(table)
    o, p, features = compute_link_features(table, np.concatenate([home[0], far[0]]), np.concatenate([home[1], far[1]]))
    for row, (out, into) in enumerate(zip(o, p, strict=True)):
        ends = table.outputs.endpoints[out], table.parameters.endpoints[into]
        names = tools_of(table, ends[0].tool), tools_of(table, ends[1].tool)
        if (*names, ends[0].field.path, ends[1].field.path) == (source, target, output, parameter):
            return {name: float(values[row]) for name, values in features.items()}
    return dict.fromkeys(features, 0.0)


def tools_of(table: Any, row: int) -> str:
    return str(table.tools[row].name)


LIST = spec("list_orders", output=rows("orders", order_id=STRING, status=STRING))
GET = spec("get_order", {"order_id": STRING}, {"order_id": STRING, "total": NUMBER})
ID = ("$.orders[*].order_id", "order_id")


# How well a value fits


def test_identifier_one_name_is_a_full_fit() -> None:
    assert measured([LIST, GET], "list_orders", "get_order", *ID)["identifier"] == 1


def test_identifier_a_bare_id_is_of_the_thing_around_it() -> None:
    bare = spec("list_orders", output=rows("orders", id=STRING))
    other = spec("list_users", output=rows("users", id=STRING))
    near = measured([bare, GET], "list_orders", "get_order", "$.orders[*].id", "order_id")["identifier"]
    assert (
        near > 0.9 > 0.4 > measured([other, GET], "list_users", "get_order", "$.users[*].id", "order_id")["identifier"]
    )


def test_identifier_the_description_says_whose_id_it_is() -> None:
    send = spec("send_message", {"receiver_id": said("The user ID of the receiver.")})
    users = spec("list_users", output=rows("users", user_id=STRING))
    plain = spec("send_message", {"receiver_id": said("Who gets it.")})
    where = ("list_users", "send_message", "$.users[*].user_id", "receiver_id")
    assert measured([users, send], *where)["identifier"] == pytest.approx(0.8)
    assert measured([users, plain], *where)["identifier"] == 0


def test_identifier_a_list_that_is_named_for_the_thing() -> None:
    user = spec("get_user", {"name": STRING}, {"orders": {"type": "array", "items": STRING}})
    assert measured([user, GET], "get_user", "get_order", "$.orders[*]", "order_id")["identifier"] > 0.8


def test_identifier_a_tool_without_output_schema_gives_what_its_name_promises() -> None:
    for name in ("search_orders", "orders_search", "email_search_orders", "search_orders_by_customer"):
        found = measured([spec(name, {"query": STRING}), GET], name, "get_order", "$", "order_id")
        assert found["identifier"] == pytest.approx(0.8), name
    other = spec("search_customers_by_order", {"query": STRING})
    assert measured([other, GET], other.name, "get_order", "$", "order_id")["identifier"] < 0.6


def test_identifier_an_id_is_not_the_number_of_the_same_thing() -> None:
    wants = spec("track", {"order_number": STRING})
    fit = measured([LIST, wants], "list_orders", "track", "$.orders[*].order_id", "order_number")["identifier"]
    assert 0.5 < fit < 0.75


def test_identifier_a_secret_is_no_identifier() -> None:
    login = spec("log_in", {"user_password": STRING})
    users = spec("list_users", output=rows("users", user_id=STRING))
    assert measured([users, login], "list_users", "log_in", "$.users[*].user_id", "user_password")["identifier"] < 0.3


def test_named_one_name_is_nearly_a_full_fit_and_a_bare_one_less() -> None:
    flights = spec("search_flights", output=rows("flights", departure_time=STRING, status=STRING))
    book = spec("book_taxi", {"departure_time": STRING, "status": STRING})
    full = measured([flights, book], "search_flights", "book_taxi", "$.flights[*].departure_time", "departure_time")
    bare = measured([flights, book], "search_flights", "book_taxi", "$.flights[*].status", "status")
    assert full["named"] == pytest.approx(0.95)
    assert bare["named"] < 0.85


def test_named_the_description_may_say_it() -> None:
    find = spec("find_email_address", {"name": STRING})
    send = spec("send_letter", {"recipient": said("Email address of the recipient")})
    plain = spec("send_letter", {"recipient": said("Who it is for")})
    where = ("find_email_address", "send_letter", "$", "recipient")
    assert measured([find, send], *where)["named"] > 0.8 > measured([find, plain], *where)["named"]


def test_carried_a_computing_tool_takes_any_result_of_its_type() -> None:
    tax = spec("calculate_tax", {"income": NUMBER}, {"tax": NUMBER})
    convert = spec("convert_currency", {"amount": NUMBER})
    assert measured([tax, convert], "calculate_tax", "convert_currency", "$.tax", "amount")["carried"] == 1
    for useless in ({"ok": {"type": "boolean"}}, {"status": NUMBER}, {"tax": STRING}):
        (field,) = useless
        other = spec("calculate_tax", {"income": NUMBER}, useless)
        assert measured([other, convert], "calculate_tax", "convert_currency", f"$.{field}", "amount")["carried"] == 0


def test_resource_what_descriptions_say_is_given_and_taken() -> None:
    speak = spec("Text-to-Speech", {"input": STRING}, {"output": STRING})
    clean = spec("Noise Remover", {"input": STRING}, description="Removes noise from an input audio.")
    paint = spec("Image Painter", {"input": STRING}, description="Paints an input image.")
    assert measured([speak, clean], speak.name, clean.name, "$.output", "input")["resource"] == 1
    assert measured([speak, paint], speak.name, paint.name, "$.output", "input")["resource"] == 0


def test_told_the_description_names_the_tool() -> None:
    resolve = spec("resolve-library", {"query": STRING})
    docs = spec("get_docs", {"library": said("What to read, retrieved from `resolve-library`.")})
    example = spec("get_docs", {"library": said("What to read, e.g. `resolve-library`.")})
    where = ("resolve-library", "get_docs", "$", "library")
    assert measured([resolve, docs], *where)["told"] == 1
    assert measured([resolve, example], *where)["told"] == 0


def test_told_only_the_output_that_fits_best_is_meant() -> None:
    find = spec("find_orders", output={"order_id": STRING, "note": STRING})
    get = spec("ship", {"order_id": said("From find_orders.")})
    assert measured([find, get], "find_orders", "ship", "$.order_id", "order_id")["told"] == 1
    assert measured([find, get], "find_orders", "ship", "$.note", "order_id")["told"] == 0


def test_pipe_what_many_tools_pass_on() -> None:
    tools = [spec(f"{verb}_it", {"image": STRING}, {"image": STRING}) for verb in ("crop", "rotate", "sharpen")]
    assert measured(tools, "crop_it", "rotate_it", "$.image", "image")["pipe"] == 0.5
    assert measured(tools[:2], "crop_it", "rotate_it", "$.image", "image")["pipe"] == 0


# Types and kinds


def test_types_differ() -> None:
    wants = spec("get_order", {"order_id": INTEGER})
    found = measured([LIST, wants], "list_orders", "get_order", *ID)
    assert found["types_differ"] == 1
    assert found["identifier"] == pytest.approx(0.5)


def test_number_to_text() -> None:
    numbers = spec("list_orders", output=rows("orders", order_id=INTEGER))
    assert measured([numbers, GET], "list_orders", "get_order", *ID)["number_to_text"] == 1


def test_kinds_clash() -> None:
    prices = spec("get_quote", output={"departure_price": STRING})
    wants = spec("book_taxi", {"departure_time": STRING})
    same = spec("get_quote", output={"departure_hour": STRING})
    assert (
        measured([prices, wants], "get_quote", "book_taxi", "$.departure_price", "departure_time")["kinds_clash"] == 1
    )
    assert measured([same, wants], "get_quote", "book_taxi", "$.departure_hour", "departure_time")["kinds_clash"] == 0


def test_receipt() -> None:
    pay = spec("pay_bill", output={"message": said("Whether the payment was a success")})
    talk = spec("send_note", {"message": STRING})
    assert measured([pay, talk], "pay_bill", "send_note", "$.message", "message")["receipt"] == 1


# Direction


def test_circular_who_has_it_needs_not_call_for_it() -> None:
    touch = spec("touch_order", {"order_id": STRING}, {"order_id": STRING})
    found = measured([touch, GET], "touch_order", "get_order", "$.order_id", "order_id")
    assert found["circular"] == found["echo"] == 1
    assert measured([LIST, GET], "list_orders", "get_order", *ID)["circular"] == 0


def test_gap_another_tool_gives_it_better() -> None:
    other = spec("list_things", output=rows("things", id=STRING))
    where = ("list_things", "get_order", "$.things[*].id", "order_id")
    near = spec("list_orders", output={"order": {"type": "object", "properties": {"id": STRING}}})
    full = LIST.model_copy(update={"name": "find_orders"})
    assert measured([other, GET, LIST], "list_orders", "get_order", *ID)["gap"] == 0
    gap = measured([near, GET, full], "list_orders", "get_order", "$.order.id", "order_id")["gap"]
    assert gap == pytest.approx(0.05, abs=0.01)
    assert measured([other, GET, LIST], *where)["identifier"] == 0, "nothing of orders about it: dropped"


def test_read_gap_a_look_up_comes_before_a_change() -> None:
    place = spec("place_order", {"sku": STRING}, {"order_id": STRING})
    where = ("place_order", "get_order", "$.order_id", "order_id")
    assert measured([place, GET, LIST], *where)["read_gap"] == pytest.approx(0.4)
    assert measured([place, GET], *where)["read_gap"] == 0


def test_source_what_the_giving_tool_does() -> None:
    outputs = {"order_id": STRING, "address_id": STRING}
    ship = spec("ship", {"order_id": STRING, "address_id": STRING})
    for name, feature in (("search_orders", "source_searches"), ("place_order", "source_creates_id")):
        found = measured([spec(name, {"query": STRING}, outputs), ship], name, "ship", "$.order_id", "order_id")
        assert found[feature] == 1, name
    created = measured([spec("place_order", output=outputs), ship], "place_order", "ship", "$.address_id", "address_id")
    assert (created["source_creates"], created["source_creates_id"]) == (1, 0), "an address is not what it makes"
    cancelled = measured([spec("cancel_order", output=outputs), ship], "cancel_order", "ship", "$.order_id", "order_id")
    assert cancelled["source_changes"] == 1


def test_target_what_the_taking_tool_does() -> None:
    found = measured([LIST, GET], "list_orders", "get_order", *ID)
    assert found["target_reads"] == 1
    assert found["target_authenticates"] == 0
    users = spec("list_users", output=rows("users", user_id=STRING))
    login = spec("user_login", {"user_id": STRING})
    assert measured([users, login], "list_users", "user_login", "$.users[*].user_id", "user_id")["target_authenticates"]


def test_backwards_the_target_looks_up_the_id_that_the_source_asks_for() -> None:
    find = spec("find_city", {"city_name": STRING}, {"city_id": STRING})
    weather = spec("get_weather", {"city_id": STRING}, {"city_name": STRING})
    assert measured([find, weather], "get_weather", "find_city", "$.city_name", "city_name")["backwards"] == 1
    assert measured([find, weather], "find_city", "get_weather", "$.city_id", "city_id")["backwards"] == 0


def test_cover_the_share_of_what_the_target_requires() -> None:
    ship = spec("ship_order", {"order_id": STRING, "carrier_name": STRING})
    found = measured([LIST, ship], "list_orders", "ship_order", *ID)
    assert (found["cover"], found["back_cover"]) == (0.5, 0)
    assert measured([LIST, GET], "list_orders", "get_order", *ID)["cover"] == 1


def test_named_for() -> None:
    find = spec("find_order_id", {"email": STRING}, {"order_id": STRING})
    look = spec("look_up", {"email": STRING}, {"order_id": STRING})
    assert measured([find, GET], "find_order_id", "get_order", "$.order_id", "order_id")["named_for"] == 1
    assert measured([look, GET], "look_up", "get_order", "$.order_id", "order_id")["named_for"] == 0


# The parameter


def test_what_the_parameter_is() -> None:
    schema = {**STRING, "enum": ["W1", "W2"]}
    found = measured([LIST, spec("get_order", {"order_id": schema})], "list_orders", "get_order", *ID)
    assert (found["choice"], found["required"], found["default"]) == (1, 1, 0)
    optional = spec("get_order", {"order_id": {**STRING, "default": "W1"}}, required=[])
    found = measured([LIST, optional], "list_orders", "get_order", *ID)
    assert (found["choice"], found["required"], found["default"]) == (0, 0, 1)


def test_oneself_people_know_their_own_id_unless_it_is_looked_up_for_them() -> None:
    taker = spec("get_user", {"user_id": STRING})
    order = spec("get_order", {"order_id": STRING}, {"user_id": STRING})
    find = spec("find_user", {"email": STRING}, {"user_id": STRING})
    assert measured([taker, order], "get_order", "get_user", "$.user_id", "user_id")["oneself"] == 1
    assert measured([taker, find], "find_user", "get_user", "$.user_id", "user_id")["oneself"] == 0


def test_new_what_is_not_there_yet_is_nowhere_to_find() -> None:
    users = spec("list_users", output=rows("users", user_email=STRING))
    change = spec("change_account", {"user_email": said("The new email of the user")})
    where = ("list_users", "change_account", "$.users[*].user_email", "user_email")
    assert measured([users, change], *where)["new"] == 1


def test_control_says_how_to_answer() -> None:
    table = build_table([spec("list_orders", {"page_limit": INTEGER}, {"page_limit": INTEGER}), GET])
    assert table.parameters.flags["control"].tolist()[0]
    paths = {table.parameters.endpoints[p].field.path for p in find_home_pairs(table)[1]}
    assert "page_limit" not in paths, "no value flows into it"


# Servers


def test_other_servers() -> None:
    desk = spec("get_order", {"order_id": STRING}, server="desk")
    found = measured([LIST, desk], "list_orders", "get_order", *ID)
    assert (found["same_server"], found["virtual"], found["home_gap"]) == (0, 0, 0)
    own = spec("find_order", {"q": STRING}, {"order_id": STRING}, server="desk")
    assert measured([LIST, desk, own], "list_orders", "get_order", *ID)["home_gap"] == 1


def test_a_promise_of_another_server_makes_no_edge() -> None:
    promise, desk = spec("get_order_id"), spec("get_order", {"order_id": STRING}, server="desk")
    stated = spec("get_order_id", output={"order_id": STRING})
    where = ("shop.get_order_id", "desk.get_order", load_link_model())
    (best, *_), (sure, *_) = score_pairs([promise, desk], *where), score_pairs([stated, desk], *where)
    assert best.score < where[2].threshold < sure.score
    assert "no schema says that the source gives it, and it is of another server" in best.reasons


# Terms


def test_every_term_has_a_half_sentence_for_its_sign() -> None:
    for name, weight in PRIOR.items():
        if name not in FREE:
            assert REASONS[name][int(weight < 0)], name


def test_every_term_moves_the_score_as_it_means() -> None:
    """More of what speaks for a link never lowers its score, and the other way round."""
    start = measured([LIST, GET], "list_orders", "get_order", *ID)
    features = {name: np.array([value]) for name, value in start.items()}
    before, model = compute_link_terms(features)[0], load_link_model()
    for column, (name, meant) in enumerate(PRIOR.items()):
        changed = before.copy()
        changed[column] += 1
        weights = np.array([model.weights[term] for term in PRIOR])
        assert name in FREE or (changed - before) @ weights * meant >= 0, name
