"""A tiny MCP server over stdio: a shopping list in memory. `run.py` beside it makes dialogues with it."""

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel

server = MCPServer("shopping", version="1.0")


class Item(BaseModel):
    item_id: str
    name: str
    amount: int


items = {f"I{n}": Item(item_id=f"I{n}", name=name, amount=n) for n, name in enumerate(("milk", "rice", "tea"), 1)}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_items() -> list[Item]:
    """List the items on the shopping list."""
    return list(items.values())


@server.tool()
def set_amount(item_id: str, amount: int) -> Item:
    """Set the amount of an item on the shopping list."""
    if item_id not in items:
        raise ValueError(f"no item {item_id}")
    items[item_id].amount = amount
    return items[item_id]


@server.tool()
def save_state() -> dict[str, list[Item]]:
    """Return the whole state. Agents do not have this tool."""
    return {"items": list(items.values())}


@server.tool()
def load_state(state: dict[str, list[Item]]) -> None:
    """Go on from a state. Agents do not have this tool."""
    items.clear()
    items.update({item.item_id: item for item in state["items"]})


if __name__ == "__main__":
    server.run()
