"""`open_environment`, `check_environment` and `build_graph`."""

import asyncio
import sys
from types import ModuleType

import networkx as nx
import pytest

import trajsmith as ts
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.records import InputError

COUNTER = '''
from trajsmith import Environment, EnvironmentState, ToolError, tool

class CounterState(EnvironmentState):
    value: int = 0

class Counter(Environment[CounterState]):
    """A counter."""

    @classmethod
    def seed_state(cls, size, seed):
        return CounterState(now="2026-05-04T09:00:00", seed=seed, value=seed % 7)

    @tool(effect="write")
    def add(self, name: int) -> int:
        """Add to the counter.

        Args:
            name: Number to add.
        """
        if name < 0:
            raise ToolError("only positive numbers")
        self.state.value += name
        return self.state.value
'''


def test_calls_refusals_state_and_reset():
    with ts.open_environment("retail") as retail:
        assert retail.tools == ENVIRONMENTS.get("retail").describe().tools
        before = retail.state
        customer = next(iter(before["customers"].values()))
        found = retail.call("find_customer_by_email", email=customer["email"])
        assert found.ok and found.content["customer_id"] == customer["customer_id"]
        refused = retail.call("get_order", order_id="none")
        assert not refused.ok and refused.error == "refused"
        assert retail.call("get_order").error == "invalid_arguments" and retail.call("fly").error == "unknown_tool"
        order = next(one for one in before["orders"].values() if one["status"] == "pending")
        assert retail.call("cancel_order", order_id=order["order_id"], reason="no_longer_needed").ok
        assert retail.state != before
        assert retail.reset() == before and retail.state == before
        assert retail.reset(seed=3) != before


def test_a_file_runs_in_the_sandbox_and_inside_a_running_loop(tmp_path):
    file = tmp_path / "counter.py"
    file.write_text(COUNTER)

    async def inside():
        with ts.open_environment(file, state={"now": "2026-05-04T09:00:00", "value": 40}) as counter:
            return counter.call("add", name=2).content, counter.call("add", name=-1).content, counter.state["value"]

    assert asyncio.run(inside()) == ({"result": 42}, {"error": "only positive numbers"}, 42)


def test_a_class_without_a_file_can_be_opened(monkeypatch):
    monkeypatch.setitem(sys.modules, "notebook", ModuleType("notebook"))
    module: dict = {"__name__": "notebook"}
    exec(COUNTER, module)
    with ts.open_environment(module["Counter"], seed=5) as counter:
        assert counter.call("add", name=1).ok


def test_a_closed_session_and_unknown_names_are_one_line():
    session = ts.open_environment("bank")
    session.close()
    session.close()
    with pytest.raises(InputError, match="the session of bank is closed"):
        session.call("list_accounts")
    with pytest.raises(InputError, match=r"no environment named 'shop' in the library.* there are: .*retail"):
        ts.open_environment("shop")


def test_check_environment_reports_a_broken_one(tmp_path):
    file = tmp_path / "counter.py"
    file.write_text(COUNTER.replace("self.state.value += name", "1 / name"))
    report = ts.check_environment(file, seconds=60)
    assert report.environment == "counter" and report.score < 1
    assert any(finding.tool == "add" and "ZeroDivisionError" in finding.seen for finding in report.findings)


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS.names()))
def test_the_checker_finds_nothing_in_the_library(name):
    report = ts.check_environment(name)
    assert report.findings == () and report.score == 1


def test_the_graph_of_an_environment_is_a_networkx_graph():
    graph = ts.build_graph("retail")
    view = graph.to_networkx()
    assert type(view) is nx.MultiDiGraph
    assert {kind for _, kind in view.nodes(data="node_type")} == {"tool", "parameter"}
    assert view.nodes["retail.get_order(order_id)"]["kind"] == "internal"
    assert view.edges["retail.get_order(order_id)", "retail.get_order", 0] == {"edge_type": "input", "required": True}
    tools = graph.to_networkx(parameters=False)
    assert set(tools) == {tool.full_name for tool in graph.tools}
    assert set(tools.edges) == {(edge.source, edge.target) for edge in graph.edges}
    assert "retail.find_customer_by_email" in nx.ancestors(tools, "retail.cancel_order")
    assert nx.has_path(view, "retail.list_customer_orders", "retail.get_order(order_id)")


def test_a_graph_of_tools_that_are_given():
    specs = ENVIRONMENTS.get("bank").describe().tools
    listed = [tool.model_dump(mode="json") for tool in specs]
    assert ts.build_graph(listed) == ts.build_graph(specs) == ts.build_graph(ENVIRONMENTS.get("bank"))
    with pytest.raises(InputError, match=r"tools\[0\]: no tool: .*server"):
        ts.build_graph([{"name": "x"}])
