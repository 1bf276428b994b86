"""Arguments that no person would write: every tool of every bundled environment answers, refuses, and never breaks."""

import random
import time
from typing import Any

import pytest

from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.sources import EnvironmentSettings, open_source
from trajsmith.records import JsonObject, JsonValue

TEXTS = (
    "", " ", "a\nb", "x" * 20_000, "9999-12-31", "0001-01-01", "9999-12-31T23:59:59", "2026-99-99", "2026-02-30",
    "24:00", "(a|a)*$", "{{ 7 * 7 }}", "__class__", "-1", "NaN", "1e400", "\x1b[2J", "é" * 500, "%s%n", "../../x", "\0",
    "12:00-25:00", "1," * 3000,
)  # fmt: skip
NUMBERS = (0, -1, 1, 2**63 - 1, -(2**63), 10**6, 10**18)
FRACTIONS = (*NUMBERS, 5e-324, 1e308, -1e308, 0.1 + 0.2)
BY_KIND: dict[str, tuple[JsonValue, ...]] = {
    "string": TEXTS, "integer": NUMBERS, "number": FRACTIONS, "boolean": (True, False)
}  # fmt: skip
CALLS = 8, 60
"""Calls of each tool, and with --full."""
SECONDS = 2.0


def draw(schema: JsonObject, dice: random.Random, known: list[JsonValue]) -> JsonValue:
    """Return a hostile value of a schema's kind, or one of the state."""
    if "enum" in schema and dice.random() < 0.6:
        return dice.choice(schema["enum"])
    if "anyOf" in schema:
        return draw(dice.choice(schema["anyOf"]), dice, known)
    kind = schema.get("type")
    if dice.random() < 0.35:
        value = dice.choice(known)
        if (kind == "string") == isinstance(value, str):
            return value
    if kind == "array":
        return [draw(schema.get("items", {}), dice, known) for _ in range(dice.choice((0, 1, 2, 60)))]
    if kind == "object":
        return {name: draw(inner, dice, known) for name, inner in schema.get("properties", {}).items()}
    return dice.choice(BY_KIND.get(str(kind), (None,)))


def list_leaves(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in (key, *list_leaves(inner))]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in list_leaves(inner)]
    return [] if value is None else [value]


@pytest.mark.parametrize("name", ENVIRONMENTS.names())
async def test_no_argument_breaks_a_tool(name: str, full: bool) -> None:
    source = open_source(EnvironmentSettings(library=name, states={"small": 1}))
    spec, (state,) = await source.spec(), await source.states(0)
    known, dice, session = list_leaves(state), random.Random(name), await source.open()
    await session.reset(state)
    for tool in spec.tools:
        for _ in range(CALLS[full]):
            arguments: dict[str, Any] = {
                key: draw(schema, dice, known)
                for key, schema in tool.parameters.items()
                if key in tool.required or dice.random() < 0.5
            }
            began = time.process_time()
            await session.call(tool.name, arguments, tool.actor)  # a fault of the environment ends the test
            assert time.process_time() - began < SECONDS, f"{tool.name} of {arguments}"[:500]
    await session.close()
