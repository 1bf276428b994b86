"""The dial, servers, coverage, and how chains hang together."""

import random
from collections import Counter
from statistics import mean

import pytest
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
    sample_across,
    sample_chains,
)
from trajsmith.toolgraph.chain_metrics import ChainShape, measure_chain
from trajsmith.toolgraph.settings import DIAL
from trajsmith.toolgraph.tool_usage import ToolUsage

HUBS, LEAVES = 3, 12


def link(number: int) -> ValueLink:
    return ValueLink(output=f"$.id{number}", input=f"id{number}", score=0.9)


def town(servers: int = 1) -> ToolGraph:
    """On every server: look-ups that need nothing, leaves that need one or two of their ids, and idle tools that leaves
    can help; weak edges from each server to the next."""
    tools, nodes, edges = [], [], {}
    for home in range(servers):
        name = f"city{home}"
        hubs = [tool(name, f"find_{number}", True) for number in range(HUBS)]
        leaves = [tool(name, f"leaf_{number}", number % 2 == 0) for number in range(LEAVES)]
        tools += [*hubs, *leaves, *(tool(name, f"idle_{number}", number % 2 == 0) for number in range(6))]
        for number, leaf in enumerate(leaves):
            for need in {number % HUBS, (number // HUBS) % HUBS}:
                node = ParameterNode(
                    tool=leaf.full_name, parameter=f"id{need}", kind="internal", required=True, evidence=("given",)
                )
                nodes.append(node)
                edges[hubs[need].full_name, leaf.full_name] = (3, link(need))
            edges[leaf.full_name, f"{name}.idle_{number % 6}"] = (2, link(9))
        edges[leaves[0].full_name, f"city{(home + 1) % servers}.leaf_1"] = (2, link(9))
    rows = (
        Edge(source=source, target=target, weight=weight, score=0.9, links=(way,), evidence=("schema",))
        for (source, target), (weight, way) in sorted(edges.items())
        if source != target
    )
    return ToolGraph(tools=tuple(tools), parameters=tuple(nodes), edges=tuple(rows))


def shapes(graph: ToolGraph, count: int = 150, **wanted: object) -> list[ChainShape]:
    index = GraphIndex(graph)
    sampler = Sampler(index, SampleSettings.model_validate({"length": (8, 8), **wanted}))
    return [measure_chain(index, *sampler.draw(random.Random(seed))) for seed in range(count)]


def average(found: list[ChainShape], what: str) -> float:
    return mean(getattr(shape, what) for shape in found)


# Shape


def test_the_shape_of_a_chain_is_counted_from_its_edges_and_dependencies() -> None:
    index = GraphIndex(town(), "city0")
    tools = ["find_0", "find_1", "leaf_1", "leaf_3", "leaf_6", "idle_1", "leaf_3"]
    sampler = Sampler(index, SampleSettings())
    assert measure_chain(index, tools, sampler.dependencies(tools)) == ChainShape(
        length=7,
        servers=1,
        strong=4,
        weak=1,
        independent=1,
        writes=4,
        branches=2,
        joins=3,
        repeats=1,
        open_needs=1,
    )


@pytest.mark.parametrize(
    ("knob", "counted"),
    [
        ("weak", "weak"),
        ("independent", "independent"),
        ("writes", "writes"),
        ("branching", "branches"),
        ("joins", "joins"),
        ("repeats", "repeats"),
    ],
)
def test_every_knob_turns_what_it_is_named_after(knob: str, counted: str) -> None:
    low, high = shapes(town(), **{knob: 0.0}), shapes(town(), **{knob: 0.9})
    assert average(high, counted) > average(low, counted) + 0.25
    assert {shape.open_needs for shape in (*low, *high)} == {0}


def test_the_dial_turns_length_servers_and_all_shares() -> None:
    easy, hard = (shapes(town(4), difficulty=level, length=(4, 12), servers=3) for level in (0.0, 1.0))
    assert {shape.length for shape in easy} == {4}
    assert average(hard, "length") > 11
    assert {shape.servers for shape in easy} == {1}
    assert average(hard, "servers") > 2.5
    for what in ("independent", "writes"):
        assert average(hard, what) / average(hard, "length") > average(easy, what) / average(easy, "length")


def test_what_is_set_by_hand_is_not_turned_by_the_dial() -> None:
    turned = SampleSettings(difficulty=0.5, weak=0.0, length=(2, 6), servers=5).turned()
    assert (turned.weak, turned.length, turned.servers) == (0.0, (4, 4), 3)
    assert turned.joins == sum(DIAL["joins"]) / 2


def test_a_chain_tells_how_it_was_drawn_and_nothing_that_was_left_open() -> None:
    assert SampleSettings().as_record() == {
        "method": "topology",
        "length": [6, 11],
        "max_depth": 3,
        "extra_prior": 0.1,
        "branches": 2,
    }
    assert SampleSettings(servers=2, weak=0.3).as_record().items() >= {"servers": 2, "weak": 0.3}.items()


# Servers


@pytest.mark.parametrize("most", [1, 2, 3])
def test_chains_touch_as_many_servers_as_they_may_and_no_more(most: int) -> None:
    found = {shape.servers for shape in shapes(town(5), servers=most)}
    assert found == set(range(1, most + 1))


def test_a_chain_across_servers_names_the_server_of_every_step() -> None:
    graph = town(3)
    chains = list(sample_across(graph, SampleSettings(count=30, length=(6, 6), servers=2), 5))
    assert [chain.index for chain in chains] == list(range(30))
    crossing = [chain for chain in chains if chain.servers is not None]
    assert crossing
    for chain in crossing:
        assert len(set(chain.servers)) == 2
        assert chain.environment == chain.servers[0]
        names = [f"{server}.{name}" for server, name in zip(chain.servers, chain.tools, strict=True)]
        assert set(names) <= graph.by_name.keys()
    assert all(
        f"{chain.environment}.{name}" in graph.by_name
        for chain in chains
        if chain.servers is None
        for name in chain.tools
    )
    assert chains == list(sample_across(graph, SampleSettings(count=30, length=(6, 6), servers=2), 5))


def test_chains_across_servers_take_the_states_of_their_first_server_in_turn() -> None:
    states = {f"city{home}": [f"s{home}a", f"s{home}b"] for home in range(2)}
    chains = list(sample_across(town(2), SampleSettings(count=20, length=(4, 4)), 1, states))
    assert {chain.state for chain in chains} == {state for found in states.values() for state in found}
    assert all(chain.state in states[chain.environment] for chain in chains)


def test_the_id_of_a_chain_on_one_server_is_what_it_was_before_chains_could_cross() -> None:
    made = {"index": 0, "environment": "e", "tools": ("a",), "dependencies": (), "state": "s", "sampler": {}, "seed": 1}
    chain = Chain.model_validate(made)
    assert "servers" not in chain.model_dump(exclude_none=True)
    assert chain.id != Chain.model_validate({**made, "servers": ("e",)}).id


def test_more_servers_than_there_are_change_nothing_for_one_environment() -> None:
    index = GraphIndex(town(), "city0")
    sampler = Sampler(index, SampleSettings(length=(8, 8), servers=4))
    assert {len(sampler.draw(random.Random(seed))[0]) for seed in range(50)} == {8}


def test_on_one_server_chains_start_where_the_shortest_has_room() -> None:
    small = tuple(tool("hamlet", f"idle_{number}", True) for number in range(3))
    graph = town(2)
    graph = graph.model_copy(update={"tools": (*small, *graph.tools)})
    homes = Counter(shape.length for shape in shapes(graph))
    assert homes == {8: 150}
    alone = ToolGraph(tools=small, parameters=(), edges=())
    assert {shape.length for shape in shapes(alone)} == {3}


def test_on_small_servers_chains_take_in_one_more_server_before_they_stay_short() -> None:
    hamlets = tuple(tool(f"hamlet{home}", f"idle_{number}", True) for home in range(9) for number in range(3))
    found = shapes(ToolGraph(tools=hamlets, parameters=(), edges=()), servers=3)
    assert {(shape.length, shape.servers) for shape in found} == {(8, 3)}


def test_only_some_servers_can_be_asked_for() -> None:
    chains = sample_across(town(3), SampleSettings(count=20, length=(3, 3)), 0, servers=["city1"])
    assert {chain.environment for chain in chains} == {"city1"}


# Coverage


def test_all_tools_and_most_edges_get_their_turn() -> None:
    index = GraphIndex(town(4))
    sampler = Sampler(index, SampleSettings(length=(6, 6)))
    for seed in range(4 * len(index.tools)):
        sampler.draw(random.Random(seed))
    assert sampler.used.keys() == set(index.tools)
    leaves = [count for name, count in sampler.used.items() if "find" not in name]
    assert max(leaves) <= 3 * min(leaves)
    assert len(sampler.chains.edges) > 0.7 * sum(len(found) for found in index.own_network.after)


def test_least_used_come_first_whatever_was_used_before() -> None:
    cover, rng = ToolUsage(range(40)), random.Random(0)
    for tool_number in (*range(40), *range(20), *range(10)):
        cover.use(tool_number)
    assert {cover.pick(rng, lambda one: True) for _ in range(300)} == set(range(20, 40))
    assert {cover.pick(rng, lambda one: True, skip=1) for _ in range(300)} == set(range(10, 20))
    assert cover.pick(rng, lambda one: one == 3) == 3
    assert cover.pick(rng, lambda one: False) is None
    cover.use(99)
    assert 99 not in cover.count


def test_a_look_up_is_known_by_its_verb_only_where_a_server_declares_nothing() -> None:
    silent = [
        tool("s", name, None) for name in ("get_thing", "delete_thing", "ThingFinder", "listThings", "setReadMode")
    ]
    loud = [tool("t", "get_thing", False), tool("t", "delete_thing", True)]
    index = GraphIndex(ToolGraph(tools=(*silent, *loud), parameters=(), edges=()))
    assert index.reads == {"s.get_thing", "s.listThings", "t.delete_thing"}


# Settings


def test_a_run_on_one_environment_ignores_the_limit_of_servers() -> None:
    wanted = SampleSettings(count=6, length=(4, 6), servers=3)
    samplers = {"city0": Sampler(GraphIndex(town(2), "city0"), wanted)}
    assert {chain.servers for chain in sample_chains(samplers, {"city0": ["s"]}, wanted, 1)} == {None}


def test_a_length_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(ValueError, match="the smaller number comes first"):
        SampleSettings(length=(5, 3))


def test_an_index_of_no_tools_says_so() -> None:
    with pytest.raises(InputError, match="no tool of this environment can be called"):
        Sampler(GraphIndex(town(), "nowhere"), SampleSettings())
