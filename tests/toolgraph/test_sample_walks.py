"""The samplers of the papers, as they are written."""

import random
from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from random_graphs import random_graph, tool

from trajsmith.toolgraph import Edge, GraphIndex, ParameterNode, Sampler, SampleSettings, ToolGraph, ValueLink
from trajsmith.toolgraph.baseline_samplers import EnvFactorySampler


def graph_of(edges: dict[tuple[str, str], int], needs: dict[str, list[str]] | None = None) -> ToolGraph:
    """Tools a, b, c ...; every edge gives the target's parameter named after its source."""
    names = sorted({name for pair in edges for name in pair})
    nodes = [
        ParameterNode(tool=f"s.{name}", parameter=one, kind="internal", required=True, evidence=("given",))
        for name, wanted in (needs or {}).items()
        for one in wanted
    ]
    rows = tuple(
        Edge(
            source=f"s.{source}",
            target=f"s.{target}",
            weight=weight,
            score=1.0,
            links=(ValueLink(output="$.id", input=source, score=1.0),),
            evidence=("schema",),
        )
        for (source, target), weight in sorted(edges.items())
    )
    return ToolGraph(tools=tuple(tool("s", name, True) for name in names), parameters=tuple(nodes), edges=rows)


def draws(graph: ToolGraph, count: int = 400, **wanted: object) -> list[list[str]]:
    sampler = Sampler(GraphIndex(graph, "s"), SampleSettings.model_validate(wanted))
    return [sampler.draw(random.Random(seed))[0] for seed in range(count)]


LADDER = graph_of({("a", "b"): 3, ("b", "c"): 3, ("c", "d"): 3}, {"b": ["a"], "c": ["b"], "d": ["c"]})


def test_the_papers_text_puts_priors_before_what_they_are_for() -> None:
    chains = draws(LADDER, method="envfactory", length=(4, 4), extra_prior=0.0)
    assert {tuple(chain) for chain in chains} == {("a", "b", "c", "d")}


def test_the_pseudocode_puts_the_start_before_its_own_priors_and_priors_before_theirs() -> None:
    chains = draws(LADDER, method="envfactory_pseudocode", length=(4, 4))
    from_c = [chain for chain in chains if chain[0] == "c"]
    assert from_c
    assert Counter(tuple(chain[1:3]) for chain in from_c).most_common(1)[0][0] == ("b", "a")


def test_beyond_the_depth_limit_the_papers_sampler_lets_tools_in_with_nothing_to_call_them_with() -> None:
    shallow = draws(LADDER, method="envfactory", length=(2, 2), max_depth=1, extra_prior=0.0)
    assert ["c", "d"] in shallow
    assert ["c", "d"] not in draws(LADDER, method="topology", length=(2, 2), max_depth=1)


@pytest.mark.parametrize("extra", [0.0, 0.1, 1.0])
def test_a_valid_parameter_gets_one_more_prior_with_the_probability_asked_for(extra: float) -> None:
    """`use` follows `first`, which gives what it needs; half of the extra priors are `second`, which gives it too. A
    third of the chains with `first` in front began with `use`, and got `first` as its prior."""
    way = (ValueLink(output="$.id", input="key", score=1.0),)
    graph = graph_of({("first", "use"): 3, ("second", "use"): 3}, {"use": ["key"]})
    graph = graph.model_copy(update={"edges": tuple(msgspec.structs.replace(edge, links=way) for edge in graph.edges)})
    chains = draws(graph, 3000, method="envfactory", length=(2, 2), extra_prior=extra, branches=1)
    after = [chain[1] for chain in chains if chain[0] == "first"]
    assert after.count("second") / len(after) == pytest.approx(extra / 2 * 2 / 3, abs=0.03)


@pytest.mark.parametrize(("most", "ends"), [(1, {1}), (3, {1, 2, 3})])
def test_one_to_k_neighbours_follow(most: int, ends: set[int]) -> None:
    """After the hub come its queued neighbours, which lead nowhere; then the walk starts anew, at `z` if ever."""
    star = graph_of({("hub", name): 2 for name in "abcdef"} | {("z", "hub"): 2})
    queued = set()
    for seed in range(300):
        walks = EnvFactorySampler(GraphIndex(star, "s").network, SampleSettings(branches=most))
        hub = walks.network.number["hub"]
        rng = random.Random(seed)
        queued.add(len(walks._neighbours(rng, hub, rng.randint(1, most))))
    assert queued == ends


def test_a_random_walk_follows_edges_and_leaves_dead_ends_anywhere() -> None:
    edges = {("a", "b"): 3, ("b", "c"): 2, ("a", "c"): 2}
    chains = draws(graph_of(edges), method="random_walk", length=(3, 3))
    steps = Counter(pair for chain in chains for pair in pairwise(chain))
    assert {pair for pair in steps if pair[0] != "c"} == edges.keys()
    assert {target for source, target in steps if source == "c"} == {"a", "b", "c"}


def test_a_weighted_walk_goes_by_3_2_and_1_and_starts_where_nothing_is_relied_on() -> None:
    edges = {("a", "b"): 3, ("a", "c"): 2, ("d", "b"): 2}
    chains = draws(graph_of(edges), 3000, method="weighted_walk", length=(2, 2))
    assert {chain[0] for chain in chains} == {"a", "d"}
    after = Counter(second for first, second in chains if first == "a")
    shares = {name: count / after.total() for name, count in after.items()}
    assert shares == pytest.approx({"b": 3 / 6, "c": 2 / 6, "d": 1 / 6}, abs=0.05)


def test_a_weighted_walk_takes_weak_edges_both_ways_and_strong_ones_forwards() -> None:
    edges = {("a", "b"): 3, ("b", "c"): 2, ("c", "d"): 3}
    chains = draws(graph_of(edges), 4000, method="weighted_walk", length=(6, 6))
    steps = Counter(pair for chain in chains for pair in pairwise(chain) if pair[0] == "c")
    shares = {target: count / steps.total() for (_, target), count in steps.items()}
    assert shares == pytest.approx({"d": 3 / 6, "b": 2 / 6, "a": 1 / 6}, abs=0.03)


def test_a_prior_that_was_just_chosen_makes_the_next_parameter_valid() -> None:
    """Line 19 of Algorithm 2: `use` needs two values, and each of `one` and `two` gives both."""
    graph = graph_of({("one", "use"): 3, ("two", "use"): 3}, {"use": ["p", "q"]})
    ways = tuple(ValueLink(output="$.id", input=name, score=1.0) for name in ("p", "q"))
    graph = graph.model_copy(update={"edges": tuple(msgspec.structs.replace(edge, links=ways) for edge in graph.edges)})
    walks = EnvFactorySampler(GraphIndex(graph, "s").network, SampleSettings(extra_prior=0.0))
    use = walks.network.number["use"]
    assert {len(walks._priors(random.Random(seed), {}, use, 0)) for seed in range(50)} == {1}


@pytest.mark.parametrize("method", ["envfactory", "envfactory_pseudocode", "random_walk", "weighted_walk"])
def test_walks_keep_their_length_and_their_tools_on_any_graph(method: str) -> None:
    for seed in range(60):
        graph = random_graph(seed, most=15)
        names = {spec.full_name for spec in graph.tools}
        if len(names) < 4:
            continue
        index = GraphIndex(graph)
        if not any(depth <= 3 for depth in index.network.depths):
            continue
        sampler = Sampler(index, SampleSettings.model_validate({"method": method, "length": (4, 4)}))
        tools, _ = sampler.draw(random.Random(seed))
        assert set(tools) <= names
        assert len(tools) >= min(4, len(sampler.usable))
        if method.startswith("envfactory"):
            assert len(set(tools)) == len(tools)
        else:
            assert len(tools) <= 4
