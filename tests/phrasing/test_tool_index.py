"""Search over tools: the ranking is BM25, the same for every order of the tools, and nothing fits words of no tool."""

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.phrasing import ToolIndex
from trajsmith.records import ToolSpec

TOOLS = [tool for name in ("bank", "retail", "travel") for tool in ENVIRONMENTS.get(name).describe().tools]


def name_found(query, tools=TOOLS, count=5):
    return [tool.name for tool in ToolIndex(tools).search(query, count)]


def test_the_tool_that_does_it_comes_first():
    assert name_found("cancel an order")[0] == "cancel_order"
    assert name_found("freezing a card")[0] == "freeze_card"
    assert "list_standing_orders" in name_found("show standing orders")


def test_the_order_of_the_tools_changes_nothing():
    unique = list({tool.name: tool for tool in TOOLS}.values())
    for query in ("list orders", "pay money", "card", "cancel the hotel stay"):
        assert name_found(query, unique) == name_found(query, unique[::-1])


def test_words_of_no_tool_find_nothing_and_the_number_is_kept():
    assert name_found("zebra crossing") == [] and name_found("") == []
    assert len(name_found("list the customer", count=3)) == 3


def test_rare_words_and_names_count_more():
    def build(name, description):
        return ToolSpec(server="s", name=name, description=description, input_schema={"type": "object"})

    tools = [
        build("get_item", "Get an item."),
        build("get_invoice", "Get it."),
        build("get_user", "Get an invoice user."),
    ]
    assert name_found("get invoice", tools) == ["get_invoice", "get_user", "get_item"]
