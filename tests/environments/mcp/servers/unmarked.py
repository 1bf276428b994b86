"""A server that gives its errors as results, without `isError`: as text, and as structured content."""

from mcp.server import MCPServer

server = MCPServer("unmarked", version="1")
rows = {"a": 1, "log": "Error: the first line of a log"}


@server.tool(structured_output=False)
def read_row(key: str) -> str:
    """Give a row as text."""
    return str(rows[key]) if key in rows else f"Database error: no row {key}"


@server.tool()
def write_row(key: str, value: int) -> str:
    """Change a row."""
    if value < 0:
        return "Error: the value is negative"
    rows[key] = value
    return f"{key} is {value}"


if __name__ == "__main__":
    server.run()
