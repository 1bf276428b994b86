"""Kinds of parameters: each term that speaks for or against, on a small example, and how kinds are printed."""

from typing import Any

import pytest

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import build_graph
from trajsmith.toolgraph.graph import ParameterNode
from trajsmith.toolgraph.parameter_kinds import list_parameter_lines

STRING = {"type": "string"}


def spec(name: str, inputs: dict[str, Any], output: Any = None, required: list[str] | None = None) -> ToolSpec:
    schema = {"type": "object", "properties": inputs, "required": list(inputs) if required is None else required}
    if isinstance(output, dict) and "type" not in output:
        output = {"type": "object", "properties": output}
    return ToolSpec(server="shop", name=name, input_schema=schema, output_schema=output)


LIST = spec("list_orders", {}, {"orders": {"type": "array", "items": {"type": "object", "properties": {"id": STRING}}}})
USER = spec("get_order", {"order_id": STRING}, {"user_id": STRING, "total": {"type": "number"}})
LOGIN = spec("log_in", {"username": STRING, "password": STRING}, {"access_token": STRING})


def kind(tool: ToolSpec, parameter: str, *others: ToolSpec) -> tuple[str, str]:
    nodes = build_graph([LIST, *others, tool]).parameters
    node = next(node for node in nodes if node.tool == tool.full_name and node.parameter == parameter)
    return node.kind, node.evidence[0]


@pytest.mark.parametrize(
    ("parameter", "schema", "expected", "why"),
    [
        pytest.param("order_id", STRING, "internal", "an identifier that list_orders gives", id="identifier"),
        pytest.param("coupon_id", STRING, "external", "an identifier that no tool gives", id="nobody-gives-it"),
        pytest.param("gift", {"type": "boolean"}, "other", "a switch", id="switch"),
        pytest.param("gift", {"enum": ["True", "False"]}, "other", "a switch", id="switch-of-words"),
        pytest.param("insurance", {"enum": ["yes", "no"]}, "external", "a choice that a person makes", id="asked"),
        pytest.param("guests", {"enum": ["1", "2", "3"]}, "external", "a choice that a person makes", id="how-many"),
        pytest.param("page_limit", {"type": "integer"}, "other", "says how to answer", id="control"),
        pytest.param("party_size", {"type": "integer"}, "external", "a value that a person can know", id="size"),
        pytest.param("summary", STRING, "other", "a text that is written for the call", id="written"),
        pytest.param("reason", STRING, "external", "a value that a person can know", id="known"),
    ],
)
def test_a_required_parameter(parameter: str, schema: dict[str, Any], expected: str, why: str) -> None:
    found, evidence = kind(spec("handle_order", {parameter: schema}), parameter)
    assert (found, why in evidence) == (expected, True), evidence


@pytest.mark.parametrize(
    ("parameter", "schema", "expected"),
    [
        pytest.param("colour", {"enum": ["red", "blue"], "default": "red"}, "external", id="choice-with-default"),
        pytest.param("guests", {"enum": ["1", "2"], "default": "1"}, "external", id="number-with-default"),
        pytest.param("wifi", {"enum": ["yes", "no"]}, "other", id="yes-or-no"),
        pytest.param("mode", {**STRING, "default": "fast"}, "other", id="manner-with-default"),
        pytest.param("mode", STRING, "external", id="manner"),
        pytest.param("title", {**STRING, "default": "Mr"}, "external", id="default"),
    ],
)
def test_an_optional_parameter(parameter: str, schema: dict[str, Any], expected: str) -> None:
    assert kind(spec("handle_order", {parameter: schema}, required=[]), parameter)[0] == expected


def test_people_know_their_own_id_unless_it_is_looked_up() -> None:
    profile = spec("get_user", {"user_id": STRING})
    find = spec("find_user", {"email": STRING}, {"user_id": STRING})
    assert kind(profile, "user_id", USER)[0] == "external"
    assert kind(profile, "user_id", USER, find)[0] == "internal"


def test_a_token_comes_from_who_gives_it_out_and_its_password_from_a_person() -> None:
    buy = spec("buy", {"access_token": STRING})
    assert kind(buy, "access_token", LOGIN)[0] == "internal"
    assert kind(LOGIN, "password", buy)[0] == "external"


def test_what_is_new_is_known_to_a_person() -> None:
    users = spec("list_users", {}, {"users": {"type": "array", "items": STRING, "description": "user ids"}})
    add = spec("add_user", {"user_id": {**STRING, "description": "The new id"}})
    assert kind(add, "user_id", users)[0] == "external"


def test_a_described_source_makes_a_parameter_internal() -> None:
    docs = spec("get_docs", {"library_id": {**STRING, "description": "from `resolve-library`"}})
    assert kind(docs, "library_id", spec("resolve-library", {"name": STRING}))[0] == "internal"


def test_a_nested_argument_is_printed_leaf_by_leaf_and_whole() -> None:
    nodes = [
        ParameterNode(tool="a.b", parameter="items[*].note", kind="external", required=True, evidence=("said",)),
        ParameterNode(tool="a.b", parameter="items[*].id", kind="internal", required=True, evidence=("given",)),
        ParameterNode(tool="a.b", parameter="when", kind="external", required=True, evidence=("said",)),
    ]
    lines = [(line["parameter"], line["kind"], line["evidence"]) for line in list_parameter_lines(nodes)]
    assert lines == [
        ("items[*].note", "external", ["said"]),
        ("items[*].id", "internal", ["given"]),
        ("items", "internal", ["items[*].id: given"]),
        ("when", "external", ["said"]),
    ]


SEARCH = spec("search_flights", {"origin": STRING, "day": STRING}, {"flights": {"type": "array", "items": {
    "type": "object", "properties": {"origin": STRING, "day": STRING, "fare": STRING, "departure_time": STRING},
}}})  # fmt: skip
BARE_SEARCH = SEARCH.model_copy(update={"output_schema": None})
BOOK = spec("book_flight", {"origin": STRING, "departure_time": STRING, "passengers": STRING})


def test_what_a_search_asks_for_is_known_to_who_books() -> None:
    for search in (SEARCH, BARE_SEARCH):
        assert kind(BOOK, "origin", search)[0] == "external"


def test_a_departure_comes_from_the_search_also_where_it_declares_no_outputs() -> None:
    assert kind(BOOK, "departure_time", SEARCH)[0] == "internal"
    assert kind(BOOK, "departure_time", BARE_SEARCH)[0] == "internal"
    assert kind(BOOK, "departure_time")[0] == "external", "no search shows one"


def test_who_logs_in_knows_the_id() -> None:
    people = spec(
        "list_users", {}, {"users": {"type": "array", "items": {"type": "object", "properties": {"id": STRING}}}}
    )
    assert kind(spec("message_login", {"user_id": STRING}), "user_id", people)[0] == "external"
    assert kind(spec("send_message", {"user_id": STRING}), "user_id", people)[0] == "internal"


def test_a_code_that_was_sent_to_a_person_is_theirs() -> None:
    sends = spec("get_verification_code", {"email": STRING})
    assert kind(spec("reset_password", {"verification_code": STRING}), "verification_code", sends)[0] == "external"


def test_the_name_of_a_hotel_is_read_like_a_hotel_name() -> None:
    search = spec("search_hotels", {"city": STRING})
    for name in ("hotel_name", "name_of_hotel", "name_of_the_hotel"):
        assert kind(spec("reserve_hotel", {name: STRING}), name, search)[0] == "internal"


def test_a_name_that_is_searched_for_is_not_looked_up() -> None:
    listing = spec("list_files", {"folder": STRING})
    assert kind(spec("find_file", {"file_name": STRING}), "file_name", listing)[0] == "external"
