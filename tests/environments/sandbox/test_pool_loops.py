"""Event loops and the sandbox: the loop goes on while Python starts, and two loops do not end each other's plays."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from shop import shop

from trajsmith.environments.blocking import BackgroundLoop
from trajsmith.environments.sandbox import host
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.sandbox.zygote_process import ZygoteProcess
from trajsmith.records import InputError, RunError

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the sandbox needs Linux")


@pytest.fixture
def no_zygotes() -> Iterator[None]:
    """As at the start of a program."""
    kept = dict(host._zygotes)
    host._zygotes.clear()
    yield
    for process in host._zygotes.values():
        process.close()
    host._zygotes.clear()
    host._zygotes.update(kept)


async def order(source: SandboxSource) -> object:
    session = await source.open()
    await session.reset((await source.states(1))[0])
    found = await session.call("get_order", {"order_id": "W1"})
    await session.close()
    return found.content


@pytest.mark.usefixtures("no_zygotes")
async def test_the_loop_goes_on_while_the_sandbox_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting waits for what only another task of this loop does: a loop that stood still would never do it."""
    allowed, waited = threading.Event(), ZygoteProcess.await_ready

    def held(self: ZygoteProcess) -> None:
        assert allowed.wait(30), "the loop stood still"
        waited(self)

    monkeypatch.setattr(ZygoteProcess, "await_ready", held)
    source = shop()
    asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(allowed.set))
    assert (await source.spec()).name == "shop"
    source.close()


@pytest.mark.usefixtures("no_zygotes")
async def test_sources_that_start_at_the_same_time_share_the_zygote() -> None:
    sources = [shop() for _ in range(4)]
    found = await asyncio.gather(*map(order, sources))
    assert found == [{"item": "item 1", "price": 1.0}] * 4
    assert len(host._zygotes) == 1
    for source in sources:
        source.close()


@pytest.mark.usefixtures("no_zygotes")
async def test_everybody_who_waits_is_told_why_the_sandbox_does_not_start() -> None:
    sources = [shop(imports=("no_such_module_here",)) for _ in range(3)]
    found = await asyncio.gather(*(source.spec() for source in sources), return_exceptions=True)
    assert [type(one) for one in found] == [InputError] * 3
    assert {"no_such_module_here" in str(one) for one in found} == {True}


def test_a_loop_that_is_open_but_idle_hands_the_source_over() -> None:
    source, first, second = shop(), asyncio.new_event_loop(), asyncio.new_event_loop()
    try:
        for loop in (first, second, first, second):
            assert loop.run_until_complete(order(source)) == {"item": "item 1", "price": 1.0}
        source.close()
    finally:
        first.close()
        second.close()


def test_a_source_that_a_running_loop_uses_is_refused_to_another_one() -> None:
    source, background = shop(), BackgroundLoop()
    try:
        assert background.run(order(source)) == {"item": "item 1", "price": 1.0}
        with pytest.raises(RunError, match="shop: another running event loop uses it; open a source of its own"):
            asyncio.run(source.states(1))
        assert background.run(order(source)) == {"item": "item 1", "price": 1.0}
    finally:
        source.close()
        background.close()


def test_a_source_that_was_closed_is_free_for_another_loop() -> None:
    source, background = shop(), BackgroundLoop()
    background.run(order(source))
    source.close()
    assert asyncio.run(order(source)) == {"item": "item 1", "price": 1.0}
    source.close()
    background.close()
