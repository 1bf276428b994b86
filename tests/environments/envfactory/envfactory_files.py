"""A small tool file in EnvFactory's form, and how tests load one."""

import textwrap
from collections.abc import Callable
from typing import Any

import orjson

from trajsmith.environments.adapters.envfactory.program import EnvFactoryProgram, load
from trajsmith.environments.programs import EnvironmentEpisode

LIBRARY = '''
"""Desk of a small library."""
from typing import ClassVar, Dict, List, Optional
from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel, Field

class Book(BaseModel):
    title: str
    copies: int = Field(..., ge=0)
    note: Optional[str] = None

class LibraryScenario(BaseModel):
    books: Dict[int, Book] = Field(default={})
    opening: Dict[str, str] = Field(default={"monday": "9-17"})
    current_time: str = Field(..., pattern=r"^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2}$")

Scenario_Schema = [Book, LibraryScenario]

class LibraryAPI:
    def __init__(self):
        self.books: Dict[int, Book] = {}
        self.opening: Dict[str, str] = {}
        self.current_time: str = ""
        self.counter = 0

    def load_scenario(self, scenario: dict) -> None:
        model = LibraryScenario(**scenario)
        self.books, self.opening, self.current_time = model.books, model.opening, model.current_time

    def save_scenario(self) -> dict:
        return {
            "books": {number: book.model_dump() for number, book in self.books.items()},
            "opening": self.opening,
            "current_time": self.current_time,
        }

mcp = FastMCP(name="Library")
api = LibraryAPI()
_reader = None

@mcp.tool()
def load_scenario(scenario: dict) -> str:
    """Load."""
    api.load_scenario(scenario)
    return "Successfully loaded scenario"

@mcp.tool()
def save_scenario() -> dict:
    """Save."""
    return api.save_scenario()

@mcp.tool()
def get_book(number: int) -> dict:
    """Look a book up.

    Args:
        number (int): Number on its label.

    Returns:
        title (str): Its title.
    """
    if number not in api.books:
        raise ValueError(f"Book {number} not found")
    return api.books[number].model_dump()

@mcp.tool()
def lend(number: int, reader: Optional[str] = None) -> dict:
    """Lend a copy."""
    global _reader
    api.books[number].copies -= 1
    _reader = reader
    return {"number": number, "left": api.books[number].copies}

@mcp.tool()
def last_reader() -> dict:
    """Who came last."""
    return {"reader": _reader}

@mcp.tool()
def add_book(title: str, copies: int) -> str:
    """Add a book."""
    api.books[len(api.books) + 1] = Book(title=title, copies=copies)
    return "Successfully added book"

if __name__ == "__main__":
    mcp.run()
'''

STATE = {
    "books": {"1": {"title": "Emma", "copies": 2, "note": None}},
    "opening": {"monday": "9-17"},
    "current_time": "2024-05-01 10:00:00",
}

Loader = Callable[..., EnvFactoryProgram]


def scenario(state: Any, name: str = "s1") -> dict[str, str]:
    return {"name": name, "state": orjson.dumps(state).decode()}


def loaded(source: str, **more: Any) -> EnvFactoryProgram:
    payload = {
        "name": "Library", "file": "Library.py", "source": textwrap.dedent(source), "metadata": None, "scenarios": [],
        "moment": "2024-01-01T00:00:00", "hide": [],
    }  # fmt: skip
    return load(payload | more)


def started(program: EnvFactoryProgram, state: Any = None) -> EnvironmentEpisode:
    return program.start(orjson.dumps(program.states(0)[0] if state is None else state))
