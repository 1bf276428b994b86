"""Whatever the graph: what a chain needs is in it, nothing stands twice, and the same seed gives the same chain."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import callable_ones, random_graph, tool

from trajsmith.records import InputError
from trajsmith.toolgraph import (
    Edge,
    GraphIndex,
    ParameterNode,
    Sampler,
    SampleSettings,
    ToolGraph,
    ValueLink,
    compute_closure_depths,
)
from trajsmith.toolgraph.chain_draft import PartialChain
from trajsmith.toolgraph.chain_metrics import measure_chain
from trajsmith.toolgraph.topology_sampler import TopologySampler

ROOT = Path(__file__).parents[2]
SEEDS = st.integers(0, 2**32)
PER_EXAMPLE = 100
"""Graphs of one example: hypothesis looks for the seed, plain loops make 10,000 graphs affordable."""

WAYS = (
    {},
    {"extra_prior": 1.0},
    {"max_depth": 1},
    {"branches": 4},
    {"difficulty": 0.8},
    {"independent": 0.5, "weak": 0.5, "writes": 0.5},
    {"branching": 0.9, "joins": 0.9},
)


def open_needs(graph: ToolGraph, tools: list[str]) -> list[tuple[str, str]]:
    """Required internal parameters of a chain that no earlier tool gives, by the graph's own rows; a guess
    (weight 1) gives nothing."""
    gives = {(edge.source, edge.target, link.input) for edge in graph.edges if edge.weight >= 2 for link in edge.links}
    needs = [(node.tool, node.parameter) for node in graph.parameters if node.kind == "internal" and node.required]
    return [
        (tool, parameter)
        for step, tool in enumerate(tools)
        for name, parameter in needs
        if name == tool and not any((earlier, tool, parameter) in gives for earlier in tools[:step])
    ]


def sampler_of(graph: ToolGraph, seed: int, **more) -> Sampler | None:
    rng = random.Random(seed)
    low = rng.randint(1, 6)
    wanted = SampleSettings(length=(low, low + rng.randint(0, 5)), **more)
    try:
        return Sampler(GraphIndex(graph), wanted)
    except InputError:
        return None


@settings(deadline=None, derandomize=True, max_examples=100)
@given(SEEDS)
def test_what_a_chain_needs_is_in_it_in_ten_thousand_graphs(seed: int) -> None:
    for number in range(PER_EXAMPLE):
        graph = random_graph(seed + number)
        sampler = sampler_of(graph, seed + number, **WAYS[number % len(WAYS)])
        if sampler is None:
            assert callable_ones(graph) == set() or number % len(WAYS) == 2
            continue
        tools, dependencies = sampler.draw(random.Random(seed))
        assert open_needs(graph, tools) == []
        assert measure_chain(sampler.index, tools, dependencies).open_needs == 0
        assert len(set(tools)) == len(tools)
        assert 1 <= len(tools) <= sampler.settings.length[1]


@settings(deadline=None, derandomize=True, max_examples=30)
@given(SEEDS, st.integers(1, 3))
def test_it_holds_across_servers_and_within_the_limit(seed: int, most: int) -> None:
    for number in range(20):
        graph = random_graph(seed + number, servers=4, most=16)
        sampler = sampler_of(graph, seed + number, servers=most, **WAYS[number % len(WAYS)])
        if sampler is None:
            continue
        for again in range(3):
            tools, dependencies = sampler.draw(random.Random(seed + again))
            assert open_needs(graph, tools) == []
            assert len(set(tools)) == len(tools)
            assert measure_chain(sampler.index, tools, dependencies).servers <= most


@settings(deadline=None, derandomize=True, max_examples=40)
@given(SEEDS)
def test_depths_are_those_of_the_obvious_way(seed: int) -> None:
    for number in range(20):
        graph = random_graph(seed + number, servers=2)
        assert compute_closure_depths(GraphIndex(graph)).keys() == callable_ones(graph)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(SEEDS)
def test_a_chain_is_as_long_as_asked_where_nothing_stands_against_it(seed: int) -> None:
    """With a depth limit that never bites, every callable tool fits in; only the closure's size can shorten a chain."""
    for number in range(20):
        graph = random_graph(seed + number)
        free = [name for name, depth in compute_closure_depths(GraphIndex(graph)).items() if depth == 0]
        if len(free) < 3:
            continue
        sampler = Sampler(GraphIndex(graph), SampleSettings(length=(3, 3), max_depth=99))
        assert len(sampler.draw(random.Random(seed))[0]) == 3


@settings(deadline=None, derandomize=True, max_examples=30)
@given(SEEDS)
def test_repeats_stand_only_where_they_are_asked_for_and_are_callable_too(seed: int) -> None:
    graph = random_graph(seed)
    sampler = sampler_of(graph, seed, repeats=0.5)
    if sampler is not None:
        tools, dependencies = sampler.draw(random.Random(seed))
        assert open_needs(graph, tools) == []
        assert measure_chain(sampler.index, tools, dependencies).repeats == len(tools) - len(set(tools))


PRINTS = """
import random
from random_graphs import random_graph
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings
for wanted in ({}, {"difficulty": 0.7}):
    index = GraphIndex(random_graph(11, servers=3, most=40))
    sampler = Sampler(index, SampleSettings(length=(3, 9), servers=2, **wanted))
    for seed in range(20):
        print(sampler.draw(random.Random(seed))[0])
"""


def test_another_process_with_other_string_hashes_draws_the_same() -> None:
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    said = [
        subprocess.run(
            [sys.executable, "-c", PRINTS],
            env={**os.environ, "PYTHONHASHSEED": salt, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for salt in ("1", "2")
    ]
    assert said[0].count("tool_") > 100
    assert said[0] == said[1]


def test_a_chain_is_never_drawn_for_a_need_that_only_others_servers_meet() -> None:
    for seed in range(300):
        graph = random_graph(seed, servers=3)
        sampler = sampler_of(graph, seed)
        if sampler is None:
            continue
        tools, dependencies = sampler.draw(random.Random(seed))
        shape = measure_chain(sampler.index, tools, dependencies)
        assert (shape.servers, shape.open_needs) == (1, 0)


def test_a_tool_that_does_not_fit_leaves_the_chain_as_it_was() -> None:
    """Its first prior is in already when the second turns out to have no room."""
    ways = [ValueLink(output="$.id", input=name, score=1.0) for name in ("a", "b")]
    nodes = [
        ParameterNode(tool="s.use", parameter=name, kind="internal", required=True, evidence=("told",)) for name in "ab"
    ]
    edges = [
        Edge(source=f"s.{way.input}", target="s.use", weight=3, score=1.0, links=(way,), evidence=("told",))
        for way in ways
    ]
    tools = tuple(tool("s", name, True) for name in ("a", "b", "use"))
    index = GraphIndex(ToolGraph(tools=tools, parameters=tuple(nodes), edges=tuple(edges)), "s")
    topology = TopologySampler(index.network, SampleSettings(length=(2, 2)))
    for limit, added in ((2, []), (3, ["a", "b", "use"])):
        draft = PartialChain(index.network, limit, 1)
        assert topology._closure(random.Random(0), draft, index.network.number["use"], 0) is bool(added)
        assert [index.tools[one] for one in draft.chain] == added
        assert (draft.inside, sum(draft.homes.values()), draft.pending) == (set(draft.chain), len(added), 0)


def test_an_index_of_nothing_callable_says_so() -> None:
    graph = next(graph for graph in map(random_graph, range(500)) if not callable_ones(graph))
    with pytest.raises(InputError, match="every one needs an id that no tool gives"):
        Sampler(GraphIndex(graph), SampleSettings())


@pytest.mark.parametrize(("extra", "producers"), [(0.0, 0), (1.0, 50)])
def test_a_parameter_that_may_be_left_out_gets_a_producer_as_often_as_asked(extra: float, producers: int) -> None:
    """The files of one project: `project_id` of `list_files` is optional, and `list_projects` gives it."""
    node = ParameterNode(
        tool="s.list_files", parameter="project_id", kind="internal", required=False, evidence=("a foreign key",)
    )
    link = ValueLink(output="$.result[*].project_id", input="project_id", score=1.0)
    edge = Edge(
        source="s.list_projects", target="s.list_files", weight=3, score=1.0, links=(link,), evidence=("schema",)
    )
    graph = ToolGraph(
        tools=(tool("s", "list_projects", True), tool("s", "list_files", True)), parameters=(node,), edges=(edge,)
    )
    found = 0
    for seed in range(50):
        sampler = TopologySampler(GraphIndex(graph, "s").network, SampleSettings(extra_prior=extra))
        sampler.use(sampler.network.names.index("list_projects"))  # so that the files are drawn first
        names = [sampler.network.names[number] for number in sampler.draw(random.Random(seed), 2)]
        found += names == ["list_projects", "list_files"]
    assert found == producers
