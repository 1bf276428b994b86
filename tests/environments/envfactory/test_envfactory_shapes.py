"""The shapes that tool files come in: how tools are registered, what they return, how they say no."""

import pytest
from envfactory_files import loaded, started

from trajsmith.environments.adapters.envfactory.fastmcp_stub import ToolRecorder, install_stub_library
from trajsmith.records import EnvironmentFault, InputError

HEAD = """
from mcp.server.fastmcp import FastMCP, Context
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel
from typing import Dict, List
import asyncio
mcp = FastMCP("Box", instructions="A box.")
"""


def called(body, tool="tool", arguments=None):
    return started(loaded(HEAD + body)).call(tool, arguments or {})


@pytest.mark.parametrize(
    "body",
    [
        "@mcp.tool\ndef tool() -> dict: return {'ok': 1}",
        "@mcp.tool('tool')\ndef other() -> dict: return {'ok': 1}",
        "@mcp.tool(name='tool', description='Do.')\ndef other() -> dict: return {'ok': 1}",
        "def tool() -> dict: return {'ok': 1}\nmcp.add_tool(tool)",
        "def tool() -> dict: return {'ok': 1}\nmcp.tool()(tool)",
        "class Box:\n    def look(self) -> dict: return {'ok': 1}\nbox = Box()\nmcp.add_tool(box.look, name='tool')",
        "@mcp.tool()\nasync def tool(ctx: Context) -> dict:\n    await ctx.info('x')\n    return {'ok': 1}",
    ],
    ids=["bare", "named", "keywords", "add_tool", "applied", "method", "async with context"],
)
def test_ways_to_register(body):
    program = loaded(HEAD + body)
    assert [tool.name for tool in program.spec.tools] == ["tool"]
    assert program.spec.tools[0].input_schema["properties"] == {}
    assert started(program).call("tool", {}).content == {"ok": 1}


def test_description_and_annotations():
    body = (
        "@mcp.tool(description='Look.', annotations=ToolAnnotations(readOnlyHint=True))\ndef tool() -> dict: return {}"
    )
    spec = loaded(HEAD + body).spec
    assert spec.description == "A box."
    assert spec.tools[0].description == "Look."
    assert spec.tools[0].annotations.read_only_hint is True


def test_the_other_library_of_that_name():
    source = "import fastmcp\nmcp = fastmcp.FastMCP('x')\n@mcp.tool\ndef tool(): return 'hi'"
    assert started(loaded(source)).call("tool", {}).content == "hi"


def test_what_is_no_tool_is_noted():
    body = """
@mcp.resource("box://all")
def everything() -> str: return "x"
@mcp.tool()
def tool() -> dict: return {"all": everything()}
@mcp.tool(name="tool")
def again() -> dict: return {}
mcp.run()
"""
    program = loaded(HEAD + body)
    assert program.notes == [
        "everything is a resource, prompt or route: it is not offered",
        "tool tool is registered twice; the first one counts",
        "the file starts its server when it is loaded; it is served from here instead",
    ]
    assert started(program).call("tool", {}).content == {"all": "x"}


@pytest.mark.parametrize(
    ("returns", "value", "content"),
    [
        ("dict", "{'a': (1, 2)}", {"a": [1, 2]}),
        ("dict", "{1: {'b': None}}", {"1": {"b": None}}),
        ("str", "'done'", "done"),
        ("str", "None", {"result": None}),
        ("list", "[1]", {"result": [1]}),
        ("List[dict]", "[{'a': 1}]", {"result": [{"a": 1}]}),
        ("Dict[str, Item]", "{'x': Item(n=1)}", {"x": {"n": 1}}),
        ("Item", "Item(n=2)", {"n": 2}),
        ("bool", "True", {"result": True}),
    ],
)
def test_results(returns, value, content):
    body = f"class Item(BaseModel):\n    n: int\n@mcp.tool()\ndef tool() -> {returns}: return {value}"
    assert called(body).content == content


@pytest.mark.parametrize(
    ("statement", "content"),
    [
        ("raise ValueError('too late')", {"error": "too late"}),
        ("raise ToolError('closed')", {"error": "closed"}),
        ("raise ValueError()", {"error": "ValueError"}),
        ("int('x')", {"error": "invalid literal for int() with base 10: 'x'"}),
        ("return {'error': 'no such item', 'known': [1]}", {"error": "no such item", "known": [1]}),
        ("return {'success': False, 'message': 'locked'}", {"success": False, "message": "locked"}),
    ],
)
def test_refusals(statement, content):
    result = called(f"@mcp.tool()\ndef tool() -> dict:\n    {statement}")
    assert (result.content, result.error) == (content, "refused")


@pytest.mark.parametrize(
    "value",
    ["{'error': None}", "{'error': ''}", "{'status': 'failed'}", "{'items': [{'error': 'x'}]}", "{'success': 0}"],
)
def test_data_is_no_refusal(value):
    assert called(f"@mcp.tool()\ndef tool() -> dict: return {value}").ok


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ("return {'x': float('nan')}", "output_schema", "$.x: nan is no JSON"),
        ("return {'x': b'1'}", "output_schema", "$.x: a bytes is no JSON"),
        ("x = {}; x['x'] = x; return x", "output_schema", "$.x: a cycle"),
        ("return {(1, 2): 3}", "output_schema", "the key (1, 2) is no text"),
        ("return {'x': 2 ** 70}", "output_schema", "integer beyond 64 bits"),
        ("return {}['x']", "crash", "KeyError: 'x'"),
        ("raise PermissionError('no')", "crash", "PermissionError: no"),
    ],
)
def test_faults(body, kind, reason):
    with pytest.raises(EnvironmentFault) as caught:
        called(f"@mcp.tool()\ndef tool() -> dict:\n    {body}")
    assert (caught.value.kind, caught.value.tool) == (kind, "tool")
    assert reason in str(caught.value)


def test_a_result_that_its_hint_does_not_allow():
    with pytest.raises(EnvironmentFault) as caught:
        called("@mcp.tool()\ndef tool() -> List[int]: return ['x']")
    assert caught.value.kind == "output_schema"


def test_a_tool_that_waits_for_the_world():
    body = """
class Never:
    def __await__(self):
        yield object()
@mcp.tool()
async def tool() -> dict:
    await Never()
"""
    with pytest.raises(EnvironmentFault, match="waits for something outside"):
        called(body)


def test_a_method_of_an_object_that_no_variable_holds():
    body = "class Box:\n    def look(self) -> dict: return {}\nmcp.add_tool(Box().look, name='tool')"
    with pytest.raises(InputError, match="tool tool is a method of an object that is no module variable"):
        loaded(HEAD + body)


def test_models_as_arguments():
    body = "class Item(BaseModel):\n    n: int\n@mcp.tool()\ndef tool(item: Item) -> dict: return {'twice': item.n * 2}"
    assert called(body, arguments={"item": {"n": 4}}).content == {"twice": 8}


def test_a_file_without_state():
    program = loaded(HEAD + "@mcp.tool()\ndef tool() -> dict: return {'ok': 1}")
    assert program.states(0) == [{}]
    assert started(program).changes() == []
    with pytest.raises(EnvironmentFault, match=r"it has no load_scenario, so its only state is \{\}"):
        started(program, {"x": 1})


STATE_OF = """
class Api:
    def load_scenario(self, scenario): self.data = scenario
    def save_scenario(self): return {}
api = Api()
@mcp.tool()
def tool() -> dict: return {{"data": api.data}}
"""


def test_administration_may_be_methods_only():
    program = loaded(HEAD + STATE_OF.format("self.data"))
    play = started(program, {"x": [1]})
    assert play.call("tool", {}).content == {"data": {"x": [1]}}
    assert play.changes() == []


@pytest.mark.parametrize(
    ("saved", "reason"),
    [
        ("[1]", "save_scenario gives a list, not an object"),
        ("{'x': float('nan')}", "save_scenario gives no JSON: $.x: nan is no JSON"),
        ("{'x': {1, 2}, 'y': b''}", "save_scenario gives no JSON: $.y: a bytes is no JSON"),
    ],
)
def test_states_that_are_none(saved, reason):
    play = started(loaded(HEAD + STATE_OF.format(saved)), {})
    with pytest.raises(EnvironmentFault) as caught:
        play.changes()
    assert caught.value.kind == "state"
    assert reason in str(caught.value)


def test_the_stand_in_leaves_when_loading_is_over():
    recorder = ToolRecorder()
    with install_stub_library(recorder) as server:
        import mcp.server.fastmcp

        assert mcp.server.fastmcp.FastMCP is server
    with pytest.raises(ImportError):
        import mcp.server.fastmcp
