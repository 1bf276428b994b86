"""Odd tools: the build goes on, each oddity is said once per tool, and what can be read is read."""

import socket
from typing import Any

import pytest

from trajsmith.records import ToolSpec
from trajsmith.toolgraph import build_graph

STRING = {"type": "string"}


def spec(name: str, schema: Any, output: Any = None, server: str = "shop", description: str = "") -> ToolSpec:
    return ToolSpec.model_validate(
        {"server": server, "name": name, "description": description, "inputSchema": schema, "outputSchema": output}
    )


def takes(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict.fromkeys(names, STRING), "required": list(names)}


LIST = spec(
    "list_orders", takes(), {"type": "object", "properties": {"orders": {"type": "array", "items": takes("order_id")}}}
)
GET = spec("get_order", takes("order_id"))
EDGE = ("shop.list_orders", "shop.get_order")


def refers(**definitions: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"order": {"$ref": "#/$defs/Order"}}, "$defs": definitions}


@pytest.mark.parametrize(
    ("schema", "finding"),
    [
        pytest.param(refers(), "refers to #/$defs/Order, which is not in it", id="dangling"),
        pytest.param({"$ref": "https://a.example/b.json"}, "refers to https://a.example/b.json", id="remote"),
        pytest.param(
            refers(Order={"type": "object", "properties": {"related": {"$ref": "#/$defs/Order"}}}),
            "refers to itself; each turn is read once",
            id="cycle",
        ),
        pytest.param(
            refers(Order={"properties": {"user": {"$ref": "#/$defs/User"}}}, User={"items": {"$ref": "#/$defs/Order"}}),
            "refers to itself; each turn is read once",
            id="cycle-of-two",
        ),
    ],
)
def test_a_reference_that_leads_nowhere_or_back_is_said_once(schema: dict[str, Any], finding: str) -> None:
    graph = build_graph([LIST, spec("odd", schema), GET, spec("odd_result", takes(), schema)])
    assert [text.split(":")[0] for text in graph.findings] == ["tool shop.odd", "tool shop.odd_result"]
    assert all(finding in text for text in graph.findings)
    assert EDGE in {(edge.source, edge.target) for edge in graph.edges}


def test_a_reference_that_leads_somewhere_is_no_finding() -> None:
    listed = refers(Order={"$ref": "#/$defs/All/anyOf/1"}, All={"anyOf": [STRING, takes("order_id")]})
    for schema in (refers(Order=takes("order_id")), listed):
        graph = build_graph([LIST, spec("move", schema)])
        assert graph.findings == ()
        assert [node.parameter for node in graph.parameters] == ["order.order_id"]


def test_all_faults_of_the_schemas_of_a_tool_are_one_finding() -> None:
    odd = spec("odd", {"type": "array", "items": {"$ref": "#/x"}}, {"type": "text"})
    (finding,) = build_graph([odd, LIST]).findings
    assert finding.count("shop.odd") == 1
    assert "input schema refers to #/x" in finding
    assert "its input schema is not of type object" in finding
    assert "its output schema is no JSON Schema" in finding


def test_a_tool_that_is_there_often_is_said_once() -> None:
    assert build_graph([LIST, GET, GET, GET, LIST]).findings == (
        "tool shop.get_order is there twice; the first one counts",
        "tool shop.list_orders is there twice; the first one counts",
    )


def test_what_may_be_null_is_read() -> None:
    schema = {"type": "object", "properties": {"order_id": {"anyOf": [STRING, {"type": "null"}]}}}
    graph = build_graph([LIST, spec("get_order", schema)])
    assert graph.findings == ()
    assert [(edge.source, edge.target) for edge in graph.edges] == [EDGE]


def test_text_that_is_not_english_is_read_by_its_names_and_by_its_own_words() -> None:
    give = spec("查询订单", takes(), takes("订单编号"), description="查询所有订单")
    take = spec("取消订单", takes("订单编号"), description="取消订单")
    greek = spec("λίστα", takes("όνομα"), takes("όνομα"), description="Επιστρέφει ονόματα")
    graph = build_graph(
        [give, take, greek, LIST, spec("get_order", takes("order_id"), description="Ruft eine Bestellung ab")]
    )
    assert graph.findings == ()
    assert {(edge.source, edge.target) for edge in graph.edges} == {EDGE, ("shop.查询订单", "shop.取消订单")}


def test_names_of_symbols_only_and_empty_schemas_do_no_harm() -> None:
    odd = [spec("???", {}, {}), spec("_", takes("", "$", "..")), spec("1", takes("2"), takes("3"))]
    graph = build_graph([*odd, LIST, GET])
    assert {(edge.source, edge.target) for edge in graph.edges} == {EDGE}


def test_no_tools_make_an_empty_graph() -> None:
    graph = build_graph([])
    assert (graph.tools, graph.parameters, graph.edges, graph.findings) == ((), (), (), ())


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_dialect_that_nobody_knows_is_not_asked_for(side: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        schema = {"$schema": f"http://127.0.0.1:{listener.getsockname()[1]}/schema", **takes()}
        graph = build_graph([LIST, spec("odd", schema if side == "input" else takes(), schema)])
        listener.settimeout(0.2)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert graph.findings == ()
