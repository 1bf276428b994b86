"""When a list may be shorter than what there is."""

import pytest

from trajsmith.grounding import is_extreme_certain, is_list_cut
from trajsmith.records import ToolSpec

ROWS = [{"price": price} for price in (1.0, 2.0, 3.0)]


def tool(description="", **parameters):
    schema = {"type": "object", "properties": parameters}
    return ToolSpec(server="shop", name="search", description=description, input_schema=schema)


@pytest.mark.parametrize(
    ("spec", "arguments", "around", "cut"),
    [
        pytest.param(tool("List orders."), {}, {}, False, id="nothing said"),
        pytest.param(tool("List orders, at most 3."), {}, {}, True, id="as many as the description allows"),
        pytest.param(tool("List orders, at most 8."), {}, {}, False, id="fewer than the description allows"),
        pytest.param(tool("List slots of at most 3 hours."), {}, {}, False, id="a bound of something else"),
        pytest.param(tool(limit={"type": "integer"}), {"limit": 3}, {}, True, id="as many as asked for"),
        pytest.param(tool(limit={"type": "integer", "default": 3}), {}, {}, True, id="as many as by default"),
        pytest.param(tool(limit={"type": "integer"}), {"limit": 5}, {}, False, id="fewer than asked for"),
        pytest.param(tool(offset={"type": "integer"}), {"offset": 2}, {}, False, id="an offset is no limit"),
        pytest.param(tool(), {}, {"total": 9}, True, id="a total above the rows"),
        pytest.param(tool(), {}, {"total": 3}, False, id="a total that all rows reach"),
        pytest.param(tool(), {}, {"next_cursor": "abc"}, True, id="a next page"),
        pytest.param(tool(), {}, {"next_cursor": None, "has_more": False}, False, id="no next page"),
        pytest.param(None, {}, {"has_more": True}, True, id="unknown tool"),
    ],
)
def test_a_list_is_cut(spec, arguments, around, cut):
    assert is_list_cut(spec, arguments, {"result": ROWS, **around}, "$.result") is cut


def test_the_first_row_of_a_sorted_list_is_its_extreme():
    prices = [row["price"] for row in ROWS]
    sorted_tool = tool("List products, cheapest first, at most 3.")
    assert is_extreme_certain(sorted_tool, prices, 1.0)
    assert not is_extreme_certain(sorted_tool, prices, 3.0)
    assert not is_extreme_certain(sorted_tool, [2.0, 1.0, 3.0], 2.0)
    assert not is_extreme_certain(tool("List products, at most 3."), prices, 1.0)
