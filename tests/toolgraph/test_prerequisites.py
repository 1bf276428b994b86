"""What must be called before a tool can be called, and chains that cover all edges."""

import random

import pytest

from trajsmith import build_graph
from trajsmith.records import InputError
from trajsmith.toolgraph import GraphIndex, Sampler, SampleSettings, find_prerequisites

INDEX = GraphIndex(build_graph("retail"), "retail")


def test_what_a_tool_needs_is_told_level_by_level() -> None:
    first, *others = find_prerequisites(INDEX, "cancel_order")
    assert (first.tool, first.parameter, first.depth) == ("cancel_order", "order_id", 0)
    assert first.givers[0] == "list_customer_orders"
    assert (others[0].tool, others[0].parameter, others[0].depth) == ("list_customer_orders", "customer_id", 1)
    assert find_prerequisites(INDEX, "find_customer_by_email") == []


def test_an_unknown_tool_is_said() -> None:
    with pytest.raises(InputError, match="no tool 'cancel_all'"):
        find_prerequisites(INDEX, "cancel_all")


def test_coverage_goes_all_edges_in_few_closed_chains() -> None:
    edges = {pair for pair, weight in INDEX.weights.items() if weight >= 2}
    needed = {}
    for method in ("coverage", "topology"):
        sampler = Sampler(INDEX, SampleSettings.model_validate({"method": method, "length": (6, 6)}))
        open_edges, count = set(edges), 0
        while open_edges and count < 400:
            chain, dependencies = sampler.draw(random.Random(count))
            for place, tool in enumerate(chain):
                filled = {row.parameter for row in dependencies if row.consumer == place}
                assert set(INDEX.needs.get(tool, ())) <= filled
                open_edges -= {(before, tool) for before in chain[:place]}
            count += 1
        needed[method] = count
        assert not open_edges, method
    assert needed["coverage"] < needed["topology"]
