"""Lists of tools as servers, clients and data sets give them."""

import json
from pathlib import Path
from typing import Any

import pytest

from trajsmith.records import InputError
from trajsmith.toolgraph import build_graph
from trajsmith.toolgraph.tool_lists import read_tool_list

SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
MCP = {"name": "get_order", "description": "Get an order", "inputSchema": SCHEMA}


def written(path: Path, text: str) -> Path:
    file = path / "shop.jsonl"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(MCP, id="mcp-without-server"),
        pytest.param({**MCP, "server": "shop", "outputSchema": None, "_meta": {"x": 1}}, id="mcp-with-everything"),
        pytest.param({"name": "get_order", "description": "Get an order", "input_schema": SCHEMA}, id="anthropic"),
        pytest.param(
            {
                "type": "function",
                "function": {"name": "get_order", "description": "Get an order", "parameters": SCHEMA},
            },
            id="openai",
        ),
    ],
)
def test_a_tool_is_read_however_it_is_written(row: dict[str, Any], tmp_path: Path) -> None:
    for text in (json.dumps(row), json.dumps([row], indent=1), json.dumps({"tools": [row]})):
        (tool,) = read_tool_list(written(tmp_path, text))
        assert (tool.full_name, tool.description, tool.input_schema) == ("shop.get_order", "Get an order", SCHEMA)
        assert tool.output_schema is None


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="empty"),
        pytest.param("object", id="text"),
        pytest.param({"type": "object", "properties": []}, id="properties-are-a-list"),
        pytest.param({"type": "object", "properties": {"a": True, "b": {"type": 5}}, "required": "a"}, id="no-types"),
    ],
)
def test_a_schema_that_cannot_be_read_stops_nothing(schema: Any, tmp_path: Path) -> None:
    tools = read_tool_list(written(tmp_path, json.dumps({"name": "odd", "inputSchema": schema})))
    assert [tool.name for tool in build_graph(tools).tools] == ["odd"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"name": "a"}\n{"name": ', r"shop\.jsonl:2: no tool: not valid JSON", id="no-json"),
        pytest.param('{"name": "a"}\n[1]', r"tool 1: no tool: it has no name", id="a-number"),
        pytest.param('{"description": "a"}', r"shop\.jsonl:1: no tool: it has no name", id="no-name"),
    ],
)
def test_what_is_no_tool_is_said_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_tool_list(written(tmp_path, text))
