"""Sampling: every required internal parameter has an earlier producer, whatever the graph looks like."""

import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import tool

from trajsmith.records import Chain, InputError
from trajsmith.toolgraph import (
    Edge,
    GraphIndex,
    ParameterNode,
    Sampler,
    SampleSettings,
    ToolGraph,
    ValueLink,
    compute_closure_depths,
    sample_chains,
)
from trajsmith.toolgraph.settings import SAMPLERS

steady = settings(deadline=None, derandomize=True, max_examples=50)

ENTITIES = ("order", "customer", "parcel", "invoice", "ticket", "coupon")
METHODS = SAMPLERS.names()


@dataclass(frozen=True)
class Told:
    """A tool that needs and gives ids of entities: required, optional, and in its result."""

    name: str
    needs: list[str]
    wants: list[str]
    gives: list[str]
    reads: bool


def spec(name: str, needs: list[str], wants: list[str], gives: list[str], reads: bool) -> Told:
    return Told(name, needs, wants, gives, reads)


def index_of(*tools: Told) -> GraphIndex:
    """The graph in which an id goes from everybody who gives it to everybody who takes it; no matcher has a say."""
    nodes = [
        ParameterNode(tool=f"s.{one.name}", parameter=f"{what}_id", kind="internal", required=need, evidence=("told",))
        for one in tools
        for need, found in ((True, one.needs), (False, one.wants))
        for what in found
    ]
    edges = []
    for source in tools:
        for target in tools:
            both = sorted(set(source.gives) & {*target.needs, *target.wants} - {*source.needs, *source.wants})
            if both and source is not target:
                links = tuple(ValueLink(output=f"$.rows[*].{what}_id", input=f"{what}_id", score=1.0) for what in both)
                weight = 3 if set(both) & set(target.needs) else 2
                ends = {"source": f"s.{source.name}", "target": f"s.{target.name}"}
                edges.append(Edge(**ends, weight=weight, score=1.0, links=links, evidence=("told",)))
    specs = tuple(tool("s", one.name, one.reads) for one in tools)
    return GraphIndex(ToolGraph(tools=specs, parameters=tuple(nodes), edges=tuple(edges)), "s")


def entities(most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(ENTITIES), max_size=most, unique=True)


@st.composite
def graphs(draw: st.DrawFn) -> GraphIndex:
    """Random environments; one tool at least needs nothing."""
    tools = [spec("tool_0", [], [], draw(entities(2)), True)]
    for number in range(1, draw(st.integers(1, 14))):
        tools.append(
            spec(f"tool_{number}", draw(entities(2)), draw(entities(1)), draw(entities(3)), draw(st.booleans()))
        )
    return index_of(*tools)


SETTINGS = st.builds(
    lambda low, more, depth, extra, branches: SampleSettings(
        length=(low, low + more), max_depth=depth, extra_prior=extra, branches=branches
    ),
    st.integers(1, 6),
    st.integers(0, 6),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.1, 1.0]),
    st.integers(1, 3),
)
SEEDS = st.integers(0, 2**32)


@steady
@given(graphs(), SETTINGS, SEEDS)
def test_every_required_internal_parameter_has_an_earlier_producer(
    index: GraphIndex, settings: SampleSettings, seed: int
) -> None:
    sampler = Sampler(index, settings)
    for number in range(4):
        tools, dependencies = sampler.draw(random.Random(seed + number))
        given_to = {(found.consumer, found.parameter) for found in dependencies}
        missing = [
            (tool, parameter)
            for step, tool in enumerate(tools)
            for parameter in index.needs[tool]
            if (step, parameter) not in given_to
        ]
        assert missing == []
        for found in dependencies:
            assert found.producer < found.consumer
            links = [
                link.output
                for source, link in index.producers[tools[found.consumer], found.parameter]
                if source == tools[found.producer]
            ]
            assert found.output in links


@steady
@given(graphs(), SETTINGS, SEEDS)
def test_no_tool_stands_twice_and_no_chain_is_too_long(index: GraphIndex, settings: SampleSettings, seed: int) -> None:
    sampler = Sampler(index, settings)
    for number in range(4):
        tools, _ = sampler.draw(random.Random(seed + number))
        assert len(tools) == len(set(tools))
        assert 1 <= len(tools) <= settings.length[1]
        assert set(tools) <= sampler.depths.keys()


@steady
@given(st.integers(1, 14), SETTINGS, SEEDS)
def test_where_nothing_is_needed_chains_are_long_enough(count: int, settings: SampleSettings, seed: int) -> None:
    sampler = Sampler(index_of(*(spec(f"tool_{number}", [], [], [], True) for number in range(count))), settings)
    tools, dependencies = sampler.draw(random.Random(seed))
    assert len(tools) >= min(settings.length[0], count)
    assert dependencies == []


@steady
@given(graphs(), SETTINGS, SEEDS, st.sampled_from(METHODS))
def test_the_same_seed_draws_the_same_chain(
    index: GraphIndex, settings: SampleSettings, seed: int, method: str
) -> None:
    settings = settings.model_copy(update={"method": method})
    first, second = (Sampler(index, settings).draw(random.Random(seed)) for _ in range(2))
    assert first == second


@steady
@given(graphs(), SETTINGS, SEEDS, st.sampled_from([method for method in METHODS if method != "topology"]))
def test_the_walks_to_compare_with_end_and_keep_their_length(
    index: GraphIndex, settings: SampleSettings, seed: int, method: str
) -> None:
    sampler = Sampler(index, settings.model_copy(update={"method": method}))
    tools, _ = sampler.draw(random.Random(seed))
    assert len(tools) >= min(settings.length[0], len(sampler.usable))
    assert set(tools) <= set(index.tools)
    if method.startswith("envfactory"):
        assert len(tools) == len(set(tools))
    if not method.startswith("envfactory") or settings.max_depth == 0:
        assert len(tools) <= settings.length[1], "only the priors of the last tool may go beyond it"


def test_the_papers_walk_leaves_a_circle_of_two() -> None:
    """Two tools that only lead to one another must not hold the walk for ever."""
    pair = (spec("a", [], ["order"], ["parcel"], True), spec("b", [], ["parcel"], ["order"], True))
    index = index_of(*pair, spec("c", [], [], [], True), spec("d", [], [], [], True))
    assert {target for target, _ in index.successors["a"]} == {"b"}
    sampler = Sampler(index, SampleSettings(length=(4, 4), method="envfactory"))
    for seed in range(10):
        assert sorted(sampler.draw(random.Random(seed))[0]) == ["a", "b", "c", "d"]


def test_weighted_walks_prefer_strong_edges() -> None:
    index = index_of(
        spec("start", [], [], ["order"], True),
        spec("strong", ["order"], [], [], True),
        spec("weak", [], ["order"], [], True),
    )
    assert dict(index.successors["start"]) == {"strong": 3, "weak": 2}
    drawn: dict[str, list[str]] = {}
    for method in ("random_walk", "weighted_walk"):
        sampler = Sampler(index, SampleSettings(length=(2, 2), method=method))  # type: ignore[arg-type]
        chains = [sampler.draw(random.Random(seed))[0] for seed in range(1500)]
        drawn[method] = [second for first, second in chains if first == "start"]
    shares = {method: found.count("strong") / len(found) for method, found in drawn.items()}
    assert 0.44 < shares["random_walk"] < 0.56
    assert 0.54 < shares["weighted_walk"] < 0.66


# Depths


def ladder(rungs: int) -> list[Told]:
    """Each tool needs what the one before gives."""
    first = spec("rung_0", [], [], [ENTITIES[0]], True)
    return [first, *(spec(f"rung_{n}", [ENTITIES[n - 1]], [], [ENTITIES[n]], True) for n in range(1, rungs))]


def test_depths_count_the_levels_of_priors() -> None:
    assert compute_closure_depths(index_of(*ladder(5))) == {f"rung_{number}": number for number in range(5)}


def test_a_circle_of_needs_has_no_depth() -> None:
    circle = (spec("a", ["order"], [], ["parcel"], True), spec("b", ["parcel"], [], ["order"], True))
    assert compute_closure_depths(index_of(*circle, spec("free", [], [], [], True))) == {"free": 0}


@pytest.mark.parametrize(("depth", "usable"), [(0, 1), (1, 2), (3, 4)])
def test_tools_beyond_the_depth_limit_are_left_out(depth: int, usable: int) -> None:
    sampler = Sampler(index_of(*ladder(5)), SampleSettings(max_depth=depth, length=(5, 5)))
    assert sampler.usable == [f"rung_{number}" for number in range(usable)]
    assert sampler.draw(random.Random(0))[0] == sampler.usable


def test_an_environment_in_which_nothing_can_be_called() -> None:
    circle = (spec("a", ["order"], [], ["parcel"], True), spec("b", ["parcel"], [], ["order"], True))
    with pytest.raises(InputError, match="every one needs an id that no tool gives"):
        Sampler(index_of(*circle), SampleSettings())


def test_a_guess_is_no_producer() -> None:
    """An edge of weight 1 says that nothing better was found; a chain must not rely on it."""
    index = index_of(spec("find", [], [], ["order"], True), spec("pay", ["order"], [], [], False))
    nodes = (ParameterNode(tool="s.pay", parameter="order_id", kind="internal", required=True, evidence=("told",)),)
    link = ValueLink(output="$.text", input="order_id", score=0.1)
    edge = Edge(source="s.find", target="s.pay", weight=1, score=0.1, links=(link,), evidence=("schema",))
    graph = ToolGraph(tools=tuple(index.specs.values()), parameters=nodes, edges=(edge,))
    assert Sampler(GraphIndex(graph, "s"), SampleSettings()).usable == ["find"]
    assert Sampler(index, SampleSettings()).usable == ["find", "pay"]


def test_tools_that_were_used_least_come_first() -> None:
    sampler = Sampler(
        index_of(*(spec(f"tool_{n}", [], [], [], True) for n in range(12))), SampleSettings(length=(3, 3))
    )
    rng = random.Random(1)
    for _ in range(24):
        sampler.draw(rng)
    assert max(sampler.used.values()) <= 2 * min(sampler.used.values())
    assert len(sampler.used) == 12


# Whole runs


def chains_of(seed: int, **more: Any) -> list[Chain]:
    settings = SampleSettings(count=12, length=(2, 4), **more)
    samplers = {name: Sampler(index_of(*ladder(4)), settings) for name in ("shop", "bank")}
    return list(sample_chains(samplers, {"shop": ["s1", "s2"], "bank": ["b1"]}, settings, seed))


def test_environments_and_states_take_turns() -> None:
    chains = chains_of(1)
    assert [chain.environment for chain in chains] == ["bank", "shop"] * 6
    assert [chain.state for chain in chains if chain.environment == "shop"] == ["s1", "s2"] * 3
    assert [chain.index for chain in chains] == list(range(12))
    assert len({chain.id for chain in chains}) == 12


def test_a_run_is_the_same_for_the_same_seed() -> None:
    assert chains_of(1) == chains_of(1)
    assert [chain.seed for chain in chains_of(1)] != [chain.seed for chain in chains_of(2)]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_whole_run_and_is_written_down(method: str) -> None:
    chains = chains_of(1, method=method)
    assert len(chains) == 12
    assert {chain.sampler["method"] for chain in chains} == {method}
