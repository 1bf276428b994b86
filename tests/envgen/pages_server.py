"""An MCP server over the files of a folder: `search` finds those with the words of a query, `fetch` gives one.

Arguments: the folder, and a file into which every call is written.
"""

import re
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

FOLDER, LOG = Path(sys.argv[1]), Path(sys.argv[2])
HOST = "https://pages.example/"
server = MCPServer("pages", version="1.0")


class Page(BaseModel):
    title: str
    url: str
    snippet: str


class Pages(BaseModel):
    results: list[Page]


def log(line: str) -> None:
    with LOG.open("a") as file:
        file.write(f"{line}\n")


@server.tool()
def search(query: str) -> Pages:
    """Find pages by words."""
    log(f"search {query}")
    words = set(re.findall(r"[a-z]{4,}", query.lower()))
    ranked = []
    for file in sorted(FOLDER.iterdir()):
        text = " ".join(file.read_text().split())
        hits = sum(word in text.lower() for word in words)
        if hits:
            ranked.append((-hits, file.name, Page(title=file.stem, url=HOST + file.name, snippet=text[:160])))
    return Pages(results=[page for _, _, page in sorted(ranked, key=lambda one: one[:2])])


@server.tool(structured_output=False)
def fetch(url: str) -> str:
    """Give a page."""
    log(f"fetch {url}")
    file = FOLDER / url.removeprefix(HOST)
    if file.name.startswith("gone"):
        raise ToolError("404: there is no such page")
    return file.read_text()


if __name__ == "__main__":
    server.run()
