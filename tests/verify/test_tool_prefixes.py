"""Recorded tools are found under the environment's own names, whatever the client put before them."""

import pytest

from trajsmith.records import EnvironmentSpec, ToolSpec
from trajsmith.verify.traces.replaying import find_tool_name


def spec(*names: str) -> EnvironmentSpec:
    tools = tuple(ToolSpec(server="bank", name=name, description="", input_schema={"type": "object"}) for name in names)
    return EnvironmentSpec(
        name="bank", version="1", description="", policy="", tools=tools, state_schema={}, source="x"
    )


@pytest.mark.parametrize(
    ("recorded", "tools", "found"),
    [
        ("mcp__bank__get_account", ["get_account"], "get_account"),
        ("bank.get_account", ["get_account"], "get_account"),
        ("mcp__desk__bank__get_account", ["bank__get_account", "shop__get_account"], "bank__get_account"),
        ("mcp__desk__bank__get_account", ["get_account", "bank__get_account"], "bank__get_account"),
        ("mcp__my_bank___get_account", ["get_account"], "get_account"),
        ("bank__get_account", ["bank__get_account", "get_account"], "bank__get_account"),
        ("mcp__bank__close", ["get_account"], "mcp__bank__close"),
        ("reget_account", ["get_account"], "reget_account"),
    ],
)
def test_the_longest_end_that_is_a_tool_is_the_tool(recorded: str, tools: list[str], found: str) -> None:
    assert find_tool_name(spec(*tools), recorded) == found
