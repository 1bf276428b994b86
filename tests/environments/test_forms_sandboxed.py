"""The adapters of published forms do their work inside a locked worker too."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from trajsmith.environments.adapters.agentworld.settings import PRELOAD as AGENTWORLD
from trajsmith.environments.adapters.envfactory.settings import PRELOAD as ENVFACTORY
from trajsmith.environments.adapters.envscaler.settings import PRELOAD as ENVSCALER
from trajsmith.environments.sandbox.settings import SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.records import EnvironmentFault, RunError

BOX = """
from typing import Dict
from mcp.server.fastmcp import FastMCP
from pydantic import BaseModel
class BoxScenario(BaseModel):
    items: Dict[str, int] = {}
Scenario_Schema = [BoxScenario]
class Box:
    def __init__(self): self.items = {}
    def load_scenario(self, scenario): self.items = BoxScenario(**scenario).items
    def save_scenario(self): return {"items": self.items}
box = Box()
_last = None
mcp = FastMCP("Box")
@mcp.tool()
def put(name: str, count: int) -> dict:
    global _last
    if count < 1: raise ValueError("count must be positive")
    box.items[name], _last = count, name
    return {"put": name, "before": _last}
@mcp.tool()
def take(name: str) -> dict:
    return {"left": box.items[name] - 1}
"""
BOX_CLASS = """
class Box:
    def __init__(self, config: dict):
        self.items = {}
        self.seen = set()
    def put(self, name: str, count: int) -> dict:
        if count < 1:
            return {"success": False, "error": "count must be positive"}
        self.items[name] = count
        self.seen.add(name)
        return {"success": True, "message": "put"}
    def take(self, name: str) -> dict:
        return {"success": True, "data": self.items[name] - 1}
"""
BOX_MEMORY = """
from dataclasses import dataclass
@dataclass
class Item:
    count: int
SEEN = []
def put(name: str, count: int):
    import json
    if count < 1: raise ValueError("count must be positive")
    SEEN.append(Item(count))
    items = json.load(open("items.json")) | {name: count}
    json.dump(items, open("items.json", "w"))
def take(name: str):
    import json
    return {"left": json.load(open("items.json"))[name] - len(SEEN)}
"""
BOX_FUNCTIONS = """
import json, os
ITEMS = json.load(open("items.json"))
def put(name: str, count: int):
    if count < 1: raise ValueError("count must be positive")
    ITEMS[name] = count
    with open(os.path.join("/app/database", "items.json"), "w") as f: json.dump(ITEMS, f)
def take(name: str): return {"left": ITEMS[name] - 1}
"""
PAYLOADS: dict[str, Any] = {
    "envfactory": {
        "file": "box.py", "source": BOX, "metadata": None, "moment": "2024-01-01", "hide": [],
        "scenarios": [{"name": "1", "state": '{"items": {"pen": 2}}'}],
    },
    "envscaler": {
        "file": "box.py", "source": BOX_CLASS, "class_name": "", "tools": None, "reads": {}, "description": "",
        "policy": "", "states": [{"name": "1", "state": '{"items": {"pen": 2}}'}],
    },
    "agentworld": {
        "file": "box", "root": "/app/database", "tools": None, "fixed": {}, "description": "", "policy": "",
        "sources": [{"name": "tools", "file": "tools.py", "source": BOX_FUNCTIONS}],
        "states": [{"items.json": '{"pen": 2}'}],
    },
}  # fmt: skip
PAYLOADS["agentworld, nothing read at import"] = PAYLOADS["agentworld"] | {
    "sources": [{"name": "tools", "file": "tools.py", "source": BOX_MEMORY}]
}


@pytest.fixture(params=PAYLOADS)
async def source(request: pytest.FixtureRequest) -> AsyncIterator[SandboxSource]:
    settings = SandboxSettings(imports=ENVFACTORY + ENVSCALER + AGENTWORLD)
    made = SandboxSource("box", request.param.partition(",")[0], PAYLOADS[request.param] | {"name": "box"}, settings)
    try:
        await made.spec()
    except RunError as error:
        pytest.skip(str(error))
    yield made
    made.close()


async def test_plays_in_a_worker(source: SandboxSource) -> None:
    (state,) = await source.states(0)
    one, two = await source.open(), await source.open()
    await one.reset(state)
    await two.reset(state)
    assert (await one.call("put", {"name": "cup", "count": 0})).error == "refused"
    assert (await one.call("put", {"name": "cup"})).error == "invalid_arguments"
    assert (await one.call("put", {"name": "cup", "count": 3})).ok
    assert await two.snapshot() == state
    assert await one.snapshot() != state
    point = await one.checkpoint()
    with pytest.raises(EnvironmentFault) as caught:
        await two.call("take", {"name": "cup"})
    assert caught.value.kind == "crash"
    await two.rollback(point)
    assert (await two.call("take", {"name": "cup"})).ok
    assert await two.state_hash() == await one.state_hash()
    await one.close()
    await two.close()
