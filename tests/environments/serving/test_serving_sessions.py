"""Every connection has a session of its own, from its handshake to its end; what breaks is named."""

import asyncio

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from served import Counted, client_of, fault_of, over_http, seen

from trajsmith.environments.serving import prepare_serving
from trajsmith.records import EnvironmentFault, InputError

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def request(method, params, number=2):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def test_two_connections_do_not_see_one_another():
    source = Counted()
    async with over_http(await prepare_serving(source)) as url, Client(url) as ana, Client(url) as bob:
        await ana.call_tool("put", {"book": "x", "count": 5})
        assert seen(await ana.call_tool("count", {"book": "x"})) == ('{"result":5}', {"result": 5}, None)
        assert seen(await bob.call_tool("count", {"book": "x"}))[2] == "refused"
        await bob.call_tool("put", {"book": "x"})
        assert seen(await ana.call_tool("count", {"book": "x"}))[1] == {"result": 5}
        assert source.open_sessions == 2
    assert await source.all_closed()


async def test_fifty_connections_at_once():
    source = Counted()

    async def play(http: httpx2.AsyncClient, url: str, number: int) -> dict:
        async with Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
            for _ in range(4):
                await client.call_tool("put", {"book": "n", "count": number})
            return seen(await client.call_tool("count", {"book": "n"}))[1]

    limits = httpx2.Limits(max_connections=120)
    async with over_http(await prepare_serving(source)) as url, httpx2.AsyncClient(limits=limits, timeout=30) as http:
        found = await asyncio.gather(*(play(http, url, number) for number in range(50)))
        assert found == [{"result": 4 * number} for number in range(50)]
        assert source.opened == 50
        assert await source.all_closed()


async def test_a_disconnect_frees_the_session_while_the_server_goes_on():
    source = Counted()
    async with over_http(await prepare_serving(source)) as url:
        async with Client(url) as client:
            assert source.open_sessions == 1, "it is opened at the handshake"
            await client.call_tool("put", {"book": "x"})
        assert await source.all_closed()
        async with httpx2.AsyncClient(headers=HEADERS) as raw:
            opened = await raw.post(url, json=HELLO)
            name = {"mcp-session-id": opened.headers["mcp-session-id"]}
            assert (await raw.delete(url, headers=name)).status_code == 200
            gone = await raw.post(url, json=request("tools/list", {}), headers=name)
            assert (gone.status_code, gone.json()["error"]["message"][:15]) == (404, "no such session")
        assert await source.all_closed()


async def test_a_client_that_vanishes_costs_its_session_only_so_long():
    source = Counted()
    async with over_http(await prepare_serving(source), idle=0.2) as url:
        async with httpx2.AsyncClient(headers=HEADERS) as raw:
            assert (await raw.post(url, json=HELLO)).status_code == 200
            assert source.open_sessions == 1
        assert await source.all_closed()


async def test_the_end_of_the_server_closes_all_sessions():
    source = Counted()
    async with over_http(await prepare_serving(source)) as url, httpx2.AsyncClient(headers=HEADERS) as raw:
        for _ in range(3):
            await raw.post(url, json=HELLO)
        assert source.open_sessions == 3
    assert source.open_sessions == 0


async def test_there_is_a_most_of_sessions():
    source = Counted()
    async with over_http(await prepare_serving(source), most=1) as url, httpx2.AsyncClient(headers=HEADERS) as raw:
        first = await raw.post(url, json=HELLO)
        second = await raw.post(url, json=HELLO)
        assert (second.status_code, second.json()["error"]["message"]) == (
            503,
            "1 sessions are open, which is the most: close one, or try later",
        )
        await raw.delete(url, headers={"mcp-session-id": first.headers["mcp-session-id"]})
        assert (await raw.post(url, json=HELLO)).status_code == 200


async def test_calls_of_one_connection_go_one_after_another_and_keep_their_order():
    source = Counted(slow=0.001)
    async with client_of(source) as client:
        results = await asyncio.gather(*(client.call_tool("put", {"book": "x"}) for _ in range(10)))
    assert sorted(seen(result)[1]["x"] for result in results) == list(range(1, 11))


async def test_a_call_that_nobody_waits_for_any_more_still_ends_before_the_next():
    source = Counted(slow=0.1)
    async with client_of(source) as client:
        given_up = asyncio.create_task(client.call_tool("put", {"book": "x"}))
        await source.began.wait()
        given_up.cancel()
        assert seen(await client.call_tool("count", {"book": "x"}))[1] == {"result": 1}


async def test_a_fault_is_a_protocol_error_that_names_it_and_breaks_only_this_connection():
    source = Counted()
    async with over_http(await prepare_serving(source)) as url, Client(url) as ana, Client(url) as bob:
        fault = await fault_of(ana, "topple", {})
        assert fault.message == "shelf.topple: crash: ZeroDivisionError: integer division or modulo by zero"
        assert fault.data == {"trajsmith/fault": {"kind": "crash", "environment": "shelf", "tool": "topple"}}
        later = await fault_of(ana, "count", {"book": "a"})
        assert later.message == f"shelf.count: crash: it broke before ({fault.message}): connect again"
        assert seen(await bob.call_tool("count", {"book": "a"}))[1] == {"result": 1}


async def test_admin_tools_save_load_and_reset():
    async with client_of(Counted(), admin=True) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[-3:] == ["load_state", "save_state", "reset"]
        start = (await client.call_tool("save_state", {})).structured_content
        await client.call_tool("put", {"book": "x"})
        saved = (await client.call_tool("save_state", {})).structured_content
        fresh = (await client.call_tool("reset", {})).structured_content
        assert (await client.call_tool("save_state", {})).structured_content == start
        await fault_of(client, "topple", {})
        loaded = (await client.call_tool("load_state", {"state": saved})).structured_content
        assert loaded != fresh
        assert seen(await client.call_tool("count", {"book": "x"}))[1] == {"result": 1}
        wrong = await fault_of(client, "load_state", {"state": {"books": 3}})
        assert wrong.message.startswith("shelf: state: ")
        assert (await fault_of(client, "count", {"book": "x"})).message.endswith("call reset")
        for arguments in ({}, {"state": 3}, {"state": {}, "more": 1}):
            assert seen(await client.call_tool("load_state", arguments))[2] == "invalid_arguments"


async def test_without_admin_there_are_no_such_tools():
    async with client_of(Counted()) as client:
        assert seen(await client.call_tool("reset", {})) == ('{"error":"unknown tool: reset"}', None, "unknown_tool")


async def test_an_environment_that_does_not_start_refuses_the_handshake():
    source = Counted()
    offer = await prepare_serving(source, state={"now": "yesterday"})
    async with over_http(offer, most=1) as url, httpx2.AsyncClient(headers=HEADERS) as raw:
        for _ in range(2):
            answer = (await raw.post(url, json=HELLO)).json()
    assert answer["error"]["message"].startswith("shelf: state: now: Input should be a valid datetime")
    assert answer["error"]["data"]["trajsmith/fault"]["kind"] == "state"
    assert source.open_sessions == 0


MALFORMED = [
    ({"name": "put", "arguments": [1]}, "tools/call: params.arguments: Input should be a valid dictionary"),
    ({"arguments": {}}, "tools/call: params.name: Field required"),
    ({"name": "put", "arguments": {"book": "x", "count": 2**70}}, None),
]


@pytest.mark.parametrize(("params", "message"), MALFORMED, ids=["list", "no name", "giant number"])
async def test_malformed_calls_are_told_what_is_wrong(params, message):
    async with over_http(await prepare_serving(Counted())) as url, httpx2.AsyncClient(headers=HEADERS) as raw:
        name = (await raw.post(url, json=HELLO)).headers["mcp-session-id"]
        answer = (await raw.post(url, json=request("tools/call", params), headers={"mcp-session-id": name})).json()
    if message is None:
        assert "not JSON data: Integer exceeds 64-bit range" in answer["result"]["content"][0]["text"]
    else:
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, message)


async def test_other_http_requests_are_refused_in_words():
    async with over_http(await prepare_serving(Counted())) as url, httpx2.AsyncClient(headers=HEADERS) as raw:
        call = request("tools/call", {"name": "put", "arguments": {"book": "x"}})
        assert (await raw.post(url, json=call)).status_code == 400
        modern = await raw.post(url, json=call, headers={"mcp-protocol-version": "2026-07-28"})
        assert (modern.status_code, modern.json()["error"]["code"]) == (400, -32022)
        assert "has no sessions" in modern.json()["error"]["message"]
        assert (await raw.post(url, content=b"{", headers=HEADERS)).status_code == 400
        assert (await raw.post(url, content=b"x" * (5 * 2**20))).status_code == 413
        assert (await raw.post(url, json=HELLO, headers={"host": "evil.example"})).status_code == 421
        assert (await raw.get(url.removesuffix("mcp"))).status_code == 404


async def test_wrong_wishes_are_wrong_input():
    with pytest.raises(InputError, match="environment shelf has no initial state 2; it has 0 to 1"):
        await prepare_serving(Counted(), state=2)

    class Clerk(Counted):
        async def spec(self):
            spec = await super().spec()
            tools = tuple(tool.model_copy(update={"name": "reset"}) for tool in spec.tools if tool.actor == "assistant")
            return spec.model_copy(update={"tools": tools})

    with pytest.raises(InputError, match="has a tool reset of its own: serve it without admin tools"):
        await prepare_serving(Clerk(), admin=True)
    with pytest.raises(InputError, match="environment shelf has no tools for the user"):
        await prepare_serving(Clerk(), actor="user")


async def test_a_desk_that_is_closed_takes_no_calls():
    from trajsmith.environments.serving import SessionManager

    source = Counted(slow=5)
    desk = SessionManager(await prepare_serving(source))
    running = asyncio.create_task(desk.call("put", {"book": "x"}))
    await source.began.wait()
    await desk.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(EnvironmentFault, match="shelf: state: the connection is closed"):
        await desk.call("put", {"book": "x"})
    assert source.open_sessions == 0
