"""Cutting chains into turns: every call once, in order, one to five a turn."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajsmith.querygen.partition import LONGEST_TURN, find_goals, partition_calls, raise_joins
from trajsmith.records import FromOutput, GoldCall


def call(effect="read", uses=()):
    sources = {f"p{producer}": FromOutput(call=producer, path="$.x") for producer in uses}
    return GoldCall(tool="t", arguments=dict.fromkeys(sources, "v"), provenance=sources, effect=effect)


@st.composite
def chains(draw):
    made = []
    for index in range(draw(st.integers(1, 14))):
        uses = draw(st.sets(st.integers(0, index - 1), max_size=2)) if index else ()
        made.append(call(draw(st.sampled_from(["read", "write"])), uses))
    return made


@given(chains(), st.integers(0, 100), st.floats(1, 5))
def test_every_call_is_in_one_turn_of_one_to_five(calls, seed, mean):
    cuts = partition_calls(calls, random.Random(seed), mean)
    assert [index for start, stop in cuts for index in range(start, stop)] == list(range(len(calls)))
    assert all(1 <= stop - start <= LONGEST_TURN for start, stop in cuts)
    assert cuts == partition_calls(calls, random.Random(seed), mean)


@given(chains())
def test_a_turn_asks_for_its_writes_and_for_reads_that_nothing_in_it_uses(calls):
    goals = find_goals(calls, 0, len(calls))
    used = {source.call for made in calls for source in made.provenance.values()}
    assert goals == [index for index, made in enumerate(calls) if made.effect == "write" or index not in used]
    assert goals, "the last call is always a goal"


@pytest.mark.parametrize("mean", [1.0, 2.0, 4.0])
def test_the_mean_is_aimed_at(mean):
    lengths = []
    for seed in range(40):
        first = call(uses=[0])  # all are about the same thing
        cuts = partition_calls([first for _ in range(12)], random.Random(seed), mean)
        lengths += [stop - start for start, stop in cuts]
    assert abs(sum(lengths) / len(lengths) - mean) < 1.1


def test_wishes_that_share_nothing_are_not_put_into_one_message():
    for seed in range(20):
        apart = [call("write"), call("write"), call("write")]
        assert partition_calls(apart, random.Random(seed), 2.6) == [(0, 1), (1, 2), (2, 3)]


def test_two_wishes_for_one_tool_are_never_one_message():
    calls = [call("write"), call("write"), call("write").model_copy(update={"tool": "other"})]
    joins = raise_joins(calls, ("first", "second", "third"), {"first": 0.0, "second": 0.9, "third": 0.9}, 0.15)
    assert joins == {"first": 0.0, "second": 0.0, "third": 0.9}
