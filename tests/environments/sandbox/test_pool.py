"""Plays in workers: the same results as in process, and what happens when code misbehaves or a worker is lost."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from shop import SHOP, shop

from trajsmith.environments.sandbox.connection import WorkerConnection
from trajsmith.environments.sandbox.host import _zygotes
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import InitialAction, Preparable, Session, ToolResult
from trajsmith.records import EnvironmentFault, InputError, JsonObject, RunError, compute_state_digest

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the sandbox needs Linux"),
]


@pytest.fixture(params=["shared", "process", "strict", "unsafe"])
async def source(request: pytest.FixtureRequest) -> AsyncIterator[SandboxSource]:
    mode = request.param if request.param in ("strict", "unsafe") else "default"
    made = shop(plays="shared" if request.param == "shared" else "process", mode=mode)
    yield made
    made.close()


async def opened(source: SandboxSource) -> tuple[Session, JsonObject]:
    session = await source.open()
    state = (await source.states(1))[0]
    await session.reset(state)
    return session, state


async def test_calls_give_results_refusals_and_changes(source: SandboxSource) -> None:
    session, state = await opened(source)
    assert (await session.call("get_order", {"order_id": "W1"})).content == {"item": "item 1", "price": 1.0}
    assert (await session.call("get_order", {"order_id": "W9"})).error == "refused"
    assert (await session.call("get_order", {"id": "W9"})).error == "invalid_arguments"
    assert (await session.call("no_such", {})).error == "unknown_tool"
    assert await session.state_hash() == compute_state_digest(state)
    assert (await session.call("add_order", {"item": "tea"})).content == {"result": "N1"}
    snapshot = await session.snapshot()
    assert snapshot["orders"]["N1"] == {"item": "tea", "price": 1.0}
    assert await session.state_hash() == compute_state_digest(snapshot)
    refused = await session.call("set_price", {"order_id": "N1", "price": -1.0})
    assert (refused.error, refused.content) == ("refused", {"error": "a price must not be negative"})
    assert await session.snapshot() == snapshot
    await session.close()


async def test_initial_actions_of_an_environment_that_has_only_tools_are_calls(source: SandboxSource) -> None:
    session, _ = await opened(source)
    assert isinstance(session, Preparable)
    add = InitialAction(tool="add_order", arguments={"item": "tea"}, actor="assistant")
    assert await session.prepare([add]) is None
    assert (await session.snapshot())["orders"]["N1"] == {"item": "tea", "price": 1.0}
    assert str(await session.prepare([{**add, "tool": "new_id"}])).startswith("new_id: ")
    await session.close()


async def test_plays_do_not_see_each_other(source: SandboxSource) -> None:
    first, _ = await opened(source)
    second, _ = await opened(source)
    await first.call("set_price", {"order_id": "W1", "price": 7.0})
    assert (await second.call("get_order", {"order_id": "W1"})).content["price"] == 1.0
    assert (await first.call("get_order", {"order_id": "W1"})).content["price"] == 7.0
    await first.close()
    await second.close()


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ("spin", "timeout", "0.3 s of CPU time"),
        ("swallow", "timeout|crash", "."),
        ("regex", "timeout", "0.3 s of CPU time"),
        ("memory", "crash", "MemoryError"),
        ("recursion", "crash", "RecursionError"),
        ("exit", "crash", "SystemExit"),
        ("_exit", "crash", "."),
        ("nan", "output_schema", "NaN"),
        ("infinity", "output_schema", "NaN"),
        ("surrogate", "output_schema|crash", "."),
        ("bytes", "output_schema|crash", "."),
        ("cycle", "output_schema|crash", "."),
        ("deep", "output_schema|crash", "."),
        ("evil exception", "timeout|crash", "."),
    ],
)
async def test_misbehaviour_is_a_named_fault_and_the_rest_goes_on(how: str, kind: str, words: str) -> None:
    source = shop()
    bad, _ = await opened(source)
    good, _ = await opened(source)
    await good.call("set_price", {"order_id": "W1", "price": 5.0})
    with pytest.raises(EnvironmentFault, match=words) as caught:
        await bad.call("misbehave", {"how": how})
    assert caught.value.kind in kind.split("|")
    assert (await good.call("get_order", {"order_id": "W1"})).content["price"] == 5.0
    await bad.reset((await source.states(1))[0])
    assert (await bad.call("get_order", {"order_id": "W1"})).content["price"] == 1.0
    source.close()


async def test_a_long_call_in_c_is_ended_by_the_watchdog(source: SandboxSource) -> None:
    source.host.settings = source.host.settings.model_copy(update={"wall_seconds": 0.7})
    bad, _ = await opened(source)
    good, _ = await opened(source)
    await good.call("set_price", {"order_id": "W1", "price": 5.0})
    await good.call("add_order", {"item": "tea"})
    ended, later = await asyncio.gather(
        bad.call("misbehave", {"how": "spin in C"}), good.call("get_order", {"order_id": "N1"}), return_exceptions=True
    )
    assert isinstance(ended, EnvironmentFault)
    assert ended.kind == "timeout"
    assert not isinstance(later, BaseException)
    assert later.content["item"] == "tea"
    assert (await good.snapshot())["orders"]["W1"]["price"] == 5.0
    with pytest.raises(EnvironmentFault, match="reset the session"):
        await bad.call("get_order", {"order_id": "W1"})


async def test_a_null_is_no_nan(source: SandboxSource) -> None:
    session, _ = await opened(source)
    assert (await session.call("misbehave", {"how": "null"})).content == {"number": None}


async def test_large_results_are_refused() -> None:
    source = shop(result_bytes=10_000)
    session, _ = await opened(source)
    assert len((await session.call("misbehave", {"how": "large", "size": 9_000})).content["text"]) == 9_000
    with pytest.raises(EnvironmentFault, match="a result of 20011 bytes") as caught:
        await session.call("misbehave", {"how": "large", "size": 20_000})
    assert caught.value.kind == "limit"
    source.close()


async def test_arguments_that_are_no_json_are_the_callers_fault(source: SandboxSource) -> None:
    session, _ = await opened(source)
    assert (await session.call("get_order", {"order_id": 2**70})).error == "invalid_arguments"
    assert (await session.call("get_order", {"order_id": "\ud800"})).error == "invalid_arguments"


async def test_the_world_is_virtual_and_replays_exactly(source: SandboxSource) -> None:
    session, state = await opened(source)
    made = [(await session.call("stamp", {})).content for _ in range(3)]
    assert len({str(one) for one in made}) == 3
    again, _ = await opened(shop())
    await again.call("get_order", {"order_id": "W1"})
    assert [(await again.call("stamp", {})).content for _ in range(3)] == made
    await again.reset(state)
    assert (await again.call("stamp", {})).content == made[0]


async def test_a_killed_worker_is_replaced_and_its_plays_repeated(source: SandboxSource) -> None:
    sessions = [await opened(source) for _ in range(5)]
    for number, (session, _) in enumerate(sessions):
        await session.call("set_price", {"order_id": "W1", "price": float(number)})
        await session.snapshot()
        await session.call("stamp", {})
    before = [await session.state_hash() for session, _ in sessions]
    main = await source.host.main()
    os.kill(main.forked.pid, signal.SIGKILL) if source.host.settings.mode != "strict" else main.close()
    for session, _ in sessions:
        link = session.link  # type: ignore[attr-defined]
        if link._connection is not main and link._connection is not None:
            link._connection.close()
    await asyncio.sleep(0.05)
    assert [await session.state_hash() for session, _ in sessions] == before
    results = await asyncio.gather(*(session.call("get_order", {"order_id": "W1"}) for session, _ in sessions))
    assert [result.content["price"] for result in results] == [0.0, 1.0, 2.0, 3.0, 4.0]


async def test_a_killed_zygote_costs_nothing_either() -> None:
    source = shop()
    session, _ = await opened(source)
    await session.call("set_price", {"order_id": "W1", "price": 9.0})
    connection = session.link._connection  # type: ignore[attr-defined]
    for process in _zygotes.values():
        process._process.kill()
    for _ in range(2000):  # its worker ends with it, on a busy machine not at once
        if connection.lost is not None:
            break
        await asyncio.sleep(0.01)
    assert (await session.call("get_order", {"order_id": "W1"})).content["price"] == 9.0
    source.close()


async def test_more_processes_than_allowed_are_refused_in_words() -> None:
    source = shop(own_process=True, processes=3)
    sessions = [await source.open() for _ in range(4)]
    state = (await source.states(1))[0]
    for session in sessions[:3]:
        await session.reset(state)
    with pytest.raises(RunError, match=r"more than 3 plays with a process at a time: raise sandbox\.processes"):
        await sessions[3].reset(state)
    await sessions[0].close()
    await sessions[3].reset(state)
    source.close()


async def test_code_that_is_not_deterministic_is_noticed_when_it_is_repeated() -> None:
    source = shop(plays="shared")
    session, _ = await opened(source)
    other, _ = await opened(source)
    await other.call("misbehave", {"how": "count"})
    await session.call("misbehave", {"how": "count"})
    (await source.host.main()).close()
    with pytest.raises(EnvironmentFault, match="not deterministic"):
        await session.call("get_order", {"order_id": "W1"})
    source.close()


async def busy(session: Session) -> "asyncio.Task[ToolResult]":
    """Start a call, and wait until its worker is at work on it."""
    connection = session.link._connection  # type: ignore[attr-defined]
    call = asyncio.create_task(session.call("misbehave", {"how": "busy", "size": 3_000_000}))
    while not connection._frames:
        assert not call.done(), "the call was over before anybody saw it"
        await asyncio.sleep(0)
    return call


async def test_a_call_whose_worker_trajsmith_closes_is_made_again() -> None:
    source = shop()
    session, _ = await opened(source)
    await session.call("set_price", {"order_id": "W1", "price": 9.0})
    call = await busy(session)
    source.close()
    assert (await call).content == {"sum": sum(range(3_000_000))}
    assert (await session.call("get_order", {"order_id": "W1"})).content["price"] == 9.0
    assert source.host.kills == 0
    source.close()


@pytest.mark.parametrize("ticks", [0, 1, 2, 5])
async def test_a_session_that_opens_while_the_worker_is_closed_starts_in_the_next_one(ticks: int) -> None:
    source = shop()
    state = (await source.states(1))[0]
    sessions = [await source.open() for _ in range(4)]
    starting = [asyncio.create_task(session.reset(state)) for session in sessions]
    for _ in range(ticks):
        await asyncio.sleep(0)
    source.close()
    await asyncio.gather(*starting)
    calls = (session.call("get_order", {"order_id": "W1"}) for session in sessions)
    assert [result.content["price"] for result in await asyncio.gather(*calls)] == [1.0] * 4
    assert source.host.kills == 0
    source.close()


async def test_a_worker_that_is_closed_over_and_over_is_a_fault_with_a_name_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = shop()
    session, state = await opened(source)
    connect = source.host.connect

    async def closed() -> WorkerConnection:
        connection = await connect()
        connection.close()
        return connection

    monkeypatch.setattr(source.host, "connect", closed)
    with pytest.raises(EnvironmentFault, match="trajsmith closed its worker") as caught:
        await session.reset(state)
    assert caught.value.kind == "recycled"
    source.close()


async def test_an_environment_whose_workers_keep_dying_is_given_up() -> None:
    source = shop(kills=3)
    session, state = await opened(source)
    for _ in range(3):
        await session.reset(state)
        with pytest.raises(EnvironmentFault, match="its worker was lost") as lost:
            await session.call("misbehave", {"how": "_exit"})
        assert lost.value.kind == "crash"
    with pytest.raises(EnvironmentFault, match="given up for this run: 3 of its workers") as caught:
        await session.reset(state)
    assert caught.value.kind == "quarantine"
    source.close()


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("def broken(:\n", InputError, r"shop.py:1: SyntaxError"),
        ("\n\nraise ValueError('no\\nlicence')\n", InputError, r"shop.py:3: ValueError: no licence"),
        ("import not_there\n", InputError, "not_there"),
        ("while True:\n    pass\n", EnvironmentFault, "loading took more than 0.5 s of CPU time"),
        ("x = bytearray(4 << 30)\n", InputError, "MemoryError"),
        ("import os\nos._exit(3)\n", EnvironmentFault, "loading it ended the worker"),
        ("raise SystemExit(1)\n", InputError, "SystemExit"),
        ("import os\nos.fork()\n", InputError, "PermissionError|BlockingIOError"),
        ("open('/etc/passwd')\n", InputError, "PermissionError|FileNotFoundError"),
        ("import socket\nsocket.socket()\n", InputError, "."),
        ("print('hello')\n" + SHOP, None, "."),
    ],
)
@pytest.mark.parametrize("mode", ["default", "strict"])
async def test_files_that_misbehave_at_import(code: str, error: type[Exception] | None, words: str, mode: str) -> None:
    source = shop(code, load_seconds=0.5, mode=mode)
    if error is None:
        assert (await source.spec()).name == "shop"
    else:
        with pytest.raises(error, match=words):
            await source.spec()
    source.close()


async def test_a_thousand_plays_at_a_time(source: SandboxSource) -> None:
    count = 1000 if not source.host.own_process else 60
    state = (await source.states(1))[0]
    await source.spec()

    async def play(number: int) -> float:
        session = await source.open()
        await session.reset(state)
        await session.call("set_price", {"order_id": "W1", "price": float(number)})
        found = await session.call("get_order", {"order_id": "W1"})
        await session.close()
        return float(found.content["price"])

    assert await asyncio.gather(*(play(number) for number in range(count))) == [float(n) for n in range(count)]


def test_a_source_outlives_an_event_loop() -> None:
    source = shop()

    async def once() -> object:
        session, _ = await opened(source)
        return (await session.call("get_order", {"order_id": "W1"})).content

    assert asyncio.run(once()) == asyncio.run(once())
    source.close()


@pytest.mark.parametrize("how, name", [("blame the user", "InputError"), ("blame the run", "RunError")])
async def test_our_errors_raised_by_a_tool_are_faults_of_its_environment(
    source: SandboxSource, how: str, name: str
) -> None:
    session, state = await opened(source)
    with pytest.raises(EnvironmentFault, match=rf"shop\.misbehave: crash: {name}: not mine"):
        await session.call("misbehave", {"how": how})
    assert await session.state_hash() == compute_state_digest(state)
    await session.close()


@pytest.mark.parametrize("where", ["states", "load"])
async def test_our_errors_raised_outside_calls_name_the_environment(source: SandboxSource, where: str) -> None:
    blame, seed = (
        '__import__("trajsmith.records", fromlist=["InputError"]).InputError("not mine")\n',
        '        orders = {f"W{n}"',
    )
    source_text = SHOP.replace(seed, f"        raise {blame}{seed}") if where == "states" else f"{SHOP}raise {blame}"
    broken = shop(source_text)
    try:
        with pytest.raises((EnvironmentFault, InputError), match=r"shop(\.py:\d+)?: (crash: )?InputError: not mine"):
            await broken.states(1)
    finally:
        broken.close()
