"""A shop counter, for dialogues that were recorded elsewhere."""

from trajsmith.environments.native import Environment, EnvironmentState, StateModel, tool
from trajsmith.records import ToolError


class Order(StateModel):
    order_id: str
    status: str


class CounterState(EnvironmentState):
    orders: dict[str, Order]


class Counter(Environment[CounterState]):
    """A shop counter."""

    domain = "test/counter"
    policy = ""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> CounterState:
        return CounterState(now="2026-01-01T00:00:00", orders={})

    @tool(effect="read")
    def get_order(self, order_id: str) -> Order:
        """Show an order."""
        return self._order(order_id)

    @tool(effect="write")
    def cancel_order(self, order_id: str) -> Order:
        """Cancel an order."""
        order = self._order(order_id)
        order.status = "cancelled"
        return order

    def _order(self, order_id: str) -> Order:
        if order_id not in self.state.orders:
            raise ToolError(f"order not found: {order_id}")
        return self.state.orders[order_id]
