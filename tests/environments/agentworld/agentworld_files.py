"""A small directory in Agent-World's form, and how tests load one."""

import textwrap
from typing import Any

import orjson

from trajsmith.environments.adapters.agentworld.program import AgentWorldProgram, load
from trajsmith.environments.programs import EnvironmentEpisode

HOTELS = '''
import json

with open("/app/database/hotels.json") as file:
    HOTELS = json.load(file)
SEARCHES: dict = {}

def get_card(card_id):
    import os
    path = os.path.join("cards", f"{card_id}.md")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no card {card_id}")
    with open(path, encoding="utf-8") as f:
        return {"card_id": card_id, "lines": [line.strip() for line in f.readlines()]}

def list_hotels(city=None, page=1, page_size=20):
    """List hotels.

    Args:
        city: Only in this city.
    """
    import os
    path = os.path.join(os.getcwd(), "hotels.json")
    try:
        with open(path, "r", encoding="utf-8") as f:
            hotels = json.load(f)
    except Exception as e:
        return {"error": f"Failed to load hotels: {str(e)}"}
    SEARCHES[city] = page
    hotels = [h for h in hotels if city in (None, h["city"])]
    return {"total": len(hotels), "hotels": hotels[(page - 1) * page_size : page * page_size]}

def book(hotel_id: str, user_id: str) -> dict:
    import pathlib
    path = pathlib.Path("/app/database/bookings.json")
    bookings = json.loads(path.read_text())
    if hotel_id not in [h["hotel_id"] for h in HOTELS]:
        raise ValueError(f"no hotel {hotel_id}")
    bookings.append({"booking_id": f"B{len(bookings) + 1}", "hotel_id": hotel_id, "user_id": user_id})
    path.write_text(json.dumps(bookings))
    return bookings[-1]

def rates():
    import csv
    with open("rates.csv", newline="") as f:
        return list(csv.DictReader(f))

def add_rate(hotel_id: str, price: float):
    import csv
    with open("rates.csv", "a", newline="") as f:
        csv.writer(f).writerow([hotel_id, price])

def searches():
    return SEARCHES

def find(hotel_id: str):
    return next((h for h in HOTELS if h["hotel_id"] == hotel_id), None)

def broken():
    return SEARCHES["nothing"]

def _helper():
    return 1
'''

FILES = {
    "hotels.json": '[{"hotel_id": "H1", "city": "Paris"}, {"hotel_id": "H2", "city": "Rome"}]',
    "bookings.json": "[]",
    "rates.csv": "hotel_id,price\nH1,80\n",
    "cards/a.md": "# A\nText\n",
}
STATE = {
    "hotels.json": [{"hotel_id": "H1", "city": "Paris"}, {"hotel_id": "H2", "city": "Rome"}],
    "bookings.json": [],
    "rates.csv": [{"hotel_id": "H1", "price": "80"}],
    "cards/a.md": "# A\nText\n",
}


def loaded(source: str = HOTELS, files: Any = None, **more: Any) -> AgentWorldProgram:
    payload = {
        "name": "hotels", "file": "hotels", "root": "/app/database", "tools": None, "fixed": {}, "description": "",
        "policy": "", "states": [FILES if files is None else files],
        "sources": [{"name": "tools", "file": "tools.py", "source": textwrap.dedent(source)}],
    }  # fmt: skip
    return load(payload | more)


def started(program: AgentWorldProgram, state: Any = None) -> EnvironmentEpisode:
    return program.start(orjson.dumps(program.states(0)[0] if state is None else state))


def called(body: str, files: Any = None, **arguments: Any) -> Any:
    """What a tool with this body gives."""
    return started(loaded(f"def tool():\n{textwrap.indent(textwrap.dedent(body), '    ')}", files or {})).call(
        "tool", arguments
    )
