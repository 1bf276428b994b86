"""What the benchmark of many environments counts in gold chains, and the page that it writes."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "environments_at_scale.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("environments_at_scale", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def call(effect, value, **origin):
    provenance = {"order_id": origin} if origin else {}
    return {"effect": effect, "arguments": {"order_id": value}, "provenance": provenance}


LIST = call("read", None)
FOUND = call("write", "ORD-1", kind="output", call=0)
MADE = [call("write", None), call("write", "ORD-9", kind="output", call=0)]
TOLD = call("write", "ORD-1", kind="user", known="x")


@pytest.mark.parametrize(
    ("query", "calls", "look_up", "says"),
    [
        ("Cancel the order for the lamp.", [LIST, FOUND], 1, 0),
        ("Cancel order ORD-1.", [LIST, FOUND], 0, 1),
        ("Cancel order ORD-12.", [LIST, FOUND], 1, 0),
        ("Cancel ORD-1.", [TOLD], 0, 1),
        ("Make an order and cancel it.", MADE, 0, 0),
        ("Show my orders.", [LIST], 0, 0),
    ],
    ids=["found", "named", "longer_word", "told", "made", "list"],
)
def test_a_look_up_is_needed_where_nobody_says_the_identifier(benchmark, query, calls, look_up, says):
    counts = benchmark.count_look_ups(iter([{"turns": [{"query": query, "gold_calls": calls}]}]))
    assert counts == {"tasks": 1, "look_up": look_up, "says_identifier": says}


def test_the_page_has_a_line_for_each_accepted_environment(benchmark):
    shop = {"name": "shop", "group": "orders", "tools": 12, "rules": 5, "score": 0.987, "accepted": True}
    page = benchmark.render_page([shop, {**shop, "name": "desk", "accepted": False}], {})
    assert "| shop | orders | 12 | 5 | 0.99 | - |" in page and "desk" not in page
    page = benchmark.render_page([shop], {"shop": {"accepted": 34, "chains": 36}})
    assert "| 34 (36) |" in page
