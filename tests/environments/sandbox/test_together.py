"""Many plays at a time: in one message, from synchronous code, and check functions in workers of their own."""

import subprocess
import sys

import pytest
from shop import shop

from trajsmith.environments.blocking import BackgroundLoop, BlockingSession, call_all
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_program import NativeSession
from trajsmith.environments.sandbox.batching import call_batch
from trajsmith.environments.sandbox.checks import SandboxedCheck
from trajsmith.environments.session import ToolResult
from trajsmith.records import EnvironmentFault, InputError


async def test_calls_together_are_what_they_are_alone() -> None:
    source = shop()
    state = (await source.states(1))[0]
    sessions = [await source.open() for _ in range(40)]
    for session in sessions[:-1]:
        await session.reset(state)
    bank = NativeSession(ENVIRONMENTS.get("bank"), ENVIRONMENTS.get("bank").describe())
    outcomes = await call_batch(
        [(session, "set_price", {"order_id": "W1", "price": float(n)}) for n, session in enumerate(sessions[:37])]
        + [(sessions[37], "misbehave", {"how": "spin"}), (sessions[38], "get_order", {"order_id": 2**70})]
        + [(sessions[39], "get_order", {"order_id": "W1"}), (bank, "no_such", {})]
    )
    assert [outcome.content["price"] for outcome in outcomes[:37]] == [float(n) for n in range(37)]  # type: ignore[union-attr]
    assert isinstance(outcomes[37], EnvironmentFault)
    assert outcomes[37].kind == "timeout"
    assert isinstance(outcomes[38], ToolResult)
    assert outcomes[38].error == "invalid_arguments"
    for outcome in outcomes[39:]:
        assert isinstance(outcome, EnvironmentFault)
        assert "before reset" in str(outcome)
    assert (await sessions[5].snapshot())["orders"]["W1"]["price"] == 5.0
    source.close()


async def test_one_call_together_is_a_call() -> None:
    source = shop(wall_seconds=0.7)
    session = await source.open()
    await session.reset((await source.states(1))[0])
    (outcome,) = await call_batch([(session, "set_price", {"order_id": "W1", "price": 5.0})])
    assert isinstance(outcome, ToolResult) and outcome.content["price"] == 5.0  # type: ignore[call-overload, index]
    (outcome,) = await call_batch([(session, "misbehave", {"how": "spin in C"})])
    assert isinstance(outcome, EnvironmentFault) and outcome.kind == "timeout"
    assert await call_batch([]) == []
    source.close()


TIMER = """
from trajsmith.environments.sandbox.serve import Timer

timer = Timer()
timer.install()
timer.start(0.02)
timer.stop()
for _ in range(5000):
    sum(range(1000))
timer.start(0.05)
try:
    while True:
        pass
except BaseException as error:
    print(type(error).__name__)
"""


def test_a_limit_that_ended_interrupts_nothing_and_the_next_one_holds() -> None:
    done = subprocess.run([sys.executable, "-c", TIMER], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("CallTimeout\n", "")


async def test_a_worker_lost_over_one_call_costs_the_others_nothing() -> None:
    source = shop(wall_seconds=0.7)
    state = (await source.states(1))[0]
    sessions = [await source.open() for _ in range(10)]
    for number, session in enumerate(sessions):
        await session.reset(state)
        await session.call("set_price", {"order_id": "W1", "price": float(number)})
    how = ["spin in C" if number == 4 else "null" for number in range(10)]
    outcomes = await call_batch([(s, "misbehave", {"how": h}) for s, h in zip(sessions, how, strict=True)])
    assert [isinstance(outcome, EnvironmentFault) for outcome in outcomes] == [h == "spin in C" for h in how]
    assert (await sessions[9].snapshot())["orders"]["W1"]["price"] == 9.0
    source.close()


def test_synchronous_code_has_sessions_too() -> None:
    background, source = BackgroundLoop(), shop()
    try:
        sessions = [BlockingSession.open(background, source) for _ in range(20)]
        state = background.run(source.states(1))[0]
        for session in sessions:
            session.reset(state)
        found = call_all(background, [(session, "add_order", {"item": str(n)}) for n, session in enumerate(sessions)])
        assert all(isinstance(one, ToolResult) and one.content == {"result": "N1"} for one in found)
        assert sessions[3].snapshot()["orders"]["N1"]["item"] == "3"
        assert sessions[3].state_hash() != sessions[4].state_hash()
        assert sessions[3].call("get_order", {"order_id": "N1"}).content["item"] == "3"
        for session in sessions:
            session.close()
    finally:
        background.run(_closed(source))
        background.close()


async def _closed(source: object) -> None:
    source.close()  # type: ignore[attr-defined]


CHECK = """
def paid(initial_state, final_state, answer):
    if answer == "crash":
        raise KeyError("paid")
    if answer == "spin":
        while True:
            pass
    if answer == "maybe":
        return "maybe"
    if answer == "mark":
        final_state["seen"] = True
    return final_state["paid"] > initial_state["paid"]
"""


async def test_a_check_from_outside_gives_a_verdict_or_says_that_it_cannot_tell() -> None:
    check = SandboxedCheck("paid", CHECK, "paid")
    assert await check.verdict({"paid": 1}, {"paid": 2}, None) is True
    assert await check.verdict({"paid": 2}, {"paid": 2}, None) is False
    for answer, kind in (("crash", "crash"), ("spin", "timeout"), ("maybe", "output_schema"), ("mark", "state")):
        with pytest.raises(EnvironmentFault) as caught:
            await check.verdict({"paid": 1}, {"paid": 2}, answer)
        assert caught.value.kind == kind
    check.close()


async def test_a_check_whose_source_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match="paid: its code has no function 'unpaid'"):
        await SandboxedCheck("paid", CHECK, "unpaid").verdict({}, {}, None)
    with pytest.raises(InputError, match=r"paid\.py:1: SyntaxError"):
        await SandboxedCheck("paid", "def (", "paid").verdict({}, {}, None)
