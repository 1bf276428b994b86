"""Calls in one message: only those that commute, as execution showed, and only with what the agent has."""

import pytest
from playing import Stage

from trajsmith.environments import NativeSession
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.grounding.rewind import make_rewindable
from trajsmith.querygen.parallel_calls import find_parallel_calls
from trajsmith.querygen.partition import raise_joins
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector
from trajsmith.usersim import Dialogue, PlaySettings, ScriptedAgent, ScriptedUser


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    return Stage("retail", tmp_path_factory.mktemp("parallel"))


@pytest.fixture
def shop():
    cls = ENVIRONMENTS.get("retail")
    return NativeSession(cls, cls.describe()), cls.seed_state("small", 1).model_dump(mode="json")


async def run(session, state, *calls):
    """The calls as gold calls, executed one after the other."""
    await session.reset(state)
    gold = []
    for tool, arguments in calls:
        before = await session.state_hash()
        result = await session.call(tool, arguments)
        assert result.ok, result.text
        effect = "write" if await session.state_hash() != before else "read"
        provenance = {name: FromUser(known=name) for name in arguments}
        gold.append(
            GoldCall(tool=tool, arguments=arguments, provenance=provenance, effect=effect, result=result.content)
        )
    return gold


def pending_orders(state):
    return [key for key, order in state["orders"].items() if order["status"] == "pending"]


async def test_writes_that_commute_may_go_together(shop):
    session, state = shop
    first, second, *_ = pending_orders(state)
    calls = [
        ("set_gift_message", {"order_id": first, "message": "Hi"}),
        ("cancel_order", {"order_id": second, "reason": "ordered_by_mistake"}),
    ]
    gold = await run(session, state, *calls)
    assert {call.effect for call in gold} == {"write"}
    assert await find_parallel_calls([gold], state, session, 1) == [(0, 0)]


async def test_writes_whose_order_matters_never_do(shop):
    """The second message replaces the first one, so that another order leads to another state."""
    session, state = shop
    order = pending_orders(state)[0]
    calls = [("set_gift_message", {"order_id": order, "message": text}) for text in ("Hi", "Hello")]
    assert await find_parallel_calls([await run(session, state, *calls)], state, session, 1) == [()]


async def test_a_read_that_sees_a_write_never_goes_with_it(shop):
    session, state = shop
    order = pending_orders(state)[0]
    calls = [("cancel_order", {"order_id": order, "reason": "ordered_by_mistake"}), ("get_order", {"order_id": order})]
    assert await find_parallel_calls([await run(session, state, *calls)], state, session, 1) == [()]


async def test_reads_between_writes_stay_together_where_the_writes_do_not_commute(shop):
    session, state = shop
    order = pending_orders(state)[0]
    calls = [
        ("list_coupons", {}),
        ("search_products", {}),
        ("set_gift_message", {"order_id": order, "message": "Hi"}),
        ("set_gift_message", {"order_id": order, "message": "Hello"}),
    ]
    assert await find_parallel_calls([await run(session, state, *calls)], state, session, 1) == [(0, 0, 1, 2)]


async def test_what_needs_a_result_comes_later(shop):
    session, state = shop
    gold = await run(
        session,
        state,
        ("search_products", {}),
        ("list_coupons", {}),
        ("get_product", {"sku": next(iter(state["products"]))}),
    )
    source = FromOutput(call=0, path="$.result[*].sku", selectors=(Selector(rows="$.result", how="only"),))
    gold[2] = gold[2].model_copy(update={"provenance": {"sku": source}})
    assert await find_parallel_calls([gold], state, session, 1) == [(0, 0, 1)]


async def test_the_agent_calls_together_only_what_commutes(stage):
    """Each message of several calls is executed in reverse: the same results and the same state come out."""
    seen = 0
    for task in await stage.tasks(30):
        trajectory = await stage.play(task)
        assert (await stage.verdict(task, trajectory)).accepted
        session = make_rewindable(stage.session())
        await session.reset(stage.state)
        messages = {}
        for event in trajectory.events:
            messages.setdefault(event.message, []).append(event)
        for events in messages.values():
            mark = await session.checkpoint()
            for event in reversed(events):
                result = await session.call(event.tool, event.arguments, event.actor)
                assert result.hash == event.result_hash
            backwards = await session.state_hash()
            await session.rollback(mark)
            for event in events:
                await session.call(event.tool, event.arguments, event.actor)
            assert await session.state_hash() == backwards
            seen += len(events) > 1
    assert seen >= 5


async def test_an_agent_that_makes_one_call_at_a_time_makes_the_same_calls(stage):
    for task in await stage.tasks(30):
        together = await stage.play(task)
        agent = ScriptedAgent(task, stage.wording, 0)
        agent.parallel = 0.0
        user = ScriptedUser(task, stage.wording, 0)
        alone = await Dialogue(stage.spec, task, stage.state, stage.session(), agent, user, PlaySettings(), 0).play()
        assert all(len(message.tool_calls or ()) < 2 for message in alone.messages)
        assert sorted(event.tool for event in alone.events) == sorted(event.tool for event in together.events)
        assert together.final_state == alone.final_state


def test_steps_are_joined_only_if_they_are_about_the_same_thing():
    def call(tool, **things):
        provenance = {
            name: FromOutput(call=producer, path=f"$.result[*].{name}") for name, (producer, _) in things.items()
        }
        arguments = {name: value for name, (_, value) in things.items()}
        return GoldCall(tool=tool, arguments=arguments, provenance=provenance, effect="read")

    me = {"customer_id": (0, "C1")}
    calls = [
        call("find"),
        call("list", **me),
        call("open", line_id=(1, "L1"), **me),
        call("move", line_id=(1, "L1"), **me),
        call("close", line_id=(1, "L2"), **me),
    ]
    steps = ["", "", "open", "move", "close"]
    kinds = {"line_id"}
    assert raise_joins(calls, steps, {"close": 0.1}, 0.5, kinds) == {"move": 0.5, "close": 0.1}
    assert raise_joins(calls, steps, {"close": 0.1}, 0.5)["close"] == 0.5, "without a phrasebook all ids are things"
    alike = [*calls[:3], calls[2], calls[4]]
    assert raise_joins(alike, steps, {}, 0.5, kinds) == {"move": 0.0}, "two wishes for one tool"
    waits = [*calls[:3], call("move", line_id=(2, "L1"), **me), calls[4]]
    assert raise_joins(waits, steps, {}, 0.5, kinds) == {}, "it needs what the last one returns"
