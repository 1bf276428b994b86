"""The same calls through MCP and in this process give the same, to the letter."""

import sys

import pytest
from mcp import Client, StdioServerParameters
from served import Counted, client_of, drawn_calls, seen

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.serving import prepare_serving
from trajsmith.environments.serving.mcp_server import to_mcp_tool
from trajsmith.records import ToolSpec

CALLS = 40


async def in_process(source, calls, actor):
    session = await source.open()
    await session.reset((await source.states(3))[0])
    results = [await session.call(name, arguments, actor) for name, arguments in calls]
    return [(result.text, result.content if result.ok else None, result.error) for result in results], session


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
async def test_a_transcript_over_http_is_that_of_the_session(name):
    source = build_library_source(name, {"small": 1})
    spec = await source.spec()
    state = (await source.states(3))[0]
    calls = drawn_calls(spec, state, CALLS)
    expected, session = await in_process(source, calls, "assistant")
    assert {error for _, _, error in expected} >= {None, "refused"}, "the calls must reach both outcomes"
    async with client_of(source, seed=3, admin=True) as client:
        assert [seen(await client.call_tool(*call)) for call in calls] == expected
        saved = await client.call_tool("save_state", {})
    assert saved.structured_content == await session.snapshot()


STDIO = """
import asyncio, sys
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.serving import prepare_serving
from trajsmith.environments.serving.stdio import claim_stdio, serve_stdio

async def main(stdin, stdout):
    source = build_library_source(sys.argv[1], {"small": 1})
    await serve_stdio(await prepare_serving(source, seed=3, actor=sys.argv[2]), stdin, stdout)

with claim_stdio() as streams:
    print("a word of an environment at its start")
    asyncio.run(main(*streams))
"""


@pytest.mark.parametrize(
    ("name", "actor", "mode"),
    [("retail", "assistant", "auto"), ("mobile_care", "user", "legacy")],
    ids=["sessionless era", "handshake, tools of the user"],
)
async def test_a_transcript_over_stdio_is_that_of_the_session(name, actor, mode):
    source = build_library_source(name, {"small": 1})
    spec = await source.spec()
    calls = drawn_calls(spec, (await source.states(3))[0], CALLS)
    expected, _ = await in_process(source, calls, actor)
    program = StdioServerParameters(command=sys.executable, args=["-c", STDIO, name, actor])
    async with Client(program, mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [tool.name for tool in spec.tools if tool.actor == actor]
        assert [seen(await client.call_tool(*call)) for call in calls] == expected


async def test_tools_are_listed_word_for_word():
    async with client_of(Counted()) as client:
        listed = (await client.list_tools()).tools
    spec = await Counted().spec()
    again = [
        ToolSpec.model_validate({"server": "shelf", **tool.model_dump(by_alias=True, exclude_none=True)})
        for tool in listed
    ]
    assert again == [tool for tool in spec.tools if tool.actor == "assistant"]


def test_schemas_that_mcp_has_no_room_for_are_made_to_fit_or_left_out():
    spec = ToolSpec(
        server="x", name="t", input_schema={"properties": {"a": {"default": None}}}, output_schema={"type": "array"}
    )
    found = to_mcp_tool(spec)
    assert found.input_schema == {"type": "object", "properties": {"a": {"default": None}}}
    assert found.output_schema is None
    assert spec.input_schema == {"properties": {"a": {"default": None}}}


async def test_the_policy_is_the_instructions_and_a_resource():
    source = Counted()
    async with client_of(source) as client:
        assert client.instructions.startswith("Never drop a book — bücher fallen nicht.\n\n")
        assert client.instructions.endswith("without asking back whether you should.")
        assert (client.server_info.name, client.server_info.version) == ("shelf", (await source.spec()).version)
        (resource,) = (await client.list_resources()).resources
        assert resource.mime_type == "text/markdown"
        (content,) = (await client.read_resource(resource.uri)).contents
        assert content.text == client.instructions


async def test_states_are_chosen_by_number_seed_or_given(tmp_path):
    source = Counted()
    first, second = await source.states(5)
    assert first != second
    for wanted, expected in [({"seed": 5, "state": 1}, second), ({"seed": 5, "state": first}, first)]:
        assert (await prepare_serving(source, **wanted)).state == expected
