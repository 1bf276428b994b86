"""Which gold calls were made: reads in any order, writes in theirs, masked arguments with any value."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trajsmith.records import CallEvent, FromUser, GoldCall, JsonObject
from trajsmith.verify import compute_trajectory_match
from trajsmith.verify.matching import match_calls

Step = tuple[str, JsonObject]
steady = settings(deadline=None, derandomize=True, max_examples=100)


def gold(step: Step, effect: Any = "write", mask: tuple[str, ...] = ()) -> GoldCall:
    name, arguments = step
    provenance = {key: FromUser(known=f"k.{key}") for key in arguments}
    return GoldCall(tool=name, arguments=arguments, provenance=provenance, effect=effect, mask=mask)


def event(step: Step, ok: bool = True) -> CallEvent:
    return CallEvent(actor="assistant", tool=step[0], arguments=step[1], ok=ok, result_hash="", message=0)


A, B, C = (("t", {"n": number}) for number in range(3))


@pytest.mark.parametrize(
    ("wanted", "made", "share"),
    [
        pytest.param([A, B, C], [A, B, C], 1.0, id="same"),
        pytest.param([A, B, C], [A, C, B, C], 1.0, id="more-between"),
        pytest.param([A, B, C], [C, B, A], 0.3333, id="backwards"),
        pytest.param([A, B], [B], 0.5, id="one-missing"),
        pytest.param([A, A], [A], 0.5, id="once-is-not-twice"),
        pytest.param([A], [], 0.0, id="nothing-made"),
        pytest.param([], [A], 1.0, id="nothing-wanted"),
        pytest.param([("t", {"a": 1, "b": 2})], [("t", {"b": 2, "a": 1})], 1.0, id="order-of-arguments"),
        pytest.param([("t", {"a": 1})], [("u", {"a": 1})], 0.0, id="another-tool"),
    ],
)
def test_writes(wanted: list[Step], made: list[Step], share: float) -> None:
    assert compute_trajectory_match([gold(step) for step in wanted], [event(step) for step in made]) == share


def test_reads_may_come_in_any_order() -> None:
    wanted = [gold(A, "read"), gold(B), gold(C, "read")]
    assert compute_trajectory_match(wanted, [event(C), event(A), event(B)]) == 1.0


def test_the_order_of_writes_did_not_matter_where_the_state_is_gold() -> None:
    assert compute_trajectory_match([gold(A), gold(B)], [event(B), event(A)]) == 0.5
    assert compute_trajectory_match([gold(A), gold(B)], [event(B), event(A)], same_state=True) == 1.0


def test_refused_calls_do_not_count() -> None:
    assert compute_trajectory_match([gold(A), gold(B)], [event(A, ok=False), event(B)]) == 0.5


def test_masked_arguments_may_have_any_value() -> None:
    wanted = [gold(("list", {"limit": 5, "who": "me"}), "read", ("limit",))]
    assert compute_trajectory_match(wanted, [event(("list", {"limit": 9, "who": "me"}))]) == 1.0
    assert compute_trajectory_match(wanted, [event(("list", {"who": "me"}))]) == 1.0
    assert compute_trajectory_match(wanted, [event(("list", {"limit": 5, "who": "you"}))]) == 0.0


def test_ids_that_were_given_out_go_by_their_names() -> None:
    wanted = [gold(("pay", {"to": ["P4"], "at": {"id": "P1"}}))]
    made = [event(("pay", {"to": ["P9"], "at": {"id": "P1"}}))]
    assert compute_trajectory_match(wanted, made) == 0.0
    assert compute_trajectory_match(wanted, made, {"P4": "new:x"}, {"P9": "new:x"}) == 1.0


STEPS = st.lists(st.tuples(st.sampled_from(["t", "u"]), st.fixed_dictionaries({"n": st.integers(0, 2)})), max_size=6)


@steady
@given(STEPS, STEPS, st.booleans())
def test_every_event_makes_one_call_at_most(wanted: list[Step], made: list[Step], same: bool) -> None:
    found = match_calls([gold(step) for step in wanted], [event(step) for step in made], same_state=same)
    assert len(set(found.values())) == len(found) <= min(len(wanted), len(made))
    assert all(wanted[index] == made[place] for index, place in found.items())
    if not same:
        assert sorted(found.values()) == [found[index] for index in sorted(found)]


@steady
@given(STEPS, STEPS)
def test_more_calls_never_match_less(wanted: list[Step], made: list[Step]) -> None:
    calls = [gold(step) for step in wanted]
    events = [event(step) for step in made]
    assert compute_trajectory_match(calls, events + [event(step) for step in wanted]) == 1.0
    assert compute_trajectory_match(calls, events[:-1]) <= compute_trajectory_match(calls, events)
