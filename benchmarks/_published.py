"""What the scripts over published environments share: try every tool with arguments from the state, and the table."""

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

from trajsmith.environments.session import EnvironmentSource, Session
from trajsmith.grounding.schema_values import is_json_type
from trajsmith.records import EnvironmentFault, JsonObject, RunError, ToolSpec, TrajsmithError

SAMPLES: dict[str, list[Any]] = {
    "string": ["a", "test", "2025-01-15", "2025-01-15T10:00:00"], "integer": [1, 2, 10], "number": [1.0, 2.5, 10.0],
    "boolean": [True, False], "object": [{}], "array": [[]], "null": [None],
}  # fmt: skip
"""Values of a type where nothing is known of a parameter."""


@dataclass
class EnvironmentRow:
    """Result of one environment."""

    name: str
    loads: bool = False
    serves: bool = False
    """True if a tool answered without a fault, and a fresh play's state came back from save and load."""
    tools: int = 0
    answered: int = 0
    """Tools with at least one successful call."""
    states: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    fresh: str = "-"
    """What became of the state of a fresh play, saved, loaded by another play and saved again."""
    used: str = "-"
    """The same after calls."""
    reason: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    """First fault of each tool."""
    refusals: dict[str, str] = field(default_factory=dict)
    """First refusal of each tool."""


class Pool:
    """Values of the state and of earlier results, by the name that they stand under."""

    def __init__(self, state: JsonObject) -> None:
        self._named: dict[str, list[Any]] = {}
        self._all: list[Any] = []
        self.add("", state)

    def add(self, name: str, value: Any, depth: int = 0) -> None:
        known = self._named.setdefault(_plain(name), [])
        if depth > 8 or len(known) > 200:
            return
        known.append(value)
        self._all.append(value)
        if isinstance(value, dict):
            for key, child in value.items():
                known.append(key)
                self._all.append(key)
                self.add(key, child, depth + 1)
        elif isinstance(value, list):
            for child in value:
                self.add(name, child, depth + 1)

    def find(self, name: str, kind: str) -> list[Any]:
        """Values under this name or one like it, of this type."""
        wanted = _plain(name)
        stems = {wanted, wanted.removesuffix("s"), wanted.removesuffix("id"), wanted.removesuffix("ids")}
        matches = [value for key, values in self._named.items() if key and _alike(key, stems) for value in values]
        return [value for value in matches or self._all if is_json_type(value, kind)]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _alike(key: str, stems: set[str]) -> bool:
    return any(stem and (key in (stem, stem + "s", stem + "id") or key.endswith(stem)) for stem in stems)


def fill(tool: ToolSpec, pool: Pool, chance: random.Random) -> JsonObject:
    """Arguments for a call: all that are required, and some of the others."""
    chosen = [name for name in tool.parameters if name in tool.required or chance.random() < 0.3]
    return {name: _value(name, tool.parameters[name], pool, chance) for name in chosen}


def _value(name: str, schema: Any, pool: Pool, chance: random.Random) -> Any:
    schema = schema if isinstance(schema, dict) else {}
    if schema.get("enum"):
        return chance.choice(schema["enum"])
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return _value(name, choices[0], pool, chance)
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" and schema.get("properties"):
        return {key: _value(key, child, pool, chance) for key, child in schema["properties"].items()}
    if kind == "array" and chance.random() < 0.7:
        return [_value(name, schema.get("items"), pool, chance)]
    known = pool.find(name, kind)
    return chance.choice(known) if known and chance.random() < 0.9 else chance.choice(SAMPLES.get(kind, [None]))


async def examine(name: str, source: EnvironmentSource, rounds: int = 8, seed: int = 0) -> EnvironmentRow:
    """Load an environment, call every tool some times from its first states, and save and load what comes of it."""
    row = EnvironmentRow(name)
    try:
        spec = await source.spec()
        row.loads, row.tools = True, len(spec.tools)
        states = await source.states(seed)
        row.states = len(states)
        chance, answered = random.Random(seed), set()
        session, other = await source.open(), await source.open()
        for state in states[:3]:
            await session.reset(state)
            row.fresh = _worse(row.fresh, await _round_trip(session, other, row))
            pool = Pool(await session.snapshot())
            for _ in range(rounds):
                for tool in spec.tools:
                    answered |= await _call(session, tool, pool, chance, row)
            row.used = _worse(row.used, await _round_trip(session, other, row))
        row.answered = len(answered)
    except RunError:
        raise
    except TrajsmithError as error:
        row.reason = str(error)
    row.serves = row.loads and row.answered > 0 and row.fresh in ("equal", "1 = 1.0")
    reasons = row.faults or ({} if row.answered else row.refusals)
    row.reason = row.reason or "; ".join(list(reasons.values())[:2])
    return row


async def _call(session: Session, tool: ToolSpec, pool: Pool, chance: random.Random, row: EnvironmentRow) -> set[str]:
    try:
        result = await session.call(tool.name, fill(tool, pool, chance))
    except EnvironmentFault as fault:
        row.calls[fault.kind] += 1
        row.faults.setdefault(tool.name, str(fault).partition(".")[2])
        return set()
    row.calls["ok" if result.ok else result.error or ""] += 1
    if not result.ok:
        row.refusals.setdefault(tool.name, result.text)
        return set()
    pool.add(tool.name, result.content)
    return {tool.name}


async def _round_trip(session: Session, other: Session, row: EnvironmentRow) -> str:
    """Saved by one play, loaded by another, saved again: is it the same?"""
    saved = await session.snapshot()
    try:
        await other.reset(saved)
        again = await other.snapshot()
    except EnvironmentFault as fault:
        row.reason = f"its own saved state does not load: {fault.message}"
        return "refused"
    if saved == again:
        return "equal" if await other.state_hash() == await session.state_hash() else "1 = 1.0"
    parts = sorted(key for key in saved.keys() | again.keys() if saved.get(key) != again.get(key))
    row.reason = f"another state after save and load: {', '.join(parts)}"
    return "differs"


def _worse(one: str, two: str) -> str:
    order = ("-", "equal", "1 = 1.0", "differs", "refused")
    return max(one, two, key=order.index)


def show(title: str, rows: Iterable[EnvironmentRow]) -> None:
    """Print the table and its totals."""
    rows = list(rows)
    table = Table(title=title)
    for heading in (
        "environment",
        "loads",
        "serves",
        "tools",
        "answered",
        "states",
        "ok",
        "refused",
        "fault",
        "fresh",
        "used",
    ):
        table.add_column(heading, justify="left" if heading == "environment" else "right")
    table.add_column("reason", overflow="ellipsis", no_wrap=True, max_width=110)
    for row in rows:
        table.add_row(row.name, *_cells(row), row.fresh, row.used, row.reason)
    console = Console(width=240)
    console.print(table)
    total = sum((row.calls for row in rows), Counter[str]())
    console.print(f"{sum(row.loads for row in rows)} of {len(rows)} load, {sum(row.serves for row in rows)} serve; "
                  f"{sum(row.answered for row in rows)} of {sum(row.tools for row in rows)} tools answered; "
                  f"calls: {dict(total.most_common())}")  # fmt: skip


def _cells(row: EnvironmentRow) -> list[str]:
    refused = row.calls["refused"] + row.calls["invalid_arguments"]
    faults = sum(row.calls.values()) - refused - row.calls["ok"]
    yes = ["yes" if row.loads else "no", "yes" if row.serves else "no"]
    return yes + [str(number) for number in (row.tools, row.answered, row.states, row.calls["ok"], refused, faults)]
