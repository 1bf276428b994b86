"""Arguments put together from leaves: nested objects, rows of lists, and where each value is from."""

import random
from typing import Any

import pytest

from trajsmith.grounding.lessons import Lessons
from trajsmith.grounding.plan import ArgumentPlan, Option, assemble_arguments
from trajsmith.grounding.user_facts import iterate_leaves
from trajsmith.records import Composite, Constant, FromOutput, FromUser, GoldCall

SKU = FromOutput(call=0, path="$.sku")


def said(value: Any, known: str, weight: float = 1.0) -> Option:
    return Option(value, FromUser(known=known), weight)


@pytest.mark.parametrize(
    ("chosen", "arguments"),
    [
        pytest.param({"a": 1, "b": "x"}, {"a": 1, "b": "x"}, id="flat"),
        pytest.param({"a.b.c": 1, "a.b.d": 2}, {"a": {"b": {"c": 1, "d": 2}}}, id="objects"),
        pytest.param({"a[*].b": 1, "a[*].c": 2}, {"a": [{"b": 1, "c": 2}]}, id="one-row"),
        pytest.param({"a[*].b": 1, "a[1].b": 2}, {"a": [{"b": 1}, {"b": 2}]}, id="two-rows"),
        pytest.param({"a[*].b[*].c": 1, "a[1].b[*].c": 2}, {"a": [{"b": [{"c": 1}]}, {"b": [{"c": 2}]}]}, id="inner"),
        pytest.param({"a.b[*]": 1}, {"a": {"b": [1]}}, id="list-in-an-object"),
    ],
)
def test_assemble(chosen: dict[str, Any], arguments: dict[str, Any]) -> None:
    made = assemble_arguments({path: said(value, path) for path, value in chosen.items()})
    assert made.arguments == arguments
    assert set(made.provenance) == set(arguments)
    call = GoldCall(tool="t", arguments=made.arguments, provenance=made.provenance, effect="read")
    found = {source.known: value for _, source, value in iterate_leaves(call) if isinstance(source, FromUser)}
    assert found == chosen


def plan(most_rows: int) -> ArgumentPlan:
    options = {
        "lines[*].sku": [Option("A", SKU), Option("B", SKU)],
        "lines[*].count": [said(number, "count") for number in (1, 2, 3)],
        "kind": [Option("order", Constant())],
    }
    return ArgumentPlan("t", options, {}, [], 0.0, Lessons(), (), most_rows)


def test_rows_of_a_list_differ_and_have_keys_of_their_own() -> None:
    sizes = set()
    for seed in range(60):
        made = plan(3).draw(random.Random(seed))
        rows = made.arguments["lines"]
        sizes.add(len(rows))
        assert len({repr(row) for row in rows}) == len(rows)
        provenance = made.provenance["lines"]
        assert isinstance(provenance, Composite)
        assert set(provenance.leaves) == {f"lines[{n}].{name}" for n in range(len(rows)) for name in ("sku", "count")}
        known = [source.known for source in provenance.leaves.values() if isinstance(source, FromUser)]
        assert len(set(known)) == len(rows)
        assert made.provenance["kind"] == Constant()
    assert sizes == {1, 2, 3}


def test_one_row_where_no_more_are_wanted() -> None:
    assert all(len(plan(1).draw(random.Random(seed)).arguments["lines"]) == 1 for seed in range(20))


def test_what_failed_is_drawn_less_and_what_worked_more() -> None:
    lessons = Lessons()
    made = ArgumentPlan("t", {"x": [said(value, "x") for value in "abc"]}, {}, [], 0.0, lessons)
    lessons.record_failure("t", {"x": "a"})
    lessons.record_success("t", {"x": "b"})
    drawn = [made.draw(random.Random(seed)).arguments["x"] for seed in range(300)]
    assert drawn.count("b") > drawn.count("c") > drawn.count("a")


def test_a_plan_without_a_value_for_a_required_leaf_is_impossible() -> None:
    made = ArgumentPlan("t", {"x": [], "y": [said(1, "y")]}, {}, [], 0.0, Lessons())
    assert made.unmet == ["x"]
    assert not made.possible
