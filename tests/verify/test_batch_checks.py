"""A batch is made for all that are meant, once, and tried for nothing else; what was refused for another thing goes."""

from types import SimpleNamespace

import pytest

from trajsmith.records import FromOutput, GoldCall, Message
from trajsmith.verify.batch_checks import _check_members
from trajsmith.verify.pruning import _follows_question
from trajsmith.verify.verdicts import _find_telling_refusals


def cancel(order: str, ok: bool = True, message: int = 0) -> SimpleNamespace:
    return SimpleNamespace(tool="cancel_order", arguments={"order_id": order}, ok=ok, message=message)


def gold(order: str) -> GoldCall:
    source = FromOutput(call=0, path="$.result[*].order_id")
    return GoldCall(tool="cancel_order", arguments={"order_id": order}, provenance={"order_id": source}, effect="write")


@pytest.mark.parametrize(
    ("events", "passed"),
    [
        ([cancel("O1"), cancel("O2"), cancel("O3", ok=False)], True),
        ([cancel("O1"), cancel("O2"), cancel("O3", ok=False), cancel("O9", ok=False)], False),
        ([cancel("O1"), cancel("O2"), cancel("O3", ok=False), cancel("O2", ok=False)], False),
        ([cancel("O1"), cancel("O3", ok=False)], False),
    ],
    ids=["right", "tried_for_another", "tried_again", "one_missing"],
)
def test_a_batch_is_tried_for_nothing_else(events, passed):
    perturbation = SimpleNamespace(tool="cancel_order", refused=[SimpleNamespace(call=gold("O3"))])
    assert _check_members(events, perturbation, [gold("O1"), gold("O2")]).passed is passed


def test_a_refused_call_about_another_thing_tells_nothing():
    events = [cancel("O1", ok=False), cancel("O2", ok=False), cancel("O1")]
    twist = SimpleNamespace(turn=0, tool="cancel_order", tempting=(gold("O1"),), refused=(), refusal="")
    trajectory = SimpleNamespace(events=events, turns=[SimpleNamespace(start=0, stop=1)])
    assert _find_telling_refusals(SimpleNamespace(twist=twist), trajectory) == {0}
    twist.refusal = "try again"
    assert _find_telling_refusals(SimpleNamespace(twist=twist), trajectory) == {0, 1}, "any call may be made to fail"


@pytest.mark.parametrize(("more", "pointless"), [(True, False), (False, True)])
def test_an_answer_is_not_pointless_where_the_next_call_follows_it(more, pointless):
    def say(role: str, calls: bool = False) -> Message:
        return SimpleNamespace(role=role, tool_calls=[1] if calls else None)

    messages = [say("user"), say("assistant"), say("user"), say("assistant", True), say("tool")]
    messages += [say("assistant", True), say("tool")] if more else []
    messages += [say("assistant")]
    events = [cancel("O2", ok=False, message=3)] + ([cancel("O1", message=5)] if more else [])
    trajectory = SimpleNamespace(messages=messages, events=events, turns=[SimpleNamespace(start=0)])
    assert _follows_question(trajectory, {0}) is pointless
