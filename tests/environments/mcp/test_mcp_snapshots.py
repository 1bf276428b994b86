"""Going back on live servers: by their own tools to save and load, or by a fresh server and the same calls."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from live import SERVERS, left_in, processes_in, settings
from pydantic import ValidationError

from trajsmith.environments.adapters.mcp import McpSettings, McpSource
from trajsmith.records import EnvironmentFault, InputError

SAVING: dict[str, Any] = {"snapshot": {"save": "dump", "load": "restore", "argument": "shelf"}}
REUSED: dict[str, Any] = {"snapshot": {**SAVING["snapshot"], "reuse": True}}
OBSERVED: dict[str, Any] = {"observe": [{"tool": "dump", "label": "shelf"}]}
EMPTY = {"books": {}, "last": 0}
ONE = {"books": {"b1": "Emma"}, "last": 1}


@pytest.fixture
async def keeper(scratch: str):
    """Open a session on a shelf; at the end nothing may be left of it."""
    opened = []

    async def begin(mode: str = "good", state: dict[str, Any] | None = None, **more: Any):
        session = await McpSource(settings("keeper.py", mode, **more)).open()
        opened.append(session)
        await session.reset(EMPTY if state is None else state)
        return session

    yield begin
    for session in opened:
        await session.close()
    assert (processes_in(scratch), left_in(scratch)) == ([], [])


async def counted(session) -> tuple[int, int, int]:
    """Process, loads and adds of the server."""
    seen = (await session.call("look", {})).content
    return seen["pid"], seen["loads"], seen["adds"]


# By the server's own tools


async def test_the_state_is_what_the_server_saves_and_agents_do_not_see_how():
    source = McpSource(settings("keeper.py", "good", **SAVING))
    spec = await source.spec()
    assert [tool.name for tool in spec.tools] == ["add", "look", "peek"]
    assert (spec.can_restore, spec.state_schema) == (True, {"type": "object"})
    without = await McpSource(settings("keeper.py", "good")).spec()
    assert (without.can_restore, without.version != spec.version) == (False, True)
    faster = await McpSource(settings("keeper.py", "good", **REUSED)).spec()
    assert faster.version == spec.version


async def test_initial_states_are_loaded_and_played_and_then_saved():
    states = {"a": {}, "b": {"load": ONE, "calls": [{"tool": "add", "arguments": {"title": "Persuasion"}}]}}
    source = McpSource(settings("keeper.py", "good", states=states, **SAVING))
    expected = [EMPTY, {"books": {"b1": "Emma", "b2": "Persuasion"}, "last": 2}]
    first = await source.states(1)
    assert first == expected
    first[0]["books"]["x"] = "changed by who got it"
    assert await source.states(2) == expected


@pytest.mark.parametrize(("mode", "reuse"), [("good", False), ("good", True), ("as_text", True)])
async def test_reset_snapshot_and_checkpoints(keeper, mode, reuse):
    session = await keeper(mode, ONE, **(REUSED if reuse else SAVING))
    assert await session.snapshot() == ONE
    start = await session.state_hash()
    point = await session.checkpoint()
    first = await counted(session)
    await session.call("add", {"title": "Persuasion"})
    assert await session.snapshot() == {"books": {"b1": "Emma", "b2": "Persuasion"}, "last": 2}
    assert await session.state_hash() != start
    await session.rollback(point)
    assert (await session.snapshot(), await session.state_hash()) == (ONE, start)
    second = await counted(session)
    assert (second[0] == first[0]) == reuse, "only where the settings say so is a running server loaded again"
    await session.rollback(point)
    assert await counted(session) == second, "nothing happened since, so nothing is loaded"
    await session.reset(EMPTY)
    assert await session.snapshot() == EMPTY
    unknown = await session.call("restore", {"shelf": ONE})
    assert unknown.error == "unknown_tool"


async def test_a_point_of_one_session_serves_another(keeper):
    ana, bob = await keeper(**SAVING), await keeper(**SAVING)
    await ana.call("add", {"title": "Emma"})
    await bob.rollback(await ana.checkpoint())
    assert await bob.snapshot() == ONE
    await ana.call("add", {"title": "Persuasion"})
    assert await bob.snapshot() == ONE


async def test_a_server_that_broke_is_replaced_also_where_it_could_be_loaded_again(keeper):
    session = await keeper("dies_on_add", ONE, **REUSED)
    point = await session.checkpoint()
    for again in (lambda: session.reset(ONE), lambda: session.rollback(point)):
        with pytest.raises(EnvironmentFault, match="server_exited"):
            await session.call("add", {"title": "last"})
        await again()
        assert await session.snapshot() == ONE


LIES = [
    ("ignores", SAVING, ONE, r"trial.restore: state: the server saves another state .*: /books/b1 is missing$"),
    ("forgets", SAVING, ONE, r"/books/b1 is missing$"),
    ("dies_in_load", SAVING, ONE, r"trial.restore: server_exited: the server exited with code 5"),
    ("hangs_in_load", SAVING, ONE, r"trial.restore: timeout: no answer within 0.5 s"),
    ("nonsense_in_load", SAVING, ONE, r"trial.restore: protocol: .* not a JSON-RPC message: 'loading...'"),
    ("refuses_load", SAVING, ONE, r"trial.restore: state: the state cannot be loaded: .*no shelf"),
    ("saves_text", SAVING, ONE, r"trial.dump: state: a saved state must be an object, not a shelf with books"),
    ("saves_list", SAVING, ONE, r"trial.dump: state: a saved state must be an object, not \["),
    ("refuses_save", SAVING, ONE, r"trial.dump: state: the state cannot be saved: .*not now"),
    ("floods", SAVING, ONE, r"trial.dump: protocol: .*a line of more than \d+ bytes"),
]


@pytest.mark.parametrize(("mode", "how", "state", "message"), LIES, ids=[mode for mode, *_ in LIES])
async def test_a_server_that_lies_or_breaks_over_its_state_is_named(scratch, mode, how, state, message):
    timeout = 0.5 if mode == "hangs_in_load" else 30.0
    session = await McpSource(settings("keeper.py", mode, timeout=timeout, **how)).open()
    with pytest.raises(EnvironmentFault, match=message):
        await session.reset(state)
    assert processes_in(scratch) == [], "nobody knows its state, so it is not kept"
    with pytest.raises(EnvironmentFault, match="session was used before reset"):
        await session.snapshot()


async def test_a_load_that_does_not_replace_shows_when_a_server_is_loaded_again(keeper):
    session = await keeper("merges", ONE, **REUSED)
    with pytest.raises(EnvironmentFault, match=r"/books/b1 is more in it; if only a fresh .* reuse: false$"):
        await session.reset(EMPTY)
    fresh = await keeper("merges", ONE, **SAVING)
    await fresh.reset(EMPTY)
    assert await fresh.snapshot() == EMPTY


async def test_a_state_that_the_server_refuses_is_a_fault_and_the_next_one_works(keeper):
    session = await keeper("refuses_odd", ONE, **REUSED)
    with pytest.raises(EnvironmentFault, match="the state cannot be loaded"):
        await session.reset({"odd": 1})
    await session.reset(ONE)
    assert await session.snapshot() == ONE


WRONG = [
    ({"snapshot": {**SAVING["snapshot"], "save": "nope"}}, "snapshot.save names 'nope', which the server"),
    ({"snapshot": {**SAVING["snapshot"], "load": "nope"}}, "snapshot.load names 'nope', which the server"),
    ({"snapshot": {**SAVING["snapshot"], "argument": "s"}}, "snapshot.load: the tool restore has no parameter 's'"),
    ({"snapshot": {**SAVING["snapshot"], "save": "add"}}, "snapshot.save: the tool add requires 'title'"),
]


@pytest.mark.parametrize(("more", "message"), WRONG, ids=[message for _, message in WRONG])
async def test_tools_that_cannot_do_it_are_wrong_input(more, message):
    with pytest.raises(InputError, match=f"^MCP server trial: {message}"):
        await McpSource(settings("keeper.py", "good", **more)).states(0)


REFUSED = [
    ({**SAVING, **OBSERVED}, "give either `observe` or `snapshot`"),
    ({"snapshot": {**SAVING["snapshot"], "load": "dump"}}, "`save` and `load` must be two tools"),
    ({"states": {"a": {"load": {}}}}, "`load` in a state needs `snapshot`"),
    ({**SAVING, "states": {"a": {}, "b": {"files": {"x": "1"}}}}, "all states must have the same files"),
]


@pytest.mark.parametrize(("more", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_settings_of_snapshots_are_validated(more, message):
    with pytest.raises(ValidationError, match=message):
        McpSettings(name="x", command=["x"], **more)


async def test_a_state_for_load_is_refused_where_nothing_loads(scratch):
    session = await McpSource(settings("keeper.py", "good")).open()
    with pytest.raises(EnvironmentFault, match="state: load: the settings name no tool that loads states"):
        await session.reset({"load": ONE})


# By a fresh server and the same calls


async def test_going_back_is_a_fresh_server_and_only_the_calls_that_show(keeper):
    session = await keeper(state={}, **OBSERVED)
    await session.call("add", {"title": "Emma"})
    await session.state_hash()
    for tool, arguments in [("look", {}), ("peek", {}), ("add", {"title": "full"}), ("add", {"nothing": 1})]:
        await session.call(tool, arguments)
    point = await session.checkpoint()
    seen = await session.snapshot()
    before = await counted(session)
    await session.rollback(point)
    assert await counted(session) == before, "nothing that shows has happened, so the server stays"
    await session.call("add", {"title": "Persuasion"})
    await session.rollback(point)
    after = await counted(session)
    assert after[0] != before[0]
    assert (before[2], after[2]) == (2, 1), "refused calls and reads are not made again"
    assert (await session.snapshot(), await session.state_hash()) == (seen, point.digest)
    assert seen["observed"] == {"shelf": ONE}


async def test_where_nothing_is_observed_all_calls_that_may_write_are_made_again(keeper):
    session = await keeper(state={})
    assert await session.snapshot() == {"files": {}, "observed": {}}
    await session.call("add", {"title": "Emma"})
    await session.call("look", {})
    point = await session.checkpoint()
    await session.call("add", {"title": "Persuasion"})
    await session.rollback(point)
    assert (await session.call("look", {})).content["books"] == {"b1": "Emma"}


UNSTEADY = [
    ("random_ids", OBSERVED, "a fresh start and the same calls lead to another state"),
    ("tells_time", {}, "the same call gives another result after a fresh start"),
    ("tells_time", OBSERVED, None),
]


@pytest.mark.parametrize(("mode", "more", "message"), UNSTEADY, ids=["state", "result unobserved", "result observed"])
async def test_a_server_that_is_not_deterministic_is_named_with_the_call(keeper, mode, more, message):
    session = await keeper(mode, {}, **more)
    await session.state_hash()
    await session.call("add", {"title": "Emma"})
    point = await session.checkpoint()
    await session.call("add", {"title": "Persuasion"})
    if message is None:
        await session.rollback(point)
        assert (await session.snapshot())["observed"]["shelf"] == ONE
        return
    with pytest.raises(EnvironmentFault) as caught:
        await session.rollback(point)
    assert str(caught.value) == f"trial.add: state: not deterministic: {message}"


async def test_a_call_that_is_refused_the_second_time_is_named(keeper, tmp_path, monkeypatch):
    session = await keeper("refuses_again", {}, **OBSERVED)
    await session.call("add", {"title": "Emma"})
    point = await session.checkpoint()
    changed = type(point)({"files": {"been.here": ""}}, point.calls, point.digest)
    with pytest.raises(EnvironmentFault, match=r"trial.add: .* is refused after a fresh start: .*not twice"):
        await session.rollback(changed)


async def test_going_back_works_after_a_fault(keeper):
    session = await keeper("dies_on_add", {}, **OBSERVED)
    await session.call("add", {"title": "Emma"})
    point = await session.checkpoint()
    with pytest.raises(EnvironmentFault, match="server_exited"):
        await session.call("add", {"title": "last"})
    await session.rollback(point)
    assert (await session.snapshot())["observed"]["shelf"] == ONE


# An environment of our own, served and used as a live server


@asynccontextmanager
async def served(name: str) -> AsyncIterator[McpSource]:
    command = [sys.executable, "-m", "trajsmith", "env", "serve", name, "--admin"]
    tools = {"save": "save_state", "load": "load_state", "argument": "state", "reuse": True}
    found = McpSettings(
        name=name,
        command=command,
        env={"PYTHONPATH": str(SERVERS.parents[3])},
        tools={"exclude": ["reset"]},
        snapshot=tools,
    )
    yield McpSource(found)


async def test_an_environment_served_over_mcp_plays_as_it_does_in_this_process(scratch):
    from trajsmith.environments.native_source import build_library_source

    native = build_library_source("retail", {"small": 1})
    (state,) = await native.states(0)
    order = next(iter(state["orders"]))
    calls = [("get_order", {"order_id": order}), ("get_order", {"order_id": "W0"}), ("nothing", {}), ("get_order", {})]
    async with served("retail") as source:
        sessions = [await source.open(), await native.open()]
        results = []
        for session in sessions:
            await session.reset(state)
            results.append([await session.call(name, arguments) for name, arguments in calls])
            results[-1].append(await session.state_hash())
            await session.close()
    (served_results, own) = results
    assert [result.text for result in served_results[:2]] == [result.text for result in own[:2]]
    assert [result.error for result in served_results[:4]] == [result.error for result in own[:4]]
    assert served_results[4] == own[4]
    names = [tool.name for tool in (await source.spec()).tools]
    assert names == [tool.name for tool in (await native.spec()).tools]
