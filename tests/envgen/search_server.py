"""An MCP server that searches a web of six pages. It writes every query into the file that its first argument names."""

import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("six-pages", version="1.0")
LOANS = "A loan belongs to one member and one score, and has a due date and a count of renewals."
PAGES = [
    ("data", "Loans as records", LOANS),
    ("data", "Members", "A member has a name, a <strong>card number</strong>, fees in pence and a status."),
    ("data", "Loans as records, again", LOANS),
    ("rules", "Renewals", "A loan may be renewed twice, unless another member waits for the same score."),
    ("rules", "Fees", "For every day late a member owes twenty pence; above fifteen pounds nothing is lent. " * 20),
    ("rules", "Short", "No."),
]  # fmt: skip


class Page(BaseModel):
    title: str
    url: str
    snippet: str
    score: float = 0.5


class Pages(BaseModel):
    query: str
    took_ms: int
    results: list[Page]


def found(query: str) -> list[Page]:
    with Path(sys.argv[1]).open("a") as log:
        log.write(f"{query}\n")
    if "dies" in query:
        os._exit(3)
    if "breaks" in query and "rules" in query:
        raise ToolError("quota of this month is used up")
    if "unknown" in query:
        return []
    if "many" in query:
        numbers = range(1000, 1030)
        return [
            Page(title=f"Page {n}", url="", snippet=f"{n} tells of {n} and of {n + 50}, in {n} words") for n in numbers
        ]
    return [
        Page(title=title, url=f"https://pages.example/{number}", snippet=text)
        for number, (kind, title, text) in enumerate(PAGES)
        if kind in query
    ]


@server.tool()
def web_search(query: str, count: int = 40) -> Pages:
    """Search the web."""
    return Pages(query=query, took_ms=1, results=found(query)[:count])


@server.tool(structured_output=False)
def text_search(query: str) -> str:
    """Search the web, and read the answer as text."""
    pages = found(query)
    if not pages:
        return "No results were found for your search query. Please rephrase it and try again in a few minutes."
    return "\n\n".join(f"Title: {page.title}\nURL: {page.url}\n\n{page.snippet}" for page in pages)


@server.tool()
def regional_search(query: str, region: str) -> Pages:
    """Search the web of a region."""
    return web_search(f"{query} {region}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run()
