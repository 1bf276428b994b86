"""The tool graph from hand-written and from published tools."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from trajsmith.grounding.fields import list_input_fields, list_output_fields
from trajsmith.records import InputError, ToolSpec
from trajsmith.toolgraph import GraphIndex, GraphSettings, ToolGraph, build_graph, check_schema

DATA = Path(__file__).parents[3] / "shared" / "data" / "sets"
STRING = {"type": "string"}


def spec(
    name: str, inputs: dict[str, Any] | None = None, output: Any = None, server: str = "shop", **more: Any
) -> ToolSpec:
    inputs = inputs or {}
    schema = {"type": "object", "properties": inputs, "required": more.pop("required", list(inputs))}
    return ToolSpec.model_validate(
        {"server": server, "name": name, "inputSchema": {**schema, **more}, "outputSchema": output}
    )


def rows(**fields: Any) -> dict[str, Any]:
    """An object with a list of orders."""
    row = {"type": "object", "properties": fields or {"order_id": STRING, "status": STRING}}
    return {"type": "object", "properties": {"orders": {"type": "array", "items": row}}}


LIST = spec("list_orders", output=rows())
GET = spec("get_order", {"order_id": STRING}, {"type": "object", "properties": {"order_id": STRING, "sku": STRING}})


def edges(graph: ToolGraph) -> dict[tuple[str, str], list[tuple[str, str]]]:
    return {
        (edge.source.split(".")[1], edge.target.split(".")[1]): [(link.output, link.input) for link in edge.links]
        for edge in graph.edges
    }


def kinds(graph: ToolGraph) -> dict[str, str]:
    return {f"{node.tool.split('.')[1]}.{node.parameter}": node.kind for node in graph.parameters}


def published(name: str) -> list[ToolSpec]:
    path = DATA / name / "tools.jsonl"
    if not path.is_file():
        pytest.skip(f"the shared benchmark data is not here: {path}")
    return [ToolSpec.model_validate_json(line) for line in path.read_bytes().splitlines()]


# Hand-written


def test_an_id_in_a_list_feeds_an_id_parameter() -> None:
    graph = build_graph([LIST, GET])
    assert edges(graph) == {("list_orders", "get_order"): [("$.orders[*].order_id", "order_id")]}
    assert graph.edges[0].weight == 3
    assert graph.edges[0].evidence == ("schema",)
    assert kinds(graph) == {"get_order.order_id": "internal"}


def test_an_edge_is_printed_in_the_form_of_the_design() -> None:
    line = build_graph([LIST, GET]).edges[0].as_line()
    assert 0.5 < line.pop("score") < 1
    assert line == {
        "source": "shop.list_orders",
        "target": "shop.get_order",
        "weight": 3,
        "parameters": [{"output": "$.orders[*].order_id", "input": "order_id"}],
        "evidence": ["schema"],
    }


def test_a_result_that_echoes_its_own_parameter_gives_nothing() -> None:
    echo = spec("touch_order", {"order_id": STRING}, {"type": "object", "properties": {"order_id": STRING}})
    assert edges(build_graph([echo, GET])) == {}


@pytest.mark.parametrize(
    ("schema", "required", "kind"),
    [
        pytest.param(STRING, True, "internal", id="identifier-that-a-tool-gives"),
        pytest.param(STRING, False, "internal", id="optional-identifier"),
        pytest.param(
            {"anyOf": [STRING, {"type": "null"}], "default": None}, False, "internal", id="identifier-or-null"
        ),
        pytest.param({"type": ["string", "null"]}, False, "internal", id="list-of-types"),
        pytest.param({"type": "string", "enum": ["W1", "W2"]}, True, "external", id="choice-that-a-person-makes"),
        pytest.param(
            {"type": "string", "enum": ["W1", "W2"], "default": "W1"}, False, "external", id="choice-with-default"
        ),
        pytest.param({"type": "boolean"}, True, "other", id="flag"),
        pytest.param({"type": "integer"}, True, "external", id="type-that-does-not-fit"),
    ],
)
def test_kinds_of_an_identifier(schema: dict[str, Any], required: bool, kind: str) -> None:
    tool = spec("cancel_order", {"order_id": schema}, required=["order_id"] if required else [])
    graph = build_graph([LIST, tool])
    assert kinds(graph) == {"cancel_order.order_id": kind}
    assert graph.parameters[0].required is required


@pytest.mark.parametrize(
    ("name", "schema", "kind"),
    [
        pytest.param("voucher_id", STRING, "external", id="identifier-that-nobody-gives"),
        pytest.param("reason", STRING, "external", id="free-text"),
        pytest.param("limit", {"type": "integer", "default": 10}, "other", id="default"),
    ],
)
def test_kinds_of_other_parameters(name: str, schema: dict[str, Any], kind: str) -> None:
    assert kinds(build_graph([LIST, spec("do_it", {name: schema})])) == {f"do_it.{name}": kind}


def test_nested_arguments_have_a_node_per_leaf() -> None:
    items = {
        "type": "array",
        "items": {"type": "object", "properties": {"order_id": STRING, "note": STRING}, "required": ["order_id"]},
    }
    graph = build_graph([LIST, spec("bundle", {"items": items})])
    assert kinds(graph) == {"bundle.items[*].order_id": "internal", "bundle.items[*].note": "external"}
    assert edges(graph)["list_orders", "bundle"] == [("$.orders[*].order_id", "items[*].order_id")]


def test_a_top_level_array_is_read() -> None:
    tool = spec(
        "list_orders", output={"type": "array", "items": {"type": "object", "properties": {"order_id": STRING}}}
    )
    assert edges(build_graph([tool, GET])) == {("list_orders", "get_order"): [("$[*].order_id", "order_id")]}


def test_references_are_followed() -> None:
    output = {**rows(), "$defs": {"Order": {"type": "object", "properties": {"order_id": STRING}}}}
    output["properties"] = {"orders": {"type": "array", "items": {"$ref": "#/$defs/Order"}}}
    assert edges(build_graph([spec("list_orders", output=output), GET])) == {
        ("list_orders", "get_order"): [("$.orders[*].order_id", "order_id")]
    }


def recursive(branches: int) -> dict[str, Any]:
    """A schema in which every order has so many other orders inside."""
    inside = {f"related_{number}": {"$ref": "#/$defs/Order"} for number in range(branches)}
    node = {"type": "object", "properties": {"order_id": STRING, **inside}}
    return {"$ref": "#/$defs/Order", "$defs": {"Order": node}}


@pytest.mark.parametrize("branches", [1, 12])
def test_a_cycle_of_references_ends(branches: int) -> None:
    tool = spec("list_orders", output=recursive(branches))
    assert ("$.order_id", "order_id") in edges(build_graph([tool, GET]))["list_orders", "get_order"]
    assert len(list_output_fields(tool)) < 1000


def test_a_cycle_in_the_arguments_ends() -> None:
    query = {
        "type": "object",
        "properties": {
            "field": STRING,
            "all_of": {"type": "array", "items": {"$ref": "#/$defs/Q"}},
            "none_of": {"$ref": "#/$defs/Q"},
        },
    }
    tool = spec("find", {"query": {"$ref": "#/$defs/Q"}}, **{"$defs": {"Q": query}})
    paths = [field.path for field in list_input_fields(tool)]
    assert paths[0] == "query.field"
    assert len(paths) < 100


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}, id="bare-cycle"
        ),
        pytest.param({"$ref": "#/$defs/None"}, id="dangling-reference"),
        pytest.param({"$ref": "https://example.com/schema.json"}, id="remote-reference"),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": STRING}, "required": True}}},
            id="required-is-a-flag",
        ),
        pytest.param({"type": "object", "properties": []}, id="properties-is-a-list"),
        pytest.param(
            {"type": "object", "properties": {"a": True, "b": None, "c": "string"}}, id="properties-are-no-schemas"
        ),
        pytest.param({"type": "array", "items": [STRING, STRING]}, id="tuple"),
        pytest.param({"anyOf": [{"type": "null"}]}, id="nothing-but-null"),
        pytest.param({"anyOf": "x"}, id="no-branches"),
        pytest.param({}, id="empty"),
        pytest.param(None, id="none"),
    ],
)
def test_odd_output_schemas_give_no_edges_and_no_crash(output: Any) -> None:
    assert edges(build_graph([spec("odd", output=output), LIST, GET])) == edges(build_graph([LIST, GET]))


def test_descriptions_may_be_missing() -> None:
    assert LIST.description == ""
    assert build_graph([LIST, GET]).findings == ()


def test_a_tool_that_is_there_twice_is_a_finding() -> None:
    graph = build_graph([LIST, GET, LIST, spec("list_orders", server="other")])
    assert graph.findings == ("tool shop.list_orders is there twice; the first one counts",)
    assert len(graph.tools) == 3


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "text"}}},
            "is no JSON Schema: 'text' is not valid",
            id="type",
        ),
        pytest.param(
            {"type": "object", "properties": ["a"]}, "is no JSON Schema: .* is not of type 'object'", id="properties"
        ),
        pytest.param(
            {"type": "object", "required": "a"}, "is no JSON Schema: 'a' is not of type 'array'", id="required"
        ),
        pytest.param({"type": "array"}, "must be of type object", id="array"),
    ],
)
def test_a_bad_input_schema_names_the_tool(schema: dict[str, Any], reason: str) -> None:
    tool = ToolSpec.model_validate({"server": "shop", "name": "broken", "inputSchema": schema})
    with pytest.raises(InputError, match=f"tool shop.broken: its input schema {reason}"):
        check_schema(tool)


@pytest.mark.parametrize(
    ("schema", "finding"),
    [
        pytest.param({"type": "object", "properties": {"a": {"type": "text"}}}, "is no JSON Schema", id="type"),
        pytest.param({"type": "object", "properties": ["a"]}, "is no JSON Schema", id="properties"),
        pytest.param({"type": "object", "required": "a"}, "is no JSON Schema", id="required"),
        pytest.param({"type": "array"}, "is not of type object", id="array"),
    ],
)
def test_a_build_goes_on_past_a_bad_schema(schema: dict[str, Any], finding: str) -> None:
    tool = ToolSpec.model_validate({"server": "shop", "name": "broken", "inputSchema": schema})
    graph = build_graph([LIST, tool, GET])
    assert [text for text in graph.findings if text.startswith("tool shop.broken: its input schema " + finding)]
    assert len(graph.findings) == 1
    assert list(edges(graph)) == [("list_orders", "get_order")]


def test_names_that_differ_in_case_only_are_a_finding() -> None:
    graph = build_graph([LIST, GET, spec("Get_Order", {"order_id": STRING})])
    assert graph.findings == ("tool shop.Get_Order differs from shop.get_order in upper and lower case only",)
    assert len(graph.tools) == 3


def test_an_oversized_tool_is_a_finding() -> None:
    monster = spec("monster", {f"field_{number}": STRING for number in range(700)})
    graph = build_graph([LIST, monster])
    assert graph.findings == ("tool shop.monster has more than 600 parameters; the first 600 are looked at",)
    assert len(graph.parameters) == 600


def test_a_tool_with_400_parameters_has_400_nodes() -> None:
    graph = build_graph([LIST, spec("wide", {f"order_{number}_id": STRING for number in range(400)})])
    assert len(graph.parameters) == 400
    assert graph.findings == ()


def test_edges_between_servers_are_a_choice() -> None:
    other = GET.model_copy(update={"server": "desk"})
    assert list(edges(build_graph([LIST, other]))) == [("list_orders", "get_order")]
    assert edges(build_graph([LIST, other], GraphSettings(cross_server=False))) == {}
    assert kinds(build_graph([LIST, other])) == {"get_order.order_id": "external"}


def test_a_threshold_can_be_given() -> None:
    assert list(edges(build_graph([LIST, GET], GraphSettings(threshold=0.5)))) == [("list_orders", "get_order")]
    assert {edge.weight for edge in build_graph([LIST, GET], GraphSettings(threshold=0.99)).edges} == {1}


def test_the_graph_does_not_depend_on_the_order_of_tools() -> None:
    other = GET.model_copy(update={"server": "desk"})
    forth, back = build_graph([LIST, GET, other]), build_graph([other, GET, LIST])
    assert forth.edges == back.edges
    assert sorted(map(str, forth.parameters)) == sorted(map(str, back.parameters))


# Files


def test_a_graph_file_gives_the_graph_back(tmp_path: Path) -> None:
    graph = build_graph([LIST, GET])
    graph.save(tmp_path / "graph.json")
    assert ToolGraph.load(tmp_path / "graph.json") == graph
    assert [(edge.source, edge.target, edge.weight) for edge in graph.edges] == [
        ("shop.list_orders", "shop.get_order", 3)
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param("{", "Invalid JSON", id="torn"),
        pytest.param("{}", "tools: Field required", id="something-else"),
    ],
)
def test_a_bad_graph_file_says_why(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "graph.json").write_text(content)
    with pytest.raises(InputError, match=f"graph.json: .*{reason}"):
        ToolGraph.load(tmp_path / "graph.json")


def test_the_index_keeps_to_one_server() -> None:
    index = GraphIndex(build_graph([LIST, GET, spec("get_order", {"order_id": STRING}, server="shop2")]), "shop")
    assert index.tools == ["list_orders", "get_order"]
    assert index.needs == {"get_order": ["order_id"]}
    assert index.sources("get_order", "order_id") == ["list_orders"]
    assert index.successors["list_orders"] == [("get_order", 3)]


# Published


@pytest.mark.parametrize(("name", "count"), [("tau2_airline", 14), ("bfcl_public", 60)])
def test_published_tools_give_a_graph(name: str, count: int) -> None:
    tools = published(name)
    graph = build_graph(tools)
    full_names = {tool.full_name for tool in tools}
    assert len(graph.tools) == len(full_names) >= count
    assert len(graph.findings) == len(tools) - len(full_names)
    assert graph.edges
    assert {edge.source for edge in graph.edges} | {edge.target for edge in graph.edges} <= full_names
    assert not [edge for edge in graph.edges if edge.source == edge.target]
    assert ToolGraph.model_validate_json(orjson.dumps(graph.model_dump(mode="json", exclude_none=True))) == graph


def test_half_of_the_gold_edges_of_the_airline_are_found() -> None:
    graph = build_graph(published("tau2_airline"))
    lines = (DATA / "tau2_airline" / "gold_edges.jsonl").read_bytes().splitlines()
    gold = {(edge["source"], edge["target"]) for edge in map(orjson.loads, lines) if edge["tier"] == "core"}
    assert gold
    assert len(gold & edges(graph).keys()) >= 0.5 * len(gold)
