"""BFCL's multi-turn environments as sessions, from the package `bfcl-eval`, unpacked; nothing of them ships here.

They are plain Python objects, so a checkpoint is a copy of them. Only the benchmark runs them, in its own process.
"""

import copy
import hashlib
import importlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trajsmith.environments import ToolResult
from trajsmith.phrasing import Phrasebook, ScenarioBook
from trajsmith.records import Actor, EnvironmentSpec, JsonObject, ToolSpec

MODULES = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""Class to the module that has it."""


def classes(folder: Path) -> dict[str, type]:
    """The environments' classes, by server.

    Args:
        folder: Where `pip install --no-deps --target FOLDER bfcl-eval` put the package.
    """
    sys.path.insert(0, str(folder))
    home = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
    return {server: vars(importlib.import_module(f"{home}.{module}"))[server] for server, module in MODULES.items()}


class BfclSource:
    """The servers as one environment with one initial state."""

    name = "bfcl"
    isolation = "in the process of the benchmark"
    notes: tuple[str, ...] = ()
    phrasebook = Phrasebook()
    scenarios = ScenarioBook()

    def __init__(self, classes_by_name: Mapping[str, type], tools: list[ToolSpec], state: JsonObject) -> None:
        self.classes = classes_by_name
        self.tools = tools
        self.state = state

    async def spec(self) -> EnvironmentSpec:
        return (await self.open()).spec

    async def states(self, seed: int) -> list[JsonObject]:
        return [self.state]

    async def open(self) -> "BfclSession":
        return BfclSession(self.classes, self.tools)


class BfclSession:
    """All servers of a task in one session."""

    def __init__(self, classes_by_name: Mapping[str, type], tools: list[ToolSpec]) -> None:
        self.classes = classes_by_name
        self.home = {tool.name: tool.server for tool in tools}
        self.spec = EnvironmentSpec(
            name="bfcl", version="", description="", tools=tuple(tools), source="python: BFCL multi-turn"
        )
        self.playing: dict[str, Any] = {}

    async def reset(self, state: JsonObject) -> None:
        self.playing = {}
        for server, cls in self.classes.items():
            self.playing[server] = cls()
            if hasattr(cls, "_load_scenario"):  # MathAPI holds no state
                self.playing[server]._load_scenario(copy.deepcopy(state.get(server, {})))

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        if self.home[tool] not in self.playing:
            return ToolResult.refusal("unknown_tool", f"{tool} is not played here")
        method = getattr(self.playing[self.home[tool]], tool)  # the name is one of the set's tools
        try:
            content = json.loads(json.dumps(method(**arguments), default=str))
        except Exception as error:  # noqa: BLE001 - BFCL's tools raise anything on odd arguments, and it counts as refused
            return ToolResult.refusal("refused", f"{type(error).__name__}: {error}")
        if isinstance(content, dict) and "error" in content:
            return ToolResult(content, "refused")
        return ToolResult(content)

    async def snapshot(self) -> JsonObject:
        return {"digest": await self.state_hash()}

    async def state_hash(self) -> str:
        return hashlib.sha256(json.dumps(_plain(self.playing, set()), default=str).encode()).hexdigest()

    async def checkpoint(self) -> Any:
        return copy.deepcopy(self.playing)

    async def rollback(self, checkpoint: Any) -> None:
        self.playing = copy.deepcopy(checkpoint)

    async def close(self) -> None:
        self.playing = {}


def _plain(node: Any, around: set[int]) -> Any:
    """Objects as what they hold; files know the folder around them, which is not gone into again."""
    if isinstance(node, str | int | float | bool | None):
        return node
    if id(node) in around:
        return "around"
    around = around | {id(node)}
    if isinstance(node, dict):
        return {str(key): _plain(value, around) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(value, around) for value in node]
    held = getattr(node, "__dict__", None)  # anything else that BFCL keeps: a generator of random numbers, a date
    return str(type(node)) if held is None else _plain(held, around)
